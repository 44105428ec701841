"""Writes notes: appends entries, changes, creates and deletes files.

A note is replaced as a whole under a lock that all processes share, so that it is never torn and no entry is lost.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from notewell.errors import (
    NoteNotFoundError,
    NotesBusyError,
    NoteUnreadableError,
    PathRefusedError,
    RememberError,
    system_error,
)
from notewell.files.no_follow import read_below
from notewell.memory.note_folder import has_drafts, open_folder
from notewell.memory.note_lines import written_in
from notewell.settings.workspace import require_workspace
from notewell.sources.included import INSTRUCTIONS
from notewell.sources.note_paths import is_skipped
from notewell.sources.notes import LARGEST_NOTE_BYTES, NotesSource
from notewell.store.state_folder import TOP_FOLDER, StateFolder
from notewell.text.entries import Entry, closed_text, open_code_block
from notewell.text.fences import strip_fenced
from notewell.text.redaction import redact
from notewell.types import Citation

LOCK_TIMEOUT_S = 10.0  # an append takes milliseconds; a longer wait is for something stuck
LOCK_NAME = "notes.lock"
MOST_TRIES = 5  # an editor may save the note between our reading and writing; each try reads it again
_NEW_MODE = 0o666  # what the user's umask leaves of it, as for any new file


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a text was put."""

    path: str  # as stored and cited
    first_line: int  # of the text, 1-based
    last_line: int  # of the text: the comment of an entry is the line below
    created: bool  # the note was not there before
    secrets: tuple[str, ...] = ()  # kinds that the text holds
    kept: bool = False  # they were written as they are
    entry: str = ""  # the id of the entry

    @property
    def citation(self) -> str:
        return str(Citation(self.path, self.first_line, self.last_line))


def daily_note(day: date | None = None) -> str:
    """Return the path of a day's note; today is the user's, in the time zone of this machine."""
    return f"memory/{(day or datetime.now().astimezone().date()).isoformat()}.md"


