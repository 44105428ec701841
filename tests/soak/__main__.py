"""`python -m tests.soak RUN [options]`: crash loops, churn, readers, large trees, damage, faults and more.

Every run prints its seed first; the same seed does the same again. Exit 0: everything held.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

RUNS = {
    "crash": "kill -9 at random points of index and rebuild",
    "conversations": "kill -9 over append, compact, flush, import, forget and repair of conversations",
    "churn": "rounds of random changes, then the size on disk against that of a fresh index",
    "operations": "random operations: the incremental index equals a fresh one",
    "readers": "8 readers, 2 writers and rebuilds at once",
    "tree": "a large tree, watched: descriptors, delay, a storm of edits, CPU at rest",
    "damage": "damaged databases, each put right",
    "fallback": "searches with a backend that fails at random",
    "closing": "memories opened and closed in one process: memory, files and threads that remain",
    "faults": "every call of SQLite's file operations fails once and for good",
}
COUNTS = {
    "crash": 5_000,
    "conversations": 500,
    "churn": 100,
    "operations": 1_000,
    "readers": 60,
    "tree": 10_000,
    "damage": 1_000,
    "fallback": 1_000,
    "closing": 200,
    "faults": 0,
}


def main() -> int:
    """Do one run; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("run", choices=RUNS, help="; ".join(f"{name}: {what}" for name, what in RUNS.items()))
    parser.add_argument(
        "--count", type=int, help="points, rounds, operations, seconds, files, databases, searches or memories"
    )
    parser.add_argument("--seed", type=int, help="repeat the run of this seed")
    chosen = parser.parse_args()
    os.environ["NOTEWELL_CONFIG"] = os.devnull
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(10**9)
    count = chosen.count if chosen.count is not None else COUNTS[chosen.run]
    print(f"{chosen.run} --count {count} --seed {seed}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="notewell-soak-") as folder:
        held = import_module(f"tests.soak.{chosen.run}").run(Path(folder), count=count, seed=seed)
    print(f"{'held' if held else 'FAILED'} after {time.monotonic() - started:.0f} s", flush=True)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
