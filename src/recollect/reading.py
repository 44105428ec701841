"""A memory path and a line range in, that piece of the file out: what an agent reads after a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import NoteNotFoundError, NoteUnreadableError, QueryError
from recollect.types import NoteText

if TYPE_CHECKING:
    from recollect.sources.notes import NotesSource

DEFAULT_LINES = 120
MOST_CHARS = 12_000  # about 3,000 tokens: a page, not a flood


def read_note(notes: NotesSource, path: str, *, first_line: int = 1, lines: int | None = None) -> NoteText:
    """Return up to `lines` lines from `first_line` on, whole lines while they fit into the character limit."""
    if first_line < 1:
        raise QueryError(f"lines are counted from 1, got {first_line}", hint="use --from 1 for the beginning")
    if lines is not None and lines < 1:
        raise QueryError(f"at least one line must be asked for, got {lines}", hint="use --lines 1 or more")
    try:
        document = notes.read(notes.stamp_of(path))
    except FileNotFoundError as error:  # gone between the look and the reading
        raise NoteNotFoundError(path) from error
    except OSError as error:
        raise NoteUnreadableError(path, error.strerror or str(error)) from error
    every_line = document.text.split("\n")
    if every_line and not every_line[-1]:
        every_line.pop()  # the newline at the end of the file begins no line
    wanted = every_line[first_line - 1 : first_line - 1 + (lines or DEFAULT_LINES)]
    shown = _that_fit(wanted)
    after = first_line + len(shown)
    more = after <= len(every_line)
    text = "\n".join(shown)
    cut = len(text) > MOST_CHARS
    return NoteText(
        path=document.stamp.path,
        text=text[:MOST_CHARS],
        first_line=first_line,
        line_count=len(shown),
        truncated=cut or (more and (lines is None or len(shown) < len(wanted))),
        next_first_line=after if more else None,
    )


def _that_fit(lines: list[str]) -> list[str]:
    """Return the first lines that fit into the limit together; at least one, which may have to be cut."""
    size = 0
    for count, line in enumerate(lines):
        size += len(line) + 1
        if size > MOST_CHARS and count:
            return lines[:count]
    return lines