@contextmanager
def notes_lock(workspace: Path, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Let no other process write notes of the workspace; raises NotesBusyError after `timeout_s`."""
    import filelock

    require_workspace(workspace)
    folder = StateFolder(workspace / TOP_FOLDER)
    try:
        folder.ensure()
        lock = filelock.FileLock(folder.path / LOCK_NAME)
        lock.acquire(timeout=timeout_s)
    except filelock.Timeout as error:
        raise NotesBusyError(str(workspace)) from error
    except OSError as error:
        raise system_error(error) from error
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class _Addition:
    """What is appended to a note."""

    lines: tuple[str, ...]
    heading: str  # of a new note; empty: made from its name
    unless: Callable[[str], bool] | None


def append_note(
    workspace: Path,
    path: str,
    text: str | Entry,
    *,
    extra_paths: Sequence[Path] = (),
    include: Sequence[str] | None = None,
    heading: str = "",
    unless: Callable[[str], bool] | None = None,
    keep_secret: bool = False,
    locked: bool = False,
) -> Appended | None:
    """Append a text or an entry to the note, creating it if need be; recalled text is left out.

    Secrets are redacted, unless `keep_secret` is given.

    An entry gets its id here, from the text that is written.
    A new note begins with `heading`; that of a dated note is its day. `unless` is asked about the text the note has
    now, while no other process can write it: if it returns True, nothing is written and None returned. `locked` says
    that the caller holds `notes_lock` already.
    """
    if path.rpartition("/")[2].casefold() in INSTRUCTIONS:
        raise PathRefusedError(path)  # what is written there is obeyed, not remembered
    notes = NotesSource(workspace, extra_paths, include=include)
    cleaned = entry_text(text.text if isinstance(text, Entry) else text)
    redacted = redact(cleaned)
    written = cleaned if keep_secret else redacted.text
    entry = replace(text, text=written, id="") if isinstance(text, Entry) else None
    text_lines = written.split("\n")
    try:
        with nullcontext() if locked else notes_lock(workspace):
            done = _append(notes, path, _Addition(entry.lines if entry else tuple(text_lines), heading, unless))
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise PathRefusedError(path) from error
        raise system_error(error) from error
    if done is None:
        return None
    first_line, created, stored = done
    kinds = tuple(dict.fromkeys(found.kind for found in redacted.found))
    last_line = first_line + len(text_lines) - 1
    return Appended(stored, first_line, last_line, created, kinds, keep_secret, entry.id if entry else "")


def delete_note(
    workspace: Path,
    path: str,
    *,
    extra_paths: Sequence[Path] = (),
    include: Sequence[str] | None = None,
    keep: Callable[[bytes], None] | None = None,
) -> None:
    """Delete a note; one that is gone already is no failure. `keep` gets its content first: if it raises, it stays."""
    base, parts, _ = NotesSource(workspace, extra_paths, include=include).place_to_write(path)
    with notes_lock(workspace):
        try:
            with open_folder(base, parts[:-1], create=False) as folder:
                folder.remove_drafts()
                if keep:
                    keep(read_below(base, parts, most_bytes=LARGEST_NOTE_BYTES)[0])
                folder.remove(parts[-1])
                folder.sync()
        except FileNotFoundError:
            return
        except OSError as error:
            raise system_error(error) from error


def change_note(
    workspace: Path,
    path: str,
    change: Callable[[bytes, str], bytes | None],
    *,
    extra_paths: Sequence[Path] = (),
    include: Sequence[str] | None = None,
    locked: bool = False,
) -> str:
    """Replace the content of a note by what `change` makes of it and its stored path, which is returned.

    `change` is called while no other process writes notes, and again if an editor saved the note meanwhile; None leaves
    the note as it is. Raises NoteNotFoundError when there is no such note, NotesBusyError when it keeps changing.
    `locked` says that the caller holds `notes_lock` already.
    """
    base, parts, stored = NotesSource(workspace, extra_paths, include=include).place_to_write(path)
    with nullcontext() if locked else notes_lock(workspace):
        try:
            with open_folder(base, parts[:-1], create=False) as folder:
                folder.remove_drafts()
                for _ in range(MOST_TRIES):
                    before = folder.stat(parts[-1])
                    if before is None:
                        raise NoteNotFoundError(stored)
                    raw, info = read_below(base, parts, most_bytes=LARGEST_NOTE_BYTES)
                    content = change(raw, stored)
                    if content is None:
                        return stored
                    if note_identity(folder.stat(parts[-1])) == note_identity(info):
                        folder.replace(parts[-1], content, before.st_mode & 0o7777)
                        return stored
        except FileNotFoundError as error:
            raise NoteNotFoundError(stored) from error
        except OSError as error:
            raise system_error(error) from error
    raise NotesBusyError(stored)


def create_note(
    workspace: Path,
    path: str,
    content: bytes,
    *,
    extra_paths: Sequence[Path] = (),
    include: Sequence[str] | None = None,
) -> str:
    """Write a note that is not there yet and return its stored path; raises FileExistsError when it is."""
    base, parts, stored = NotesSource(workspace, extra_paths, include=include).place_to_write(path)
    with notes_lock(workspace):
        try:
            with open_folder(base, parts[:-1], create=True) as folder:
                folder.remove_drafts()
                if folder.stat(parts[-1]) is not None:
                    raise FileExistsError(errno.EEXIST, "there is such a note", stored)  # noqa: TRY301
                folder.replace(parts[-1], content, _NEW_MODE & ~_umask())
                return stored
        except FileExistsError:
            raise
        except OSError as error:
            raise system_error(error) from error


def remove_drafts(workspace: Path, *, extra_paths: Sequence[Path] = (), include: Sequence[str] | None = None) -> None:
    """Delete the drafts that killed processes left in every folder where notes are written."""
    base = os.path.realpath(workspace)
    extra = [os.path.realpath(workspace / path) for path in extra_paths]
    tops = [os.path.join(base, "memory"), *(path for path in extra if path.startswith(base + os.sep))]  # noqa: PTH118
    if include:
        tops.append(base)
    folders = [base]
    for top in tops:
        for folder, below, _ in os.walk(top):
            folders.append(folder)
            below[:] = [name for name in below if not is_skipped(name)]
    if not any(map(has_drafts, folders)):
        return
    with notes_lock(workspace):
        for folder in folders:
            with suppress(OSError), open_folder(folder, (), create=False) as opened:
                opened.remove_drafts()


def entry_text(text: str) -> str:
    """Return the text as it may be written, but for its secrets: no recalled memory, nothing that breaks a note."""
    cleaned = strip_fenced(text).replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    cleaned = cleaned.encode("utf-8", "replace").decode()  # halves of surrogate pairs cannot be stored
    cleaned = "\n".join(line.rstrip() for line in cleaned.strip("\n").split("\n")).strip()
    if not cleaned:
        raise RememberError(
            "there is nothing to remember: the text is empty, or only repeats what was recalled",
            hint="say what to remember: `notewell remember the guest wifi is heron-guest`",
        )
    return closed_text(cleaned)


def _append(notes: NotesSource, path: str, addition: _Addition) -> tuple[int, bool, str] | None:
    base, parts, stored = notes.place_to_write(path)
    with open_folder(base, parts[:-1], create=True) as folder:
        folder.remove_drafts()
        for _ in range(MOST_TRIES):
            info = folder.stat(parts[-1])
            old = b"" if info is None else _content(info, base, parts, stored)
            encoding, newline, old_text = written_in(old, stored)
            if addition.unless and addition.unless(old_text):
                return None
            added, first_line = _added(old_text, addition, _heading_of(stored))
            content = old + added.replace("\n", newline).encode(encoding)
            if note_identity(info) == note_identity(folder.stat(parts[-1])):
                folder.replace(parts[-1], content, stat.S_IMODE(info.st_mode) if info else _NEW_MODE & ~_umask())
                return first_line, info is None, stored
    raise NotesBusyError(stored)


def _content(info: os.stat_result, base: str, parts: tuple[str, ...], stored: str) -> bytes:
    if not stat.S_ISREG(info.st_mode):
        raise PathRefusedError(stored)
    if info.st_size > LARGEST_NOTE_BYTES:
        raise NoteUnreadableError(stored, "it is too large to be added to")
    return read_below(base, parts, most_bytes=LARGEST_NOTE_BYTES)[0]


def _added(old_text: str, addition: _Addition, heading: str) -> tuple[str, int]:
    """Return what is appended to the old text, and the first line of the addition in the new one.

    A code block that the note leaves open is ended, so that the addition is no code.
    """
    if not old_text.strip() and "\n" not in old_text:
        before = f"{addition.heading or heading}\n\n"
    else:
        before = "" if old_text.endswith("\n") else "\n"
        if marks := open_code_block(old_text):
            before += f"{marks}\n"
        before += "" if (old_text + before).endswith("\n\n") else "\n"
    text = before + "\n".join([*addition.lines, ""])
    return text, (old_text + text).count("\n") - len(addition.lines) + 1


def _heading_of(stored: str) -> str:
    """Return the first line of a new note: its day, or its name with blanks."""
    name = stored.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    is_dated = name[:4].isdigit() and name[4:5] == "-"
    return f"# {name}" if is_dated else f"# {name.replace('-', ' ').replace('_', ' ').strip().capitalize()}"


def note_identity(info: os.stat_result | None) -> tuple[int, int, int] | None:
    """Return what tells a file from another or a changed one."""
    return None if info is None else (info.st_ino, info.st_size, info.st_mtime_ns)


def _umask() -> int:
    # The only portable way to learn it is to set it; a file of 0o666 that is created meanwhile is no harm to anybody.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
