"""Measures how often "same subject, different value" is right, on 234 pairs of statements and on 162 held-out ones.

    python -m evals.subject_pairs

Some pairs give one subject two values; the others only look like it. `remember` reports a pair only if it is sure, so
what counts is how many of the reported pairs are right (precision); recall says how many are found at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from notewell.memory.statements import gives_other_value

PAIRS = Path(__file__).with_name("subject_pairs.jsonl")
HELD_OUT = Path(__file__).with_name("subject_pairs_held_out.jsonl")  # nobody looked at them while making the rules


class Pair(NamedTuple):
    """Two statements, and whether they give one subject different values."""

    new: str
    known: str
    differs: bool


class Figures(NamedTuple):
    """How many of the reported pairs are right, how many of the pairs are found, and which are neither."""

    precision: float
    recall: float
    wrong: tuple[Pair, ...]
    missed: tuple[Pair, ...]


def load_pairs(file: Path = PAIRS) -> list[Pair]:
    """Return the pairs of a file."""
    return [Pair(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def measure(pairs: Sequence[Pair]) -> Figures:
    """Compare each pair and count."""
    reported = [pair for pair in pairs if gives_other_value(pair.new, pair.known)]
    wrong = tuple(pair for pair in reported if not pair.differs)
    missed = tuple(pair for pair in pairs if pair.differs and pair not in reported)
    right = len(reported) - len(wrong)
    return Figures(right / max(len(reported), 1), right / sum(pair.differs for pair in pairs), wrong, missed)


if __name__ == "__main__":
    for file in (PAIRS, HELD_OUT):
        figures = measure(load_pairs(file))
        print(f"{file.name}: precision {figures.precision:.2f}, recall {figures.recall:.2f}")
        for name, pairs in (("wrong", figures.wrong), ("missed", figures.missed)):
            for pair in pairs:
                print(f"  {name}: {pair.new} | {pair.known}")
