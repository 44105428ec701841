"""`python -m benchmarks.conversations`: what an append costs as a conversation grows, and how writers get on."""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from notewell.sessions import ConversationStore

LENGTHS = (0, 100, 1_000, 10_000)
WORDS = "the harbour queue was restarted after the night shift and Dana wrote down what had changed in the plan".split()


def message(random_: random.Random, number: int) -> dict[str, str]:
    """Return a message of 20 to 120 words, as people and assistants write them."""
    text = " ".join(random_.choices(WORDS, k=random_.randint(20, 120)))
    return {"role": "user" if number % 2 == 0 else "assistant", "content": text}


def median_ms(call: Callable[[int], object], times: int) -> tuple[float, float]:
    """Return the median wall time and CPU time of a call."""
    walls, cpus = [], []
    for number in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        call(number)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls) * 1000, statistics.median(cpus) * 1000


def append_cost(folder: Path, times: int) -> None:
    """Print what one append costs, by how long the conversation is; rounds alternate, so that noise falls on all."""
    store, random_ = ConversationStore(folder), random.Random(7)
    names = {}
    for length in LENGTHS:
        names[length] = [store.create().session_id for _ in range(times if length == 0 else 1)]
        for name in names[length]:
            store.set_state(name)  # makes the journal, which else the first append would pay for
        if length:
            store.append(names[length][0], *(message(random_, number) for number in range(length)))
    costs: dict[int, list[tuple[float, float]]] = {length: [] for length in LENGTHS}
    new = message(random_, 0)
    for round_ in range(times):
        for length in LENGTHS:
            name = names[length][round_ if length == 0 else 0]
            costs[length].append(median_ms(lambda _, name=name: store.append(name, new), 1))
    print("| messages | file | append, wall | append, CPU | against empty, wall | CPU |")
    print("|---:|---:|---:|---:|---:|---:|")
    first = None
    for length in LENGTHS:
        wall, cpu = (statistics.median(cost[kind] for cost in costs[length]) for kind in (0, 1))
        first = first or (wall, cpu)
        size = store.path_of(names[length][0]).stat().st_size / 1e6
        ratios = f"{wall / first[0]:.2f} | {cpu / first[1]:.2f}"
        print(f"| {length:,} | {size:.2f} MB | {wall:.2f} ms | {cpu:.2f} ms | {ratios} |")
    long = names[LENGTHS[-1]][0]
    wall, cpu = median_ms(lambda number: store.update(long, title=f"title {number}"), 5)
    print(f"\nupdate of a field at {LENGTHS[-1]:,} messages (rewrites the file): {wall:.0f} ms, CPU {cpu:.0f} ms")
    wall, cpu = median_ms(lambda _: store.get(long), 5)
    print(f"reading all {LENGTHS[-1]:,} messages: {wall:.0f} ms, CPU {cpu:.0f} ms")
    wall, cpu = median_ms(lambda _: store.list(), 5)
    print(f"listing {len(store.list()):,} sessions: {wall:.0f} ms, CPU {cpu:.0f} ms")


_APPEND = """
import sys
from notewell.sessions import ConversationStore
store = ConversationStore(sys.argv[1], lock_timeout_s=60)
for number in range(int(sys.argv[4])):
    store.append(sys.argv[2], {"role": "user", "content": f"{sys.argv[3]}-{number}"})
"""

_HOLD = """
import sys, time
from notewell.sessions import ConversationStore
store = ConversationStore(sys.argv[1])
with store._files.locked(sys.argv[2]):
    print("held", flush=True)
    time.sleep(600)
"""


def side_by_side(folder: Path, processes: int, appends: int) -> None:
    """Print whether several processes that append to one session lose anything."""
    store = ConversationStore(folder)
    name = store.create().session_id
    started = time.perf_counter()
    words = [sys.executable, "-c", _APPEND, str(folder), name]
    running = [subprocess.Popen([*words, f"p{number}", str(appends)]) for number in range(processes)]
    codes = [process.wait(600) for process in running]
    seconds = time.perf_counter() - started
    kept = [each.text for each in store.get(name).messages]
    expected = {f"p{number}-{step}" for number in range(processes) for step in range(appends)}
    lost, twice = len(expected - set(kept)), len(kept) - len(set(kept))
    print(
        f"\n{processes} processes x {appends} appends: {len(kept):,} kept, {lost} lost, {twice} twice, {seconds:.1f} s"
    )
    assert codes == [0] * processes


def killed_holder(folder: Path, times: int) -> None:
    """Print how long a writer waits after the holder of the lock was killed."""
    store = ConversationStore(folder)
    name = store.create().session_id
    delays = []
    for _ in range(times):
        holder = subprocess.Popen([sys.executable, "-c", _HOLD, str(folder), name], stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        holder.stdout.readline()
        killed_at = time.perf_counter()
        holder.kill()
        store.append(name, {"role": "user", "content": "next"})
        delays.append(time.perf_counter() - killed_at)
        holder.wait(30)
        holder.stdout.close()
    print(f"append after kill -9 of the lock's holder, {times} times: at most {max(delays) * 1000:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200, help="appends measured for each length")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--appends", type=int, default=250, help="of each process")
    parser.add_argument("--kills", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(f"{os.cpu_count()} processors, {sys.platform}, every append on disk (fsync) before it returns\n")
        append_cost(Path(folder) / "cost", options.times)
        side_by_side(Path(folder) / "together", options.processes, options.appends)
        killed_holder(Path(folder) / "killed", options.kills)


if __name__ == "__main__":
    main()
