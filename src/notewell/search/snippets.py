"""Decides what a hit shows: neighbouring chunks as one hit, the part of them that matches, and the lines to cite."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from notewell.search.query import query_terms
from notewell.text.lexicon import fold, irregular_forms, words
from notewell.types import SpokenLine

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from notewell.protocols import Snapshot
    from notewell.types import StoredChunk

SNIPPET_CHARS = 700  # as in OpenClaw
LEAST_SHOWN = SNIPPET_CHARS // 2  # characters of each message in a snippet of several, or all of a shorter one
HEAD_CHARS = 160  # of a long message, before the passage that matches: who speaks, and about what
AROUND = 2  # messages before and after those that match, as far as there is room
ELLIPSIS = "…"
TIE = 1e-9  # sums of the same weights in another order

_WRITTEN = re.compile(r"\w+(?:[-./@:+#'’]\w+)*")  # a word, a name or a number as it is written

_PART = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

Needles = list[tuple[str, float]]


class Shown(NamedTuple):
    """The lines that a hit cites, and what it shows of them."""

    first_line: int
    last_line: int
    snippet: str
    turns: tuple[int, ...] = ()  # the messages in it


def shown_of(
    snapshot: Snapshot, chunks: Sequence[StoredChunk], weights: Mapping[str, float], told: Collection[int] = ()
) -> Shown:
    """Return what a hit shows of its chunks, the best of which comes first; `weights` are of the question's terms.

    Messages that better hits show (`told`) are not repeated around the ones that match.
    """
    best = chunks[0]
    if not best.turn:
        text = (lines_text(chunks) if len(chunks) > 1 else None) or best.text
        first_line, last_line = min(chunk.first_line for chunk in chunks), max(chunk.last_line for chunk in chunks)
        return Shown(first_line, last_line, make_snippet(text, weights))
    said: dict[int, SpokenLine] = {}
    for chunk in chunks:  # of a long message, the piece that matches best
        said.setdefault(chunk.turn, SpokenLine(chunk.first_line, chunk.text, chunk.turn))
    matching = [said[turn] for turn in sorted(said)]
    around = _around(matching[0].turn, matching[-1].turn, told)
    shown = message_snippet(matching, snapshot.messages(best.path, around) if around else (), weights)
    text = "\n".join(message.text for message in shown)
    return Shown(shown[0].line, shown[-1].line, text, tuple(message.turn for message in shown))


def _around(first: int, last: int, told: Collection[int]) -> list[int]:
    """Return the turns next to these, up to one that a better hit shows."""
    after = takewhile(lambda turn: turn not in told, range(last + 1, last + 1 + AROUND))
    before = takewhile(lambda turn: turn not in told, range(first - 1, first - 1 - AROUND, -1))
    return [*after, *before]


# --- neighbouring chunks -------------------------------------------------------------------------


def joined_groups(chunks: Sequence[StoredChunk]) -> list[list[int]]:
    """Return the positions of the ranked chunks in groups that make one hit each, in the order of their best member.

    Chunks of a note are joined while they touch or overlap, are of the same entry or of none, and fit into a snippet
    together; messages of a conversation while they follow one another and a good part of each fits, pieces of one
    message always. Groups grow in rank order, so a better chunk chooses first.
    """
    by_file: defaultdict[tuple[str, str], list[list[int]]] = defaultdict(list)
    for position, chunk in enumerate(chunks):
        groups = by_file[chunk.source, chunk.path]
        for group in groups:
            if _fits(chunk, [chunks[member] for member in group]):
                group.append(position)
                break
        else:
            groups.append([position])
    return sorted((group for groups in by_file.values() for group in groups), key=min)


def _fits(chunk: StoredChunk, group: Sequence[StoredChunk]) -> bool:
    if not chunk.turn:
        if chunk.label != group[0].label:
            return False
        touching = any(c.first_line - 1 <= chunk.last_line and chunk.first_line - 1 <= c.last_line for c in group)
        return touching and len(lines_text([*group, chunk]) or "") in range(1, SNIPPET_CHARS + 1)
    if any(chunk.turn == other.turn for other in group):
        return True
    if all(abs(chunk.turn - other.turn) > 1 for other in group):
        return False
    shown = {c.turn: min(LEAST_SHOWN, len(c.text)) if c.parts == 1 else LEAST_SHOWN for c in (*group, chunk)}
    return sum(shown.values()) <= SNIPPET_CHARS


def lines_text(chunks: Sequence[StoredChunk]) -> str | None:
    """Return the lines that chunks of one note cover together; None if they do not fit together line by line.

    Pieces of a single long line do not: nothing says what lies between them.
    """
    text: dict[int, str] = {}
    for chunk in sorted(chunks, key=lambda c: (c.first_line, c.last_line)):
        lines = chunk.text.split("\n")
        if len(lines) != chunk.last_line - chunk.first_line + 1:
            return None
        for number, line in enumerate(lines, start=chunk.first_line):
            if text.setdefault(number, line) != line:
                return None
    numbers = list(text)
    return "\n".join(text.values()) if numbers == list(range(numbers[0], numbers[-1] + 1)) else None


# --- snippets ------------------------------------------------------------------------------------


def make_snippet(text: str, weights: Mapping[str, float], *, limit: int = SNIPPET_CHARS) -> str:
    """Return at most `limit` characters of `text`: all of it if it fits, else the run of lines that matches most."""
    if len(text) <= limit:
        return text
    lines = text.split("\n")
    needles = _needles(weights)
    start, stop = _densest_run(lines, needles, limit - 2 * (len(ELLIPSIS) + 1))
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
    """Return messages in their order, one per line, cut to at most `limit` characters together.

    Short matching ones stay whole; long ones share the remaining room and show their beginning and the passage that
    matches. What is left goes to the messages around them, the nearest first, and of two the one after them, which may
    be the answer, before the one before.
    """
    needles = _needles(weights)
    room = limit - (len(matching) - 1)
    shown: list[SpokenLine] = []
    by_length = sorted(matching, key=lambda message: len(message.text))
    for number, message in enumerate(by_length):
        share = min(len(message.text), room // (len(matching) - number))
        room -= share
        shown.append(message._replace(text=_message(message.text, needles, share)))
    first, last = matching[0].turn, matching[-1].turn
    for message in sorted(around, key=lambda m: (max(first - m.turn, m.turn - last), -m.turn)):
        room = limit - sum(len(other.text) + 1 for other in shown)
        if room >= min(HEAD_CHARS, len(message.text)):
            whole = len(message.text) <= room
            text = message.text if whole else f"{_to_word(message.text[: room - len(ELLIPSIS)])}{ELLIPSIS}"
            shown.append(message._replace(text=text))
    return sorted(shown, key=lambda message: message.turn)


def _message(text: str, needles: Needles, limit: int) -> str:
    """Return the beginning of a message and the passage that matches most, or only the beginning if that is in it."""
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
    """Return the text without the last word, which may be cut off."""
    cut = text.rfind(" ")
    return text[:cut] if cut > len(text) // 2 else text


def _densest_run(lines: list[str], needles: Needles, limit: int) -> tuple[int, int]:
    """Return the half-open run of lines within `limit` characters with the most matches; the earliest among equals.

    Each further line with the same word counts less: two words of the question say more than one of them twice.
    """
    folded = fold("\n".join(lines)).lower().split("\n")
    matches = [[n for n, (needle, _) in enumerate(needles) if needle in line] for line in folded]
    counts = [0] * len(needles)
    best, best_value = (0, 0), -1.0
    start, size, value = 0, 0, 0.0
    for stop, line in enumerate(lines, start=1):
        size += len(line) + 1
        for n in matches[stop - 1]:
            value += needles[n][1] * (math.sqrt(counts[n] + 1) - math.sqrt(counts[n]))
            counts[n] += 1
        while size > limit and start < stop:
            size -= len(lines[start]) + 1
            for n in matches[start]:
                counts[n] -= 1
                value -= needles[n][1] * (math.sqrt(counts[n] + 1) - math.sqrt(counts[n]))
            start += 1
        if start < stop and value > best_value + TIE:
            best, best_value = (start, stop), value
    values = [sum(needles[n][1] for n in found) for found in matches]
    widest = max(range(len(lines)), key=values.__getitem__)
    if values[widest] > best_value + TIE:  # the line that matches most fits into no run
        return widest, widest
    return _widen(lines, best, limit)


def _widen(lines: list[str], run: tuple[int, int], limit: int) -> tuple[int, int]:
    """Add lines after the run, then before it, while they fit: context is free."""
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
    """Return the first few positions of the needle."""
    found: list[int] = []
    at = folded.find(needle)
    while at >= 0 and len(found) < 8:
        found.append(at)
        at = folded.find(needle, at + len(needle))
    return found


def _needles(weights: Mapping[str, float]) -> Needles:
    """Return what to look for in a text as written: `librar` for `librari`, the stem of `library` and `libraries`.

    Each counts by the root of its weight: a rare word attracts more than a common one, but not more than several.
    """
    return [(needle, math.sqrt(weight)) for term, weight in weights.items() for needle in _forms(term)]


@lru_cache(maxsize=512)  # every hit for a question needs the same ones
def _forms(term: str) -> tuple[str, ...]:
    whole = term[:-1] if len(term) > 4 and term.isascii() and term.isalpha() else term
    return whole, *irregular_forms(term)


# --- marking what matches ------------------------------------------------------------------------


def matched_spans(text: str, query: str) -> list[tuple[int, int]]:
    """Return where a text has words of the query, in whichever form, as half-open spans in order."""
    terms = query_terms(query)
    wanted = {token for term in terms for token in term.tokens}
    beginnings = tuple(term.tokens[-1] for term in terms if term.prefix)
    spans: list[tuple[int, int]] = []
    for found in _WRITTEN.finditer(text):
        piece = fold(found[0])
        known = list(words(piece))
        if any(word.paired for word in known) and len(piece) == len(
            found[0]
        ):  # no blanks: look at every two characters
            for at in range(len(piece)):
                pair = piece[at : at + 2]
                if pair in wanted or (beginnings and pair.startswith(beginnings)):
                    _add_span(spans, found.start() + at, found.start() + at + (2 if pair in wanted else 1))
        elif any(word.whole in wanted for word in known):
            _add_span(spans, *found.span())
        else:  # of a name such as `docker-compose.yml` the part that matches
            for part in _PART.finditer(found[0]):
                if any(term in wanted for word in words(part[0]) for term in (*word.parts, word.whole)):
                    _add_span(spans, found.start() + part.start(), found.start() + part.end())
    return spans


def _add_span(spans: list[tuple[int, int]], start: int, stop: int) -> None:
    if spans and spans[-1][1] >= start:
        spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
    else:
        spans.append((start, stop))


def _value(folded_line: str, needles: Needles) -> float:
    return sum(weight for needle, weight in needles if needle in folded_line)
