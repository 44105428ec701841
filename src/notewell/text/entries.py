"""Reads and writes the entries of notes: a remembered text followed by an HTML comment with its metadata.

    The guest wifi is heron-guest.
    <!-- notewell id=k3f9a2qx date=2026-11-18T14:30:05+02:00 author=main source="command line" category=fact
    importance=5 -->

in one line. docs/concepts.md describes the format. Notes of earlier releases contain `_Noted 2026-11-18 14:30 +0200 by
main, from command line._` a blank line below the text; such entries are read, too.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, get_args

from notewell.errors import NotewellError, RememberError
from notewell.text import valid_unicode
from notewell.types import Category, EntryLabel

CATEGORIES: tuple[Category, ...] = get_args(Category)
CATEGORY: Category = "other"  # the default
IMPORTANCES = range(1, 11)
IMPORTANCE = 5  # the default
ID_LENGTH = 8  # 40 bits: a collision among 10,000 entries in one of 20,000 workspaces

_COMMENT = re.compile(r"[ \t]*<!--[ \t]*notewell\b(?P<attributes>.*)-->[ \t]*")
_NOTED = re.compile(  # the format of earlier releases
    r"_Noted (?P<date>\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2})?(?: [+-]\d{4})?)"
    r" by (?=.*\._[ \t]*\Z)(?P<author>.*?), from (?P<source>.*)\._[ \t]*"  # the end first: `from` may recur
)
_ATTRIBUTE = re.compile(r'(?<![a-z-])([a-z-]+)=(?:"([^"]*)"|([^\s"]+))')
_REFERENCE = re.compile(r"&#?\w{1,8};", re.ASCII)  # Python cannot parse longer numbers
_BARE_VALUE = re.compile(r"[\w.:+@/]+(?:-[\w.:+@/]+)*", re.ASCII)
_LOOKALIKE = re.compile(rf"([ \t]*+)(\\*+)({_COMMENT.pattern}|{_NOTED.pattern})")  # escaped or not
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")


@dataclass(frozen=True, slots=True)
class Entry:
    """A remembered text with its metadata. Lines are 1-based; 0 if it is not written yet."""

    text: str
    id: str = ""  # short and stable; empty: derived from the text and metadata
    date: datetime | None = None  # None: unknown
    author: str = ""  # an agent or a person
    source: str = ""  # "command line", "session 7f3a", a program
    category: Category = CATEGORY
    importance: int = IMPORTANCE
    replaces: tuple[str, ...] = ()  # ids of older entries
    replaced_by: str = ""  # id of the newer entry
    replaced_at: datetime | None = None
    chat: str = ""  # the group that wrote it, see `Audience.label`; empty: a direct chat
    line_count: int = 0  # lines of the text, if there is no blank line above it; else 0
    first_line: int = 0
    last_line: int = 0  # of the text
    comment_line: int = 0

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", _made_id(self))

    @property
    def label(self) -> EntryLabel:
        """The part that is stored in the index."""
        return EntryLabel(self.id, self.category, self.importance)

    @property
    def comment(self) -> str:
        """The line below the text."""
        blocks = _count_blocks(self.text)
        values: Mapping[str, str] = {
            "id": self.id,
            "date": _written_time(self.date),
            "author": self.author,
            "source": self.source,
            "chat": self.chat,
            "category": self.category,
            "importance": str(self.importance),
            "replaces": ",".join(self.replaces),
            "replaced-by": self.replaced_by,
            "replaced-at": _written_time(self.replaced_at),
            "blocks": str(blocks) if blocks > 1 else "",
            "lines": str(self.line_count) if self.line_count else "",
        }
        named = [f"{name}={_written_value(value)}" for name, value in values.items() if value]
        return f"<!-- notewell {' '.join(named)} -->"

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines to write into a note; `find_entries` reads the same text back.

        The text must come from `closed_text`. Lines of it that look like the end of an entry are escaped with a
        backslash, which Markdown does not show.
        """
        lines = self.text.split("\n")
        for number in _outside_code(lines)[0]:
            if found := _LOOKALIKE.fullmatch(lines[number]):
                lines[number] = f"{found[1]}\\{found[2]}{found[3]}"
        return (*lines, self.comment)


