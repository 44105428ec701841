"""Many files, watched: extra descriptors, time until a change is found, runs during a storm of edits, CPU at rest."""

from __future__ import annotations

import random
import resource
import threading
import time
from pathlib import Path

from notewell import Memory

FOLDERS = 200
CHANGES = 40
STORM_EDITS, STORM_S = 5_000, 10.0
REST_S = 20.0
MOST_DESCRIPTORS, MOST_DELAY_S, MOST_RUNS = 50, 3.0, 5  # as the reliability goals ask


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run(folder: Path, *, count: int, seed: int) -> bool:
    """Watch so many files."""
    chance = random.Random(seed)
    notes = folder / "notes"
    files = []
    for i in range(count):
        path = notes / f"memory/{i % FOLDERS:03}/note{i}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {i}\n\nAbout subject{i} and word{chance.randrange(1000)}.\n", encoding="utf-8")
        files.append(path)
    runs: list[float] = []
    with Memory.open(notes, provider="hashing") as memory:
        started = time.monotonic()
        memory.index()
        print(f"{count} files indexed in {time.monotonic() - started:.1f} s", flush=True)
        before = descriptors()
        watching = memory.watch(on_sync=lambda outcome: runs.append(time.monotonic()))
        memory.wait_until_synced()
        extra = descriptors() - before
        print(f"mode {watching.mode}, {extra} extra descriptors ({MOST_DESCRIPTORS} allowed)", flush=True)

        used = cpu_s()
        time.sleep(REST_S)
        print(f"CPU at rest: {(cpu_s() - used) / REST_S:.2%}", flush=True)

        delays = sorted(_delay(memory, chance.choice(files), number) for number in range(CHANGES))
        p95 = delays[len(delays) * 95 // 100]
        print(f"searchable after: median {delays[len(delays) // 2]:.2f} s, p95 {p95:.2f} s ({MOST_DELAY_S} allowed)")

        before_storm = len(runs)
        started = time.monotonic()
        for edit in range(STORM_EDITS):
            chance.choice(files).write_text(f"# Storm\n\nEdit {edit}.\n", encoding="utf-8")
            ahead = started + STORM_S * edit / STORM_EDITS - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
        took = time.monotonic() - started
        during = len(runs) - before_storm
        files[0].write_text("# Last\n\nThe calm after the storm.\n", encoding="utf-8")
        while not memory.search("calm after the storm", sync=False, limit=1, min_score=0.0).hits:
            time.sleep(0.05)
        _settle(memory)
        print(f"{STORM_EDITS} edits in {took:.1f} s: {during} runs during it ({MOST_RUNS} allowed),"
              f" {len(runs) - before_storm} until all was quiet")  # fmt: skip

        moved = notes / "memory/moved"
        started = time.monotonic()
        (notes / "memory").rename(notes / "away")
        (notes / "memory").mkdir()
        (notes / "away").rename(moved)
        report = memory.index()
        print(f"the whole tree moved: {report.renamed} renamed, {report.embedded} embedded, {report.removed} removed,"
              f" {time.monotonic() - started:.1f} s")  # fmt: skip
        equal = memory.verify()
        print(f"verify: {'equal' if equal.equal else equal.findings}")
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("notewell")]
    return (
        extra <= MOST_DESCRIPTORS and p95 < MOST_DELAY_S and during <= MOST_RUNS and equal.equal and not left
        and report.embedded == 0
    )  # fmt: skip


def _delay(memory: Memory, path: Path, number: int) -> float:
    path.write_text(f"# Change\n\nThis is change{number}marker.\n", encoding="utf-8")
    started = time.monotonic()
    while True:
        hits = memory.search(f"change{number}marker", sync=False, keyword_only=True, limit=1).hits
        if hits and f"change{number}marker" in hits[0].snippet:
            return time.monotonic() - started
        time.sleep(0.02)


def _settle(memory: Memory) -> None:
    time.sleep(2.0)
    memory.wait_until_synced()
