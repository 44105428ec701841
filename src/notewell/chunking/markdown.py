"""Splits Markdown into chunks at headings, paragraphs and list items; the default.

A chunk is a run of whole lines. It ends before the next section once it is reasonably full, else at the best break that
still fits. A line too long for a chunk is cut into pieces. Neighbouring chunks of one section overlap by whole lines.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from notewell.chunking.lines import QUARTERS, cut_at_or_before, cut_line, fitting_end, weigh
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
        Chunk(at + run.first + 1, at + run.stop, _text_of(run, part.lines), trail.above(at + run.fresh), label=label)
        for at, part, label in _parts_of(note, first, entries)
        for run in _runs(part, limit, shared)
    ]


def _parts_of(note: Outline, first: int, entries: Sequence[Entry]) -> Iterator[tuple[int, Outline, EntryLabel | None]]:
    """Yield the lines from `first` on as entries and what lies between them; no chunk holds lines of two."""
    for entry in entries:
        start = entry.first_line - 1
        while start > first and (start - 1 in note.heading_lines or not note.lines[start - 1].strip()):
            start -= 1
        if first < start:
            yield first, note.part(first, start), None
        yield start, note.part(start, entry.last_line), entry.label
        first = entry.last_line
    yield first, note.part(first, len(note.lines)), None


def _text_of(run: _Run, lines: Sequence[str]) -> str:
    if run.piece is None:
        return "\n".join(lines[run.first : run.stop])
    start, end = run.piece
    return "\n".join([*lines[run.first : run.stop - 1], lines[run.stop - 1][start:end]])


def _runs(note: Outline, limit: int, overlap: int) -> Iterator[_Run]:
    """Yield the runs of a part of a note; every line that is not blank is in one."""
    count = len(note.lines)
    sections = [h.line for h in note.headings if h.level <= SECTION_LEVELS and note.break_before[h.line]]
    start = fresh = _skip_blank(note, 0)
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
    """Return whether a chunk would be nothing but headings because the line below them is too long to join them."""
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
    """The headings above a line; lines must be queried in ascending order."""

    def __init__(self, headings: Sequence[Heading], title: str) -> None:
        self._headings = headings
        self._title = " ".join(title.split())
        self._next = 0
        self._open: list[Heading] = []

    def above(self, line: int) -> str:
        """Return "Title > Heading > Heading" for a line, without the line itself."""
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


# --- the structure of a note ---------------------------------------------------------------------

# How good it is to begin a chunk with a line, by what the line is. Ranks, not measurements: only their order and rough
# distance count, as a break loses worth with the square of the room it leaves unused.
BREAK_BEFORE = {
    "heading 1": 100,
    "heading 2": 90,
    "heading 3": 80,
    "heading 4": 70,
    "heading 5": 60,
    "heading 6": 50,
    "rule": 50,
    "fence": 45,
    "paragraph": 40,  # anything after a blank line
    "long line": 40,
    "item": 20,
    "nested item": 10,
    "sentence": 6,  # any line after one that ends a sentence
    "line": 4,
    "table row": 2,
    "code after blank": 2,
    "code": 1,
    "never": 0,  # blank lines, and lines that a heading stands right above: a heading must not end a chunk
}

# A line that begins with none of these is plain text; "" is the empty line.
_BLANKS = " \t\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_FIRST_CHARACTERS = frozenset(["", *"#`~=-*+_|0123456789", *_BLANKS])
_KIND = re.compile(
    r"""
      (?P<blank>\s*$)
    | [ ]{0,3}(?P<heading>\#{1,6})(?:[ \t]|$)
    | [ ]{0,3}(?P<fence>`{3,}(?=[^`]*$)|~{3,})
    | [ ]{0,3}(?P<underline>={2,}|-{2,})[ \t]*$
    | [ ]{0,3}(?P<rule>\*[ \t]*\*[ \t]*\*[* \t]*|_[ \t]*_[ \t]*_[_ \t]*|-[ \t]*-[ \t]*-[- \t]*)$
    | (?P<item>[ \t]*)(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)
    | [ ]{0,3}(?P<row>\|)
    """,
    re.VERBOSE,
)

_ANY_MARKUP = re.compile(r"[<{\[`*~_]")  # what every pattern below begins with
LONGEST_HEADING = 300  # characters; a context has no room for more, and unclosed links are slow to match
_MARKUP = (
    (re.compile(r"<!--.*?-->|\{#[^}]*\}[ \t]*$"), ""),
    (re.compile(r"!?\[\[(?:[^\]|]*\|)?([^\]]*)\]\]"), r"\1"),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"`+|\*+|~~"), ""),
    (re.compile(r"(?<!\w)_+|_+(?!\w)"), ""),
)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading outside any code block."""

    line: int  # 0-based
    level: int  # 1 to 6
    text: str  # without markup


@dataclass(frozen=True, slots=True)
class Outline:
    """A note's lines with all that is needed to break it well. Lines are counted from 0 here."""

    lines: Sequence[str]
    weight_above: Sequence[int]  # quarter tokens of all lines above, their newlines included; one entry more than lines
    break_before: Sequence[int]  # a value of BREAK_BEFORE a line
    headings: Sequence[Heading]
    heading_lines: frozenset[int]  # the underlines of headings, too

    def weight(self, first: int, stop: int) -> int:
        """Return what the lines from `first` up to, not with, `stop` weigh when joined."""
        return self.weight_above[stop] - self.weight_above[first] - 1

    def part(self, first: int, stop: int) -> Outline:
        """Return the outline of the lines from `first` up to, not with, `stop`, which are counted from 0 in it."""
        return Outline(
            lines=self.lines[first:stop],
            weight_above=self.weight_above[first : stop + 1],
            break_before=self.break_before[first : stop + 1],
            headings=[replace(each, line=each.line - first) for each in self.headings if first <= each.line < stop],
            heading_lines=frozenset(line - first for line in self.heading_lines if first <= line < stop),
        )