class FoundEntries(NamedTuple):
    """The entries of a note in order, and the lines of their comments, which are not searched."""

    entries: tuple[Entry, ...]
    comment_lines: frozenset[int]  # 1-based; also comments without a text


# --- reading -------------------------------------------------------------------------------------


def find_entries(text: str, *, body_first_line: int = 1) -> FoundEntries:
    """Return the entries of a note, whose line endings must be newlines. Comments in code blocks are ignored."""
    if "<!--" not in text and "_Noted " not in text:
        return FoundEntries((), frozenset())
    lines = text.split("\n")
    entries: list[Entry] = []
    comments: set[int] = set()
    outside = dict.fromkeys(_outside_code(lines, body_first_line - 1)[0])
    top = body_first_line - 1  # no entry begins above the end of the one before it
    for number in outside:
        facts = _facts_of(lines[number])
        if facts is None:
            continue
        comments.add(number + 1)
        count = _positive(facts.get("lines"))
        span = _text_above(lines, number, top, _positive(facts.get("blocks")) or 1)
        if count and span is not None:
            span = range(max(span.start, span.stop - count), span.stop)
        if span is not None:
            entries.append(replace(_entry(lines, span, outside, facts), comment_line=number + 1))
        top = number + 1
    return FoundEntries(tuple(entries), frozenset(comments))


def without_comments(text: str, found: FoundEntries | None = None) -> str:
    """Return a note with the comments of entries blanked; line numbers stay the same."""
    comments = (found or find_entries(text)).comment_lines
    if not comments:
        return text
    return "\n".join("" if number in comments else line for number, line in enumerate(text.split("\n"), start=1))


def changed_comments(text: str, gone: Collection[int]) -> dict[int, str | None]:
    """Return the new comments, by line, after removing lines of a note; None if the comment is removed, too."""
    lines = text.split("\n")
    changed: dict[int, str | None] = {}
    for entry in find_entries(text).entries:
        own = range(entry.first_line, entry.last_line + 1)
        if not any(number in gone for number in own):
            continue
        kept = "\n".join(lines[number - 1] for number in own if number not in gone)
        if not kept.strip():
            changed[entry.comment_line] = None
        elif _COMMENT.fullmatch(lines[entry.comment_line - 1]):
            count = kept.count("\n") + 1 if entry.line_count else 0
            changed[entry.comment_line] = replace(entry, text=kept, line_count=count).comment
    return changed


def _facts_of(line: str) -> Mapping[str, str] | None:
    """Return the attributes in a comment line; None for other lines."""
    if found := _COMMENT.fullmatch(line):
        pairs = _ATTRIBUTE.findall(found["attributes"])
        return {name: _REFERENCE.sub(_character, quoted or bare) for name, quoted, bare in pairs}
    return noted.groupdict() if (noted := _NOTED.fullmatch(line)) else None


def _character(reference: re.Match[str]) -> str:
    import html  # takes a millisecond

    return html.unescape(reference[0])


def _text_above(lines: Sequence[str], comment: int, top: int, blocks: int) -> range | None:
    """Return the 0-based lines of an entry's text; None if there is none.

    One blank line between text and comment is allowed: formatters and earlier releases put one there.
    """
    stop = comment - 1 if comment > top and not lines[comment - 1].strip() else comment
    first = stop
    for _ in range(blocks):
        end = first
        while first < stop and end > top and not lines[end - 1].strip():
            end -= 1
        start = end
        while start > top and lines[start - 1].strip():
            start -= 1
        if start == end:
            break
        first = start
    return range(first, stop) if first < stop else None


