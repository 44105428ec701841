"""Reads the structure of a note: its headings, the weight of its lines and the best places to break it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from notewell.chunking.fitting import weigh

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
_ORDINARY_KINDS = {"rule": "rule", "row": "table row"}

_ANY_MARKUP = re.compile(r"[<{\[`*~_]")  # what every pattern below begins with
LONGEST_HEADING = 300  # characters looked at; no context has room for more, and unclosed links are slow to give up
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
        elif kind in _ORDINARY_KINDS:
            self._score(number, _ORDINARY_KINDS[kind])

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
        """Say whether the line above is a paragraph of its own; longer paragraphs are rarely meant as headings."""
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
