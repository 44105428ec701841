"""Searches with a primary backend that fails at random: not one may be lost."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from notewell import Memory
from notewell.search import qmd
from tests.fakes.qmd import install_stand_in

NOTES = 20


@dataclass
class Tally:
    """What became of the searches."""

    lost: int = 0
    by_backend: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0


def run(folder: Path, *, count: int, seed: int) -> bool:
    """Search `count` times; True when every search found its note."""
    tally = search_with_random_failures(folder, count=count, seed=seed)
    print(f"{count} searches, {tally.lost} lost; slowest {tally.slowest_s:.2f} s; {dict(tally.by_backend)}")
    for reason, times in tally.reasons.most_common():
        print(f"  {times:5} {reason}")
    return tally.lost == 0


def search_with_random_failures(folder: Path, *, count: int, seed: int) -> Tally:
    """Ask for one note after the other while QMD crashes, hangs, floods, prints nonsense or works, at random."""
    workspace = folder / "workspace"
    for number in range(NOTES):
        note = workspace / "memory" / f"note{number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"# Note {number}\n\nThe word of this note is zq{number}x.\n", encoding="utf-8")
    tally = Tally()
    pause, qmd.FIRST_PAUSE_S = qmd.FIRST_PAUSE_S, 0.0  # the primary is tried every time
    os.environ["QMD_STAND_IN"] = f"random:{seed}"
    options: dict[str, Any] = {"backend": "qmd", "qmd__command": str(install_stand_in(folder)), "qmd__timeout_ms": 400}
    try:
        with Memory.open(workspace, provider="none", qmd__on_start=False, **options) as memory:
            memory.index()
            for number in range(count):
                wanted = number % NOTES
                began = time.monotonic()
                answer = memory.search(f"zq{wanted}x")
                tally.slowest_s = max(tally.slowest_s, time.monotonic() - began)
                tally.lost += f"memory/note{wanted}.md" not in [hit.path for hit in answer.hits]
                tally.by_backend[answer.backend] += 1
                if answer.fallback:
                    tally.reasons[answer.fallback.reason] += 1
    finally:
        qmd.FIRST_PAUSE_S = pause
        del os.environ["QMD_STAND_IN"]
    return tally