def _entry(lines: Sequence[str], span: range, outside: Collection[int], facts: Mapping[str, str]) -> Entry:
    importance = _positive(facts.get("importance"))
    return Entry(
        text="\n".join(_unescaped(lines[number]) if number in outside else lines[number] for number in span),
        id=facts.get("id", ""),
        date=_read_time(facts.get("date")),
        author=facts.get("author", ""),
        source=facts.get("source", ""),
        chat=facts.get("chat", ""),
        category=next((each for each in CATEGORIES if each == facts.get("category")), CATEGORY),
        importance=importance if importance in IMPORTANCES else IMPORTANCE,
        replaces=tuple(filter(None, facts.get("replaces", "").split(","))),
        replaced_by=facts.get("replaced-by", ""),
        replaced_at=_read_time(facts.get("replaced-at")),
        line_count=_positive(facts.get("lines")),
        first_line=span.start + 1,
        last_line=span.stop,
    )


def _unescaped(line: str) -> str:
    found = _LOOKALIKE.fullmatch(line)
    return f"{found[1]}{found[2][1:]}{found[3]}" if found else line


def _positive(value: str | None) -> int:
    """Return a positive number of up to five digits; 0 for anything else."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 6 else 0


def _read_time(value: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(re.sub(r" (?=[+-]\d{4}$)", "", value)) if value else None
    except ValueError:
        return None


# --- writing -------------------------------------------------------------------------------------


def closed_text(text: str) -> str:
    """Return the text with its last code block closed."""
    marks = open_code_block(text)
    return f"{text}\n{marks}" if marks else text


def open_code_block(text: str) -> str:
    """Return the marks that close the code block left open by a text; empty if there is none."""
    return _outside_code(text.split("\n"))[1] if "```" in text or "~~~" in text else ""


def _written_time(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat(timespec="seconds")


def _written_value(value: str) -> str:
    """Return the value of an attribute, escaped so that it cannot end the comment."""
    value = " ".join(valid_unicode(value.replace("\0", "")).split())
    if _BARE_VALUE.fullmatch(value):
        return value
    import html

    return '"' + html.escape(value).replace("--", "-&#45;").replace("--", "-&#45;") + '"'


def _made_id(entry: Entry) -> str:
    about = "\n".join([entry.text, entry.date.isoformat() if entry.date else "", entry.author, entry.source])
    digest = hashlib.sha256(about.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest).decode()[:ID_LENGTH].lower()


def _count_blocks(text: str) -> int:
    """Return the number of paragraphs in a text."""
    filled = [bool(line.strip()) for line in text.split("\n")]
    return sum(now and not before for before, now in zip([False, *filled], filled, strict=False))


# --- code blocks ---------------------------------------------------------------------------------


def _outside_code(lines: Sequence[str], first: int = 0) -> tuple[list[int], str]:
    """Return the 0-based lines outside code blocks, and the marks of a block left open at the end."""
    outside: list[int] = []
    marks = ""
    for number in range(first, len(lines)):
        found = _FENCE.match(lines[number])
        if not marks and found:
            marks = found[1]
        elif not marks:
            outside.append(number)
        elif found and (closing := lines[number].strip(" \t")).startswith(marks) and not closing.strip(marks[0]):
            marks = ""
    return outside, marks


# --- values --------------------------------------------------------------------------------------


def checked_category(value: object, error: type[NotewellError] = RememberError) -> Category:
    """Return the category; raises `error` if it is invalid."""
    for category in CATEGORIES:
        if value == category:
            return category
    raise error(f"there is no category {value!r}", hint=f"use one of: {', '.join(CATEGORIES)}")


def checked_importance(value: object) -> int:
    """Return the importance; raise RememberError for anything but a whole number from 1 to 10."""
    if not isinstance(value, int) or isinstance(value, bool) or value not in IMPORTANCES:
        raise RememberError(f"importance must be a whole number from 1 to 10, got {value!r}", hint="10 matters most")
    return value
