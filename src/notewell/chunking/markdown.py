"""Splits a document into chunks at headings, paragraphs and list items; the default.

A chunk is a run of whole lines. It ends before the next section once it is reasonably full, else at the best break that
still fits. A line too long for a chunk is cut into pieces. Neighbouring chunks of one section overlap by whole lines.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from notewell.chunking.fitting import QUARTERS, cut_at_or_before, cut_line, fitting_end, weigh
from notewell.chunking.outline import BREAK_BEFORE, Heading, Outline, outline
from notewell.text.entries import Entry
from notewell.types import Chunk, Document, EntryLabel

SECTION_LEVELS = 2  # headings of the first two levels begin a new subject
# Percent of the limit a chunk must hold before a new subject ends it: tiny sections share a chunk. The lower, the
# sooner chunks fall into step again after an edit above: over 60 notes of 40 short sections, a line on top leaves 95 %
# of the chunks as they were at 15, 92 % at 20 and 89 % (at worst half) at 25.
SECTION_FILL = 15
LEAST_FILL = 25  # percent of the limit below which no break is looked for unless nothing else is left
MOST_LEAD = 50  # percent of the limit that headings may take from the first piece of a long line below them
CONTEXT_WEIGHT = 120  # quarter tokens, so that text and context stay below the 512 tokens local models read
_SENTENCE_ENDS = frozenset(".!?。！？…")


@dataclass(frozen=True, slots=True)
class _Run:
    """Lines for one chunk, counted from 0; `piece` is the part of the last line, if it is cut."""

    first: int
    fresh: int  # the first line that no chunk above holds
    stop: int  # exclusive
    piece: tuple[int, int] | None = None


def chunk_markdown(
    document: Document, *, tokens: int = 400, overlap: int = 80, entries: Sequence[Entry] = ()
) -> list[Chunk]:
    """Return the chunks of a document, each of at most `tokens` with its overlap, in order.

    A chunk's text is exactly the lines of its span, but for lines that had to be cut. Front matter is left out, its
    title leads every context. Each of the `entries` begins and ends a chunk; headings right above go with it.
    """
    limit = max(1, tokens) * QUARTERS
    # At most half, in whole tokens: whatever the settings say, a chunk must bring something new.
    shared = max(0, min(overlap, tokens // 2)) * QUARTERS
    lines = document.text.split("\n")
    first = min(document.body_first_line - 1, len(lines))
    note = outline(lines, first=first, limit=limit)
    trail = _Trail(note.headings, document.metadata.get("title", ""))
    return [
        Chunk(run.first + 1, run.stop, _text_of(run, lines), trail.above(run.fresh), label=label)
        for start, stop, label in _sections_of(note, first, entries)
        for run in _runs_within(note, start, stop, limit, shared)
    ]


def _sections_of(note: Outline, first: int, entries: Sequence[Entry]) -> Iterator[tuple[int, int, EntryLabel | None]]:
    """Yield the lines from `first` on as entries and what lies between them; no chunk holds lines of two."""
    for entry in entries:
        start = entry.first_line - 1
        while start > first and (start - 1 in note.heading_lines or not note.lines[start - 1].strip()):
            start -= 1
        if first < start:
            yield first, start, None
        yield start, entry.last_line, entry.label
        first = entry.last_line
    yield first, len(note.lines), None


def _runs_within(note: Outline, first: int, stop: int, limit: int, overlap: int) -> Iterator[_Run]:
    if stop == len(note.lines):
        yield from _runs(note, first, limit, overlap)
        return
    for run in _runs(note.part(first, stop), 0, limit, overlap):
        yield replace(run, first=run.first + first, fresh=run.fresh + first, stop=run.stop + first)


def _text_of(run: _Run, lines: Sequence[str]) -> str:
    if run.piece is None:
        return "\n".join(lines[run.first : run.stop])
    start, end = run.piece
    return "\n".join([*lines[run.first : run.stop - 1], lines[run.stop - 1][start:end]])


def _runs(note: Outline, first: int, limit: int, overlap: int) -> Iterator[_Run]:
    """Yield the runs of the note from line `first` on; every line that is not blank is in one."""
    count = len(note.lines)
    sections = [h.line for h in note.headings if h.level <= SECTION_LEVELS and note.break_before[h.line]]
    fresh = _skip_blank(note, first)
    start = fresh
    while fresh < count:
        start = _overlap_start(note, start, fresh, limit, overlap)
        furthest = _skip_blank(note, bisect_right(note.weight_above, note.weight_above[start] + limit + 1) - 1)
        stop = _best_stop(note, sections, start=start, fresh=fresh, furthest=furthest, limit=limit)
        if stop <= fresh or _only_headings_fit(note, start, stop, limit):
            yield from _cut_runs(note, start, max(stop, fresh), limit, overlap)
            stop = max(stop, fresh) + 1
        else:
            yield _Run(start, fresh, _trimmed(note, fresh, stop))
        fresh = _skip_blank(note, stop)


def _skip_blank(note: Outline, line: int) -> int:
    while line < len(note.lines) and not note.lines[line].strip():
        line += 1
    return line


def _trimmed(note: Outline, first: int, stop: int) -> int:
    while stop > first + 1 and not note.lines[stop - 1].strip():
        stop -= 1
    return stop


def _overlap_start(note: Outline, above: int, fresh: int, limit: int, overlap: int) -> int:
    """Return the line where the chunk of `fresh` begins: later than `above`, where the last chunk began."""
    if fresh in note.heading_lines:
        return fresh
    start = fresh
    earliest = note.weight_above[fresh] - overlap
    while start - 1 > above and note.weight_above[start - 1] >= earliest and start - 1 not in note.heading_lines:
        start -= 1
    while start < fresh and (not note.lines[start].strip() or note.weight(start, fresh + 1) > limit):
        start += 1
    return start


def _best_stop(note: Outline, sections: Sequence[int], *, start: int, fresh: int, furthest: int, limit: int) -> int:
    """Return the line to stop before: a new subject, else the best break, else `furthest`, which just fits."""
    filled = note.weight_above[start]
    full_enough = bisect_left(note.weight_above, filled + limit * SECTION_FILL // 100)
    section = bisect_left(sections, max(full_enough, fresh + 1))
    if section < len(sections) and sections[section] <= furthest:
        return sections[section]
    if furthest >= len(note.lines):
        return furthest
    least = max(bisect_left(note.weight_above, filled + limit * LEAST_FILL // 100), fresh + 1)
    best, best_worth = 0, 0
    for line in range(furthest, least - 1, -1):
        score = note.break_before[line]
        if score == BREAK_BEFORE["line"] and note.lines[line - 1][-1:] in _SENTENCE_ENDS:
            score = BREAK_BEFORE["sentence"]
        worth = score * (note.weight_above[line] - filled) ** 2
        if worth > best_worth:
            best, best_worth = line, worth
    if best:
        return best
    return next((line for line in range(min(least, furthest), fresh, -1) if note.break_before[line]), furthest)


def _only_headings_fit(note: Outline, start: int, stop: int, limit: int) -> bool:
    """Say whether a chunk would be nothing but headings because the line below them is too long to join them."""
    if stop >= len(note.lines) or stop in note.heading_lines or start not in note.heading_lines:
        return False
    lead = note.weight_above[stop] - note.weight_above[start]
    return (
        note.break_before[stop] == BREAK_BEFORE["never"]
        and lead <= min(limit * MOST_LEAD // 100, limit - QUARTERS)
        and all(line in note.heading_lines or not note.lines[line].strip() for line in range(start, stop))
    )


def _cut_runs(note: Outline, start: int, line: int, limit: int, overlap: int) -> Iterator[_Run]:
    """Yield the pieces of one line; the first takes the headings from `start` on along."""
    text = note.lines[line]
    lead = note.weight_above[line] - note.weight_above[start]
    for first, end in cut_line(text, limit=limit, overlap=overlap, first_limit=limit - lead):
        piece = text[first:end].rstrip()
        if piece:
            yield _Run(start, start, line + 1, (first, first + len(piece)))
        elif start < line and start in note.heading_lines:  # only blanks of the line fit below the headings
            yield _Run(start, start, _trimmed(note, start, line))
        start = line


class _Trail:
    """The headings that stand over a line; asked for lines in rising order."""

    def __init__(self, headings: Sequence[Heading], title: str) -> None:
        self._headings = headings
        self._title = " ".join(title.split())
        self._next = 0
        self._open: list[Heading] = []

    def above(self, line: int) -> str:
        """Return "Title > Heading > Heading" for a line, without a heading that is the line itself."""
        while self._next < len(self._headings) and self._headings[self._next].line < line:
            self._enter(self._headings[self._next])
            self._next += 1
        own = self._headings[self._next] if self._next < len(self._headings) else None
        names = [h.text for h in self._open if h.text]
        first_heading = names[0] if names else ""
        if own is not None and own.line == line:
            names = [h.text for h in self._open if h.text and h.level < own.level]
            first_heading = names[0] if names else own.text
        if self._title and self._title.casefold() != first_heading.casefold():
            names.insert(0, self._title)
        return _shortened(names)

    def _enter(self, heading: Heading) -> None:
        while self._open and self._open[-1].level >= heading.level:
            self._open.pop()
        self._open.append(heading)


def _shortened(names: list[str]) -> str:
    """Return the trail with the outermost names left out until it is light enough; the innermost may be cut."""
    while len(names) > 1 and weigh(" > ".join(names)) > CONTEXT_WEIGHT:
        names = names[1:]
    trail = " > ".join(names)
    end = fitting_end(trail, 0, CONTEXT_WEIGHT)
    return trail if end == len(trail) else trail[: cut_at_or_before(trail, end, 0)].rstrip()