def outline(lines: Sequence[str], *, first: int, limit: int) -> Outline:
    """Return the outline of `lines` from line `first` on; a line heavier than `limit` is a good place to break."""
    weights = [len(line) + 1 if line.isascii() else weigh(line) + 1 for line in lines]
    reader = _Reader(lines, first)
    reader.read()
    for line, weight in enumerate(weights):
        if weight > limit and reader.breaks[line]:
            reader.breaks[line] = max(reader.breaks[line], BREAK_BEFORE["long line"])
    return Outline(
        lines=lines,
        weight_above=[0, *accumulate(weights)],
        break_before=reader.breaks,
        headings=reader.headings,
        heading_lines=frozenset(reader.heading_lines),
    )


def plain_heading(text: str) -> str:
    """Return a heading's text as a reader sees it: no links, emphasis, code marks, comments or anchors."""
    text = text[:LONGEST_HEADING]
    if _ANY_MARKUP.search(text):
        for pattern, replacement in _MARKUP:
            text = pattern.sub(replacement, text)
    return " ".join(text.split())


def _without_closing_marks(heading: str) -> str:
    """Return a heading without the marks that may end it after a blank: `# Birds ##` is `Birds`."""
    bare = heading.rstrip(" \t").rstrip("#")
    return bare if not bare or bare[-1] in " \t" else heading


class _Reader:
    """Goes once over the lines that are more than plain text; plain lines keep the score they start with."""

    def __init__(self, lines: Sequence[str], first: int) -> None:
        self.lines = lines
        self.first = first
        self.breaks = [BREAK_BEFORE["line"]] * (len(lines) + 1)
        self.headings: list[Heading] = []
        self.heading_lines: set[int] = set()
        self._kinds: dict[int, str] = {}  # of the lines that are more than plain text
        self._held = -1  # the line that must stay with the heading above it
        self._fence = ""  # what opened the code block the reader is in
        self._fence_line = -1

    def read(self) -> None:
        lines, kind_of = self.lines, _KIND.match
        for number in [n for n in range(self.first, len(lines)) if lines[n][:1] in _FIRST_CHARACTERS]:
            found = kind_of(lines[number])
            if found is None or found.lastgroup is None:
                continue
            if self._fence:
                if found.lastgroup == "fence" and self._closes(lines[number]):
                    self._end_code(number + 1)
                continue
            self._take(number, found.lastgroup, found)
        if self._fence:
            self._end_code(len(lines))

    def _take(self, number: int, kind: str, found: re.Match[str]) -> None:
        if kind == "underline":
            if self._is_underlined(number):
                self._kinds[number] = "heading"
                self._add_heading(number - 1, 1 if found[kind][0] == "=" else 2, self.lines[number - 1], underline=1)
                return
            kind = "rule" if found[kind].startswith("---") else "text"
        self._kinds[number] = kind
        if kind == "blank":
            self.breaks[number] = BREAK_BEFORE["never"]
            self._follow(number, BREAK_BEFORE["paragraph"])
        elif kind == "heading":
            marks = found["heading"]
            self._add_heading(
                number, len(marks), _without_closing_marks(self.lines[number][found.end() :]), underline=0
            )
        elif kind == "fence":
            self._fence, self._fence_line = found["fence"], number
            self._score(number, "fence")
        elif kind == "item":
            self._score(number, "nested item" if len(found["item"]) > 1 else "item")
        elif kind in {"rule", "row"}:
            self._score(number, "rule" if kind == "rule" else "table row")

    def _score(self, number: int, what: str) -> None:
        """A table row after a blank line is worth a paragraph, but within its table less than a plain line."""
        if number == self._held:
            return
        above = self.breaks[number] if self.breaks[number] > BREAK_BEFORE["line"] else 0
        self.breaks[number] = max(BREAK_BEFORE[what], above)

    def _follow(self, number: int, score: int) -> None:
        """Score the line below a blank line, or hold it to the heading above the blank line."""
        if self._held == number:
            self._held, score = number + 1, BREAK_BEFORE["never"]
        self.breaks[number + 1] = score

    def _add_heading(self, number: int, level: int, text: str, *, underline: int) -> None:
        if number != self._held:
            self.breaks[number] = BREAK_BEFORE[f"heading {level}"]
        self._held = number + underline + 1
        self.breaks[number + 1] = self.breaks[self._held] = BREAK_BEFORE["never"]
        self.headings.append(Heading(number, level, plain_heading(text)))
        self.heading_lines.update(range(number, self._held))

    def _is_underlined(self, number: int) -> bool:
        """Return whether the line above is a paragraph of its own; longer paragraphs are rarely meant as headings."""
        above = number - 1
        return (
            above >= self.first
            and above not in self._kinds
            and not self.lines[above].startswith(("    ", "\t"))
            and (above == self.first or self._kinds.get(above - 1) in {"blank", "heading"})
        )

    def _closes(self, line: str) -> bool:
        marks = line.strip(" \t")
        return len(marks) >= len(self._fence) and set(marks) == {self._fence[0]}

    def _end_code(self, stop: int) -> None:
        blank, code = BREAK_BEFORE["code after blank"], BREAK_BEFORE["code"]
        for number in range(self._fence_line + 1, stop):
            self.breaks[number] = code if self.lines[number - 1].strip() else blank
        self._fence = ""
