"""A memory path and a line range in, that piece of the file out: what an agent reads after a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import NoteNotFoundError, QueryError
from recollect.types import FileStamp, NoteText

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
    stored_path = notes.stored_path(path)
    try:
        document = notes.read(FileStamp("memory", stored_path, 0, 0))
    except FileNotFoundError as error:
        raise NoteNotFoundError(path) from error
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
        path=stored_path,
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
