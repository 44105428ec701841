"""A note and lines of it in, the note without them, or no note at all, out; under the lock of those who write notes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from notewell.errors import NotesBusyError, NoteUnreadableError, PathRefusedError, system_error
from notewell.files.no_follow import read_below
from notewell.memory.remembering.appending import MOST_TRIES, note_identity, notes_lock, written_in
from notewell.memory.remembering.files import open_folder
from notewell.sources.notes import NotesSource

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_PROVENANCE = re.compile(r"_Noted \d{4}-\d{2}-\d{2} .*_\s*$")


def delete_note(workspace: Path, path: str, *, extra_paths: Sequence[Path] = ()) -> None:
    """Delete a note; one that is gone already is no failure."""
    base, parts, _ = NotesSource(workspace, extra_paths).place_to_write(path)
    with notes_lock(workspace):
        try:
            with open_folder(base, parts[:-1], create=False) as folder:
                folder.remove_drafts()
                folder.remove(parts[-1])
                folder.sync()
        except FileNotFoundError:
            return
        except OSError as error:
            raise system_error(error) from error


def cut_lines(workspace: Path, path: str, lines: Collection[int], *, extra_paths: Sequence[Path] = ()) -> int:
    """Take lines out of a note, 1-based, each with the line that says who noted it; return how many of them there were.

    All other bytes stay as they are. Raises NotesBusyError when the note changes meanwhile: its lines are others then.
    """
    base, parts, stored = NotesSource(workspace, extra_paths).place_to_write(path)
    with notes_lock(workspace):
        try:
            with open_folder(base, parts[:-1], create=False) as folder:
                folder.remove_drafts()
                for _ in range(MOST_TRIES):
                    before = folder.stat(parts[-1])
                    if before is None:
                        raise FileNotFoundError(2, "the note is gone", stored)
                    raw, info = read_below(base, parts)
                    content, count = without_lines(raw, stored, lines)
                    if note_identity(folder.stat(parts[-1])) == note_identity(info):
                        folder.replace(parts[-1], content, before.st_mode & 0o7777)
                        return count
        except OSError as error:
            if isinstance(error, PathRefusedError):
                raise
            raise system_error(error) from error
    raise NotesBusyError(stored)


def without_lines(raw: bytes, stored: str, lines: Collection[int]) -> tuple[bytes, int]:
    """Return the content without these lines, and how many of them there were."""
    encoding, _, _ = written_in(raw, stored)
    errors = "surrogateescape" if encoding == "utf-8" else "strict"
    try:
        text = raw.decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise NoteUnreadableError(stored, f"it is not valid {encoding}, so no line can be taken out of it") from error
    kept, gone = [], set(lines)
    listed = _LINE.findall(text)
    gone |= {at for number in lines if (at := _provenance_of(listed, number, gone))}
    for number, line in enumerate(listed, start=1):
        if number not in gone:
            kept.append(line)
    return "".join(kept).encode(encoding, errors), len(set(lines) & set(range(1, len(listed) + 1)))


def _provenance_of(listed: Sequence[str], number: int, gone: Collection[int]) -> int | None:
    """Return the line that says who noted the entry whose last line goes."""
    for at in range(number + 1, len(listed) + 1):
        line = listed[at - 1]
        if _PROVENANCE.match(line):
            return at
        if line.strip() and at not in gone:
            return None
    return None
