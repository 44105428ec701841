"""Reads lines of a memory file, as an agent does after a search."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

from notewell.errors import NoteNotFoundError, NoteUnreadableError, PathRefusedError, QueryError
from notewell.types import NoteText

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notewell.memory.followed import Notes, Transcripts

DEFAULT_LINES = 120
MOST_SIMILAR = 3  # notes that are named where there is none at a path
MOST_CHARS = 12_000  # about 3,000 tokens
MOST_LINES = MOST_CHARS + 1  # with their ends, not even empty ones fit


def read_note(notes: Notes, path: str, *, first_line: int = 1, lines: int | None = None) -> NoteText:
    """Return up to `lines` lines from `first_line` on, whole lines while they fit into the character limit."""
    _check_range(first_line, lines)
    try:
        document = notes.read(notes.stamp_of(path))
    except (NoteNotFoundError, PathRefusedError, FileNotFoundError) as error:  # the last: deleted this very moment
        kind = PathRefusedError if isinstance(error, PathRefusedError) else NoteNotFoundError
        raise kind(path, similar=tuple(_of_the_same_name(notes, path))) from error
    except OSError as error:
        raise NoteUnreadableError(path, error.strerror or str(error)) from error
    every_line = document.text.split("\n")
    if every_line and not every_line[-1]:
        every_line.pop()  # the newline at the end of the file begins no line
    wanted = every_line[first_line - 1 : first_line - 1 + min(lines or DEFAULT_LINES, MOST_LINES)]
    more_below = first_line + len(wanted) <= len(every_line)
    return _text_of(document.stamp.path, wanted, first_line, more_below=more_below, asked=lines)


def read_transcript(transcripts: Transcripts, path: str, *, first_line: int = 1, lines: int | None = None) -> NoteText:
    """Return lines of a transcript as text, one message a line; lines without a message are empty."""
    _check_range(first_line, lines)
    stamp = transcripts.stamp_of(path)
    count = min(lines or DEFAULT_LINES, MOST_LINES)
    try:
        with closing(transcripts.rendered(stamp.path, first_line)) as rendered:
            found = [line.text for line in islice(rendered, count + 1)]
    except FileNotFoundError as error:
        raise NoteNotFoundError(path) from error
    except OSError as error:
        raise NoteUnreadableError(path, error.strerror or str(error)) from error
    return _text_of(stamp.path, found[:count], first_line, more_below=len(found) > count, asked=lines)


def _of_the_same_name(notes: Notes, path: str) -> Iterator[str]:
    """Return a few notes in other folders whose names are that of a path."""

    def name_of(path: str) -> str:
        return path.rpartition("/")[2].casefold().removesuffix(".md")

    asked = name_of(path)
    same = (stamp.path for stamp in notes.list().files if name_of(stamp.path) == asked)
    return islice(same, MOST_SIMILAR)


def _check_range(first_line: int, lines: int | None) -> None:
    if first_line < 1:
        raise QueryError(f"lines are counted from 1, got {first_line}", hint="use --from 1 for the beginning")
    if lines is not None and lines < 1:
        raise QueryError(f"the number of lines must be at least 1, got {lines}", hint="use --lines 1 or more")


def _text_of(path: str, wanted: list[str], first_line: int, *, more_below: bool, asked: int | None) -> NoteText:
    """Return as many of the wanted lines as fit; `more_below` says whether the file continues after them."""
    shown = _that_fit(wanted)
    after = first_line + len(shown)
    more = more_below or len(shown) < len(wanted)
    text = "\n".join(shown)
    return NoteText(
        path=path,
        text=text[:MOST_CHARS],
        first_line=first_line,
        line_count=len(shown),
        truncated=len(text) > MOST_CHARS or (more and (asked is None or len(shown) < len(wanted))),
        next_first_line=after if more else None,
    )


def _that_fit(lines: list[str]) -> list[str]:
    """Return the first lines that fit into the limit together; at least one, which may have to be cut off."""
    size = 0
    for count, line in enumerate(lines):
        size += len(line) + 1
        if size > MOST_CHARS and count:
            return lines[:count]
    return lines
