"""One phase of one contestant in a process of its own: `python -m benchmarks.worker PHASE NAME FOLDER` prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.contestant import Ground

if TYPE_CHECKING:
    from benchmarks.contestant import Contestant

NAMES = ("notewell", "openclaw-json", "openclaw-blob", "lancedb")
POSTGRES = "notewell-postgres"  # only with `--store postgres`: it needs a server


def open_contestant(name: str, ground: Ground) -> Any:
    """Return the contestant; only its own libraries are imported."""
    if name == "notewell":
        from benchmarks.ours import Notewell

        return Notewell(ground)
    if name == POSTGRES:
        from benchmarks.postgres import NotewellInPostgres

        return NotewellInPostgres(ground)
    if name == "lancedb":
        from benchmarks.lance import LanceDb

        return LanceDb(ground)
    from benchmarks.openclaw_layout import OpenClawLayout

    return OpenClawLayout(ground, as_blob=name == "openclaw-blob")


def main(phase: str, name: str, folder: str) -> None:
    """Run the phase and print what it measured."""
    from benchmarks import phases

    ground = Ground(Path(folder))
    if phase == "prepare":
        print(json.dumps(phases.prepare(ground, chunks=int(name))))
        return
    contestant: Contestant = open_contestant(name, ground)
    embedder = contestant.embedder
    numbers = {
        "build": lambda: phases.measure_build(contestant, embedder),
        "updates": lambda: phases.measure_updates(contestant, embedder, ground),
        "replaced": lambda: phases.measure_replaced(contestant, embedder, ground),
        "searches": lambda: phases.measure_searches(contestant, ground),
        "recall": lambda: phases.measure_recall(contestant, ground),
        "one-search": lambda: phases.measure_one_search(contestant, ground),
    }[phase]()
    contestant.close()
    print(json.dumps(numbers))


if __name__ == "__main__":
    main(*sys.argv[1:])
