"""A chunk and the query's terms in, the lines worth showing out; pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from recollect.lexicon import fold, irregular_forms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SNIPPET_CHARS = 700  # as OpenClaw shows
ELLIPSIS = "…"
TIE = 1e-9  # sums of the same weights in another order


def make_snippet(text: str, weights: Mapping[str, float], *, limit: int = SNIPPET_CHARS) -> str:
    """Return at most `limit` characters of `text`: all of it if it fits, else the run of lines that matches most.

    A line counts by the terms in it: the root of their weight, so that a rare word draws more than common ones, but
    not more than several. (Evidence shown, a sixth of LoCoMo: .740 unweighted, .750 by weight, .756 by root.)
    """
    if len(text) <= limit:
        return text
    lines = text.split("\n")
    needles = [(needle, math.sqrt(weight)) for term, weight in weights.items() for needle in _needles(term)]
    values = [_value(line, needles) for line in fold(text).lower().split("\n")]
    start, stop = _densest_run(lines, values, limit - 2 * (len(ELLIPSIS) + 1))
    if start == stop:  # the best line alone is too long
        return _cut_line(lines[start], needles, limit)
    body = "\n".join(lines[start:stop])
    before = f"{ELLIPSIS}\n" if start else ""
    after = f"\n{ELLIPSIS}" if stop < len(lines) else ""
    return f"{before}{body}{after}"


def _densest_run(lines: list[str], values: list[float], limit: int) -> tuple[int, int]:
    """Return the half-open run of lines within `limit` characters with the most matches; the earliest among equals."""
    best, best_value = (0, 0), -1.0
    start, size, value = 0, 0, 0.0
    for stop, line in enumerate(lines, start=1):
        size += len(line) + 1
        value += values[stop - 1]
        while size > limit and start < stop:
            size -= len(lines[start]) + 1
            value -= values[start]
            start += 1
        if start < stop and value > best_value + TIE:
            best, best_value = (start, stop), value
    widest = max(range(len(lines)), key=lambda i: values[i])
    if values[widest] > best_value + TIE:  # the line that matches most fits into no run
        return widest, widest
    return _widen(lines, best, limit)


def _widen(lines: list[str], run: tuple[int, int], limit: int) -> tuple[int, int]:
    """Let the run take in lines after it, then before it, while they fit: context is free."""
    start, stop = run
    size = sum(len(line) + 1 for line in lines[start:stop])
    while stop < len(lines) and size + len(lines[stop]) + 1 <= limit:
        size += len(lines[stop]) + 1
        stop += 1
    while start > 0 and size + len(lines[start - 1]) + 1 <= limit:
        start -= 1
        size += len(lines[start]) + 1
    return (start, stop) if stop > start else (start, start)


def _cut_line(line: str, needles: Sequence[tuple[str, float]], limit: int) -> str:
    folded = fold(line).lower()  # may be some characters longer or shorter: the cut need not be exact
    first = min((at for needle, _ in needles if (at := folded.find(needle)) >= 0), default=0)
    room = limit - 2 * len(ELLIPSIS)
    start = max(0, min(first - room // 4, len(line) - room))
    piece = line[start : start + room]
    return f"{ELLIPSIS if start else ''}{piece}{ELLIPSIS if start + room < len(line) else ''}"


def _needles(term: str) -> tuple[str, ...]:
    """Return what of a stemmed term stands in the text as it is written: `librari` stems `library` and `libraries`."""
    whole = term[:-1] if len(term) > 4 and term.isascii() and term.isalpha() else term
    return whole, *irregular_forms(term)


def _value(folded_line: str, needles: Sequence[tuple[str, float]]) -> float:
    return sum(weight for needle, weight in needles if needle in folded_line)
