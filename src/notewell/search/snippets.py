"""Picks the part of a chunk that is worth showing: the lines, or the passage of a message, that match most."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from notewell.text.lexicon import fold, irregular_forms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notewell.types import SpokenLine

SNIPPET_CHARS = 700  # as OpenClaw shows
HEAD_CHARS = 160  # of a long message, before the passage that matches: who speaks, and what about
ELLIPSIS = "…"
TIE = 1e-9  # sums of the same weights in another order

Needles = list[tuple[str, float]]


def make_snippet(text: str, weights: Mapping[str, float], *, limit: int = SNIPPET_CHARS) -> str:
    """Return at most `limit` characters of `text`: all of it if it fits, else the run of lines that matches most."""
    if len(text) <= limit:
        return text
    lines = text.split("\n")
    needles = _needles(weights)
    values = [_value(line, needles) for line in fold(text).lower().split("\n")]
    start, stop = _densest_run(lines, values, limit - 2 * (len(ELLIPSIS) + 1))
    if start == stop:  # the best line alone is too long
        return _passage(lines[start], needles, limit)
    body = "\n".join(lines[start:stop])
    before = f"{ELLIPSIS}\n" if start else ""
    after = f"\n{ELLIPSIS}" if stop < len(lines) else ""
    return f"{before}{body}{after}"


def message_snippet(
    matching: Sequence[SpokenLine],
    around: Sequence[SpokenLine],
    weights: Mapping[str, float],
    *,
    limit: int = SNIPPET_CHARS,
) -> list[SpokenLine]:
    """Return messages in their order, cut so that they take at most `limit` characters together, a line each.

    Short ones that match stay whole, long ones share the room that is left: their beginning and the passage that
    matches. What room remains is for the message after them, which may be the answer, then for the one before.
    """
    needles = _needles(weights)
    room = limit - (len(matching) - 1)
    shown: list[SpokenLine] = []
    by_length = sorted(matching, key=lambda message: len(message.text))
    for number, message in enumerate(by_length):
        share = min(len(message.text), room // (len(matching) - number))
        room -= share
        shown.append(message._replace(text=_message(message.text, needles, share)))
    for message in sorted(around, key=lambda message: -message.turn):
        room = limit - sum(len(other.text) + 1 for other in shown)
        if room >= min(HEAD_CHARS, len(message.text)):
            whole = len(message.text) <= room
            text = message.text if whole else f"{_to_word(message.text[: room - len(ELLIPSIS)])}{ELLIPSIS}"
            shown.append(message._replace(text=text))
    return sorted(shown, key=lambda message: message.turn)


def _message(text: str, needles: Needles, limit: int) -> str:
    """Return the beginning of a message and the passage that matches most, or the beginning alone if it holds that."""
    if len(text) <= limit:
        return text
    head = text[: max(0, limit - len(ELLIPSIS))].rstrip() + ELLIPSIS
    if _value(fold(head).lower(), needles) + TIE >= _value(fold(text).lower(), needles) or limit < 2 * HEAD_CHARS:
        return head
    begun = _to_word(text[:HEAD_CHARS])
    joint = f" {ELLIPSIS} "
    passage = _passage(text[len(begun) :].lstrip(), needles, limit - len(begun) - len(joint)).removeprefix(ELLIPSIS)
    return f"{begun}{joint}{passage}"


def _to_word(text: str) -> str:
    """Return the text without a word that may be cut at its end."""
    cut = text.rfind(" ")
    return text[:cut] if cut > len(text) // 2 else text


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


def _passage(line: str, needles: Needles, limit: int) -> str:
    """Return the part of a long line in which the most words are found close together."""
    room = limit - 2 * len(ELLIPSIS)
    if len(line) <= room:
        return line
    folded = fold(line).lower()  # may be some characters longer or shorter: the cut need not be exact
    found = sorted((at, needle, weight) for needle, weight in needles for at in _places(folded, needle))
    best, best_value = 0, -1.0
    for first, _, _ in found:
        inside = {needle: weight for at, needle, weight in found if first <= at < first + room * 3 // 4}
        if (value := sum(inside.values())) > best_value + TIE:
            best, best_value = first, value
    start = max(0, min(best - room // 4, len(line) - room))
    piece = line[start : start + room]
    return f"{ELLIPSIS if start else ''}{piece}{ELLIPSIS if start + room < len(line) else ''}"


def _places(folded: str, needle: str) -> list[int]:
    """Return where the needle stands, the first few times."""
    found: list[int] = []
    at = folded.find(needle)
    while at >= 0 and len(found) < 8:
        found.append(at)
        at = folded.find(needle, at + len(needle))
    return found


def _needles(weights: Mapping[str, float]) -> Needles:
    """Return what of the stemmed terms stands in a text as it is written: `librari` stems `library` and `libraries`.

    Each counts by the root of its weight: a rare word draws more than common ones, but not more than several.
    """
    return [(needle, math.sqrt(weight)) for term, weight in weights.items() for needle in _forms(term)]


@lru_cache(maxsize=512)  # every hit of a question asks for the same ones
def _forms(term: str) -> tuple[str, ...]:
    whole = term[:-1] if len(term) > 4 and term.isascii() and term.isalpha() else term
    return whole, *irregular_forms(term)


def _value(folded_line: str, needles: Needles) -> float:
    return sum(weight for needle, weight in needles if needle in folded_line)
