"""Memories opened and closed in one process: what remains of memory, open files and threads.

Many are open at once, then one after the other; each indexes and searches with the local model.
"""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from notewell import Memory
from notewell.embedding.local import models

AT_ONCE = 40  # or fewer, if fewer are opened in all
MOST_LEFT_MB = 50  # more than with one memory open
MOST_EACH_MB = 3  # that a further open memory takes; a copy of the model would be 70 and more


@dataclass(frozen=True)
class Held:
    """What a process holds: memory in MB, open files, threads, copies of models."""

    memory_mb: float
    files: int
    threads: int
    copies: int

    def __str__(self) -> str:
        return f"{self.memory_mb:6.0f} MB, {self.files} files, {self.threads} threads, {self.copies} models"


def held() -> Held:
    """Return what this process holds now."""
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    memory_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return Held(
        memory_kb / 1024,
        len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - not a folder of files
        len(os.listdir("/proc/self/task")),  # noqa: PTH208
        len(models._copies),
    )


def opened(folder: Path, number: int) -> Memory:
    """Return an open memory of its own workspace that has indexed and searched with the model."""
    workspace = folder / str(number)
    if not workspace.exists():
        (workspace / "memory").mkdir(parents=True)
        lines = (
            f"Ferry {number * at} leaves at {at} from the harbour with people and luggage. " * 5 for at in range(20)
        )
        (workspace / "memory/ferries.md").write_text("# Ferries\n\n" + "\n\n".join(lines), encoding="utf-8")
    memory = Memory.open(workspace)
    memory.index()
    assert memory.search("when does the ferry leave", mode="semantic").hits
    return memory


def run(folder: Path, *, count: int, seed: int) -> bool:
    """Open and close; say whether everything was given back."""
    del seed  # nothing here is left to chance
    if not sys.platform.startswith("linux"):
        print("needs /proc, which only Linux has")
        return False
    with opened(folder, 0):
        one = held()
    closed = held()
    print(f"one open:            {one}\nclosed:              {closed}", flush=True)
    at_once = min(AT_ONCE, count)
    memories = [opened(folder, number) for number in range(at_once)]
    many = held()
    for memory in memories:
        memory.close()
    print(f"{at_once:2} open at once:     {many}\nclosed:              {held()}", flush=True)
    for number in range(count):
        opened(folder, number).close()
        if number % 50 == 49:
            print(f"{number + 1:4} opened, closed: {held()}", flush=True)
    end = held()
    print(f"at the end:          {end}", flush=True)
    return (
        many.copies == 1
        and many.memory_mb - one.memory_mb <= MOST_LEFT_MB + MOST_EACH_MB * at_once
        and end.memory_mb - one.memory_mb <= MOST_LEFT_MB
        and end.files <= closed.files
        and end.threads <= closed.threads
        and end.copies == 0
    )
