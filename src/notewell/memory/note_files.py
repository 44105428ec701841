"""Changes the note files of a workspace, and detects citations whose lines have moved since they were shown.

A note is replaced atomically, under a lock that all processes share, and never through a link: no process sees half a
note, and no entry is lost.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import (
    NoteNotFoundError,
    NotesBusyError,
    NoteUnreadableError,
    NotewellError,
    PathRefusedError,
    QueryError,
    RememberError,
    system_error,
)
from notewell.files.atomic import DRAFT_SUFFIX, write_atomically
from notewell.files.faults import reach
from notewell.files.no_follow import is_link, read_below, read_regular
from notewell.indexing.sync import BACKGROUND
from notewell.memory.note_lines import written_in
from notewell.reports import Remembered
from notewell.settings.workspace import require_workspace
from notewell.sources.included import INSTRUCTIONS
from notewell.sources.notes import LARGEST_NOTE_BYTES, NotesSource
from notewell.sources.walk import is_skipped
from notewell.store.state_folder import TOP_FOLDER, StateFolder
from notewell.text.entries import Entry, closed_text, open_code_block, without_comments
from notewell.text.fences import strip_fenced
from notewell.text.redaction import redact
from notewell.types import Citation, hash_text

if TYPE_CHECKING:
    from notewell.memory.components import Components
    from notewell.types import Document

LOCK_TIMEOUT_S = 10.0  # an append takes milliseconds; after this long, something is stuck
LOCK_NAME = "notes.lock"
MOST_TRIES = 5  # an editor may save the note between our reading and writing; each try reads it again
MOST_FOLDERS = 8  # created for a note, counted from the workspace; nobody nests notes deeper
DRAFT_PREFIX = ".notewell-"  # hidden, so that no listing of notes shows a draft
_NEW_MODE = 0o666  # what the user's umask leaves of it, as for any new file
_BY_FOLDER = (
    {os.open, os.mkdir, os.rename, os.unlink, os.stat} <= os.supports_dir_fd
    and hasattr(os, "O_NOFOLLOW")
    and hasattr(os, "O_DIRECTORY")
)


@contextmanager
def notes_lock(workspace: Path, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Keep other processes from writing notes of the workspace; raises NotesBusyError after `timeout_s`."""
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


class NoteFiles:
    """The note files of one workspace; notes outside it are read-only."""

    def __init__(self, workspace: Path, extra_paths: Sequence[Path] = (), include: Sequence[str] | None = None) -> None:
        self._workspace = workspace
        self._notes = NotesSource(workspace, extra_paths, include=include)
        self._tops = [root.real_path for root in self._notes.roots if not root.is_outside]  # where notes are written
        self._tops += [os.path.realpath(workspace)] if include else []

    def append(
        self,
        path: str,
        text: str | Entry,
        *,
        unless: Callable[[str], bool] | None = None,
        keep_secret: bool = False,
        locked: bool = False,
    ) -> Remembered | None:
        """Append a text or an entry to the note, creating it if need be; recalled text is left out.

        Secrets are redacted, unless `keep_secret` is given. An entry gets its id here, from the text that is written.
        A new note begins with its name or day as a heading. `unless` is asked about the text the note has now, while no
        other process can write it: if it returns True, nothing is written and None returned. `locked` says that the
        caller holds `notes_lock` already.
        """
        if path.rpartition("/")[2].casefold() in INSTRUCTIONS:
            raise PathRefusedError(path)  # agents obey what is written there
        cleaned = entry_text(text.text if isinstance(text, Entry) else text)
        redacted = redact(cleaned)
        written = cleaned if keep_secret else redacted.text
        entry = replace(text, text=written, id="") if isinstance(text, Entry) else None
        text_lines = written.split("\n")
        first_line = 0

        def appended(old: bytes, stored: str) -> bytes | None:
            nonlocal first_line
            encoding, newline, old_text = written_in(old, stored)
            if unless and unless(old_text):
                return None
            added, first_line = _added(old_text, entry.lines if entry else text_lines, _heading_of(stored))
            return old + added.replace("\n", newline).encode(encoding)

        stored = self._rewrite(path, appended, create=True, locked=locked)
        if not first_line:
            return None
        kinds = tuple(dict.fromkeys(found.kind for found in redacted.found))
        last_line = first_line + len(text_lines) - 1
        return Remembered(
            written=True,
            path=stored,
            first_line=first_line,
            last_line=last_line,
            citation=str(Citation(stored, first_line, last_line)),
            entry=entry.id if entry else "",
            redacted=() if keep_secret else kinds,
            kept=kinds if keep_secret else (),
        )

    def change(self, path: str, change: Callable[[bytes, str], bytes | None], *, locked: bool = False) -> str:
        """Replace the content of a note by what `change` makes of it and its stored path, which is returned.

        `change` is called while no other process writes notes, and again if an editor saved the note meanwhile; None
        leaves the note as it is. Raises NoteNotFoundError when there is no such note, NotesBusyError when it keeps
        changing. `locked` says that the caller holds `notes_lock` already.
        """
        return self._rewrite(path, change, create=False, locked=locked)

    def create(self, path: str, content: bytes) -> str:
        """Create a note and return its stored path; raises FileExistsError if it exists."""
        return self._rewrite(path, lambda _old, _stored: content, create=True, exist_ok=False)

    def delete(self, path: str, keep: Callable[[bytes], None]) -> None:
        """Delete a note, if it still exists. `keep` gets its content first: if it raises, the note stays."""
        base, parts, _ = self._notes.place_to_write(path)
        with notes_lock(self._workspace):
            try:
                with open_folder(base, parts[:-1], create=False) as folder:
                    folder.remove_drafts()
                    keep(read_below(base, parts, most_bytes=LARGEST_NOTE_BYTES)[0])
                    folder.remove(parts[-1])
                    folder.sync()
            except FileNotFoundError:
                return
            except OSError as error:
                raise system_error(error) from error

    def remove_drafts(self) -> None:
        """Delete the drafts that killed processes left in every folder where notes are written."""
        folders = [os.path.realpath(self._workspace)]
        for top in self._tops:
            for folder, below, _ in os.walk(top):
                folders.append(folder)
                below[:] = [name for name in below if not is_skipped(name)]
        if not any(map(_has_drafts, folders)):
            return
        with notes_lock(self._workspace):
            for folder in folders:
                with suppress(OSError), open_folder(folder, (), create=False) as opened:
                    opened.remove_drafts()

    def _rewrite(
        self,
        path: str,
        change: Callable[[bytes, str], bytes | None],
        *,
        create: bool,
        exist_ok: bool = True,
        locked: bool = False,
    ) -> str:
        """Replace a note by what `change` makes of it, again and again while others save it; see `change`."""
        base, parts, stored = self._notes.place_to_write(path)
        name = parts[-1]
        with (
            _note_errors(path, create=create),
            nullcontext() if locked else notes_lock(self._workspace),
            open_folder(base, parts[:-1], create=create) as folder,
        ):
            folder.remove_drafts()
            for _ in range(MOST_TRIES):
                info = folder.stat(name)
                if info is None and not create:
                    raise NoteNotFoundError(stored)
                if info is not None and not exist_ok:
                    raise FileExistsError(errno.EEXIST, "there is such a note", stored)
                content = change(b"" if info is None else _content(info, base, parts, stored), stored)
                if content is None:
                    return stored
                if note_identity(folder.stat(name)) == note_identity(info):
                    folder.replace(name, content, stat.S_IMODE(info.st_mode) if info else _NEW_MODE & ~_umask())
                    return stored
        raise NotesBusyError(stored)


@contextmanager
def _note_errors(path: str, *, create: bool) -> Iterator[None]:
    """Raise errors of the system as ours; that a note exists is the caller's to handle."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not create:
            raise NoteNotFoundError(path) from error
        is_refused = error.errno in {errno.ELOOP, errno.ENOTDIR}  # a link or a file lies on the way
        raise (PathRefusedError(path) if is_refused else system_error(error)) from error


def daily_note(day: date | None = None) -> str:
    """Return the path of a day's note; today is the user's, in the time zone of this machine."""
    return f"memory/{(day or datetime.now().astimezone().date()).isoformat()}.md"


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


def _content(info: os.stat_result, base: str, parts: tuple[str, ...], stored: str) -> bytes:
    if not stat.S_ISREG(info.st_mode):
        raise PathRefusedError(stored)
    if info.st_size > LARGEST_NOTE_BYTES:
        raise NoteUnreadableError(stored, OSError(errno.EFBIG, "it is too large to be added to"))
    return read_below(base, parts, most_bytes=LARGEST_NOTE_BYTES)[0]


def _added(old_text: str, lines: Sequence[str], heading: str) -> tuple[str, int]:
    """Return what is appended to the old text, and the first line of the addition in the new one.

    A code block that the note leaves open is ended, so that the addition is no code.
    """
    if not old_text.strip() and "\n" not in old_text:
        before = f"{heading}\n\n"
    else:
        before = "" if old_text.endswith("\n") else "\n"
        if marks := open_code_block(old_text):
            before += f"{marks}\n"
        before += "" if (old_text + before).endswith("\n\n") else "\n"
    text = before + "\n".join([*lines, ""])
    return text, (old_text + text).count("\n") - len(lines) + 1


def index_notes(parts: Components, paths: Collection[str], done: str = "written") -> tuple[str, ...]:
    """Index notes that were just changed, and return notes for the caller: the change is made, so nothing is raised."""
    try:
        report = parts.sync.run(replace(BACKGROUND, paths=paths))
    except NotewellError as error:
        return (f"it is {done}, but not indexed yet: {error.full_message}",)
    return (*report.notes, *(f"{problem.path}: {problem.reason}" for problem in report.problems))


def _heading_of(stored: str) -> str:
    """Return the heading of a new note: its date, or its name as words."""
    name = stored.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    is_dated = name[:4].isdigit() and name[4:5] == "-"
    return f"# {name}" if is_dated else f"# {name.replace('-', ' ').replace('_', ' ').strip().capitalize()}"


def note_identity(info: os.stat_result | None) -> tuple[int, int, int] | None:
    """Return what identifies a file and its state."""
    return None if info is None else (info.st_ino, info.st_size, info.st_mtime_ns)


def _umask() -> int:
    # The only portable way to read the umask is to set it.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


# --- folders -------------------------------------------------------------------------------------


class NoteFolder:
    """A folder that is held open or, where that is not possible, was checked for links; takes plain file names."""

    def __init__(self, path: str, handle: int | None) -> None:
        self._path = path
        self._handle = handle

    def replace(self, name: str, content: bytes, mode: int) -> None:
        """Replace a file's content atomically: after a crash it is either the old or the new one."""
        write_atomically(
            self._at(name), content, mode=mode, folder_fd=self._handle, draft_prefix=DRAFT_PREFIX, faults="note"
        )

    def sync(self) -> None:
        """Flush the folder to disk; Windows does not need it."""
        if self._handle is not None:
            reach("note.fsync_folder")
            os.fsync(self._handle)

    def stat(self, name: str) -> os.stat_result | None:
        """Return the lstat result of a file; None if it does not exist."""
        try:
            return os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Delete a file."""
        reach("note.remove")
        os.unlink(self._at(name), dir_fd=self._handle)

    def remove_folder(self, name: str) -> None:
        """Delete a folder that is empty."""
        os.rmdir(self._at(name), dir_fd=self._handle)

    def move(self, name: str, into: NoteFolder, new_name: str) -> None:
        """Move a file or folder, here or into another folder; the caller makes sure that the name is free."""
        reach("note.rename")
        if self._handle is None or into._handle is None:
            os.rename(self._at(name), into._at(new_name))  # noqa: PTH104
        else:
            os.rename(name, new_name, src_dir_fd=self._handle, dst_dir_fd=into._handle)
        into.sync()
        self.sync()

    def remove_drafts(self) -> None:
        """Delete drafts that killed processes left behind; the caller holds the lock, so none is in use."""
        for name in os.listdir(self._path if self._handle is None else self._handle):  # noqa: PTH208
            if _is_draft(name):
                with suppress(OSError):
                    self.remove(name)

    def _at(self, name: str) -> str:
        return name if self._handle is not None else os.path.join(self._path, name)  # noqa: PTH118


def _has_drafts(folder: str) -> bool:
    """Return whether a folder holds a draft."""
    try:
        return any(map(_is_draft, os.listdir(folder)))  # noqa: PTH208
    except OSError:
        return False


def _is_draft(name: str) -> bool:
    return name.startswith(DRAFT_PREFIX) and name.endswith(DRAFT_SUFFIX)


@contextmanager
def open_folder(base: str, parts: tuple[str, ...], *, create: bool) -> Iterator[NoteFolder]:
    """Yield the folder, created if need be; raises OSError if a part of the path is a link or a file."""
    if not _BY_FOLDER:
        yield NoteFolder(_checked_path(base, parts, create=create), None)
        return
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(base, flags)
    try:
        for depth, part in enumerate(parts, start=1):
            if create:
                with suppress(FileExistsError):
                    _check_depth(depth, parts, os.path.join(base, *parts[:depth]))  # noqa: PTH118
                    os.mkdir(part, dir_fd=handle)
            inner = os.open(part, flags, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield NoteFolder(os.path.join(base, *parts), handle)  # noqa: PTH118
    finally:
        os.close(handle)


def _check_depth(depth: int, parts: tuple[str, ...], path: str) -> None:
    """Raise RememberError if a folder would be created too deep; an existing one may be used."""
    if depth > MOST_FOLDERS and not os.path.lexists(path):
        raise RememberError(
            f"{'/'.join(parts[:3])}/... is {len(parts)} folders deep; at most {MOST_FOLDERS} are created for a note",
            hint="name a note with fewer folders, or create the folder first",
        )


def _checked_path(base: str, parts: tuple[str, ...], *, create: bool) -> str:
    path = base
    for depth, part in enumerate(parts, start=1):
        path = os.path.join(path, part)  # noqa: PTH118
        if create:
            with suppress(FileExistsError):
                _check_depth(depth, parts, path)
                os.mkdir(path)  # noqa: PTH102
        if is_link(os.lstat(path)):
            raise OSError(errno.ELOOP, "a link lies on the way", path)
    return path


# --- lines that moved ----------------------------------------------------------------------------

# Forgetting, restoring or marking lines moves those below them. Until the note is shown again, a citation of those may
# be outdated: its first use is refused with the current lines, which then count as shown.


def lines_move(parts: Components, path: str, first_line: int) -> None:
    """Note that lines of a note are about to move, from `first_line` on; the caller holds `notes_lock`."""
    moved, name = _read_moved(parts), _name_of(path)
    _write_moved(parts, {**moved, name: min(first_line, moved.get(name, first_line))})


def notes_shown(parts: Components, paths: Iterable[str]) -> None:
    """Note that notes were shown as they are now."""
    with suppress(NotewellError, OSError), notes_lock(parts.workspace):  # the next showing tries again
        moved, names = _read_moved(parts), set(map(_name_of, paths))
        left = {name: line for name, line in moved.items() if name not in names}
        if left != moved:
            _write_moved(parts, left)


def _read_moved(parts: Components) -> Mapping[str, int]:
    """Return from which line on the lines of notes have moved."""
    try:
        found = json.loads(read_regular(parts.moved_file, most_bytes=LARGEST_NOTE_BYTES))
        return {str(name): int(line) for name, line in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):  # not there, or not ours
        return {}


def _write_moved(parts: Components, moved: Mapping[str, int]) -> None:
    if moved:
        write_atomically(parts.moved_file, json.dumps(moved), mode=0o600)
    else:
        parts.moved_file.unlink(missing_ok=True)


def _name_of(path: str) -> str:
    """Return a hash of a path: the path itself may contain what has to be forgotten without a trace."""
    return hash_text(path)[:16]


def check_cited(parts: Components, document: Document, cited: Citation) -> None:
    """Raise QueryError with the current lines if they may differ from those that were shown.

    They may if lines of the note have moved, or if the note was changed after it was indexed: a search shows what is
    indexed.
    """
    path, first, last = cited.path, cited.first_line or 1, cited.last_line or 1
    lines = document.text.split("\n")
    first_moved = _read_moved(parts).get(_name_of(path))
    if first_moved is not None and last >= first_moved:
        notes_shown(parts, [path])
        why = "lines of this note have moved since it was last shown"
    elif _reads_differently(parts, document, range(first, last + 1)):
        with suppress(NotewellError):
            parts.sync.run(replace(BACKGROUND, paths=[path]))
        why = "this note has changed since it was last indexed"
    else:
        return
    said = "\n".join(f"L{number}  {lines[number - 1]}" for number in range(first, last + 1))
    raise QueryError(
        f"{cited}: {why}; it is now:\n{said}",
        hint="if you mean these lines, do the same again; otherwise search for the right citation",
    )


def _reads_differently(parts: Components, document: Document, numbers: range) -> bool:
    with parts.index.use() as store:
        if store is None:
            return False
        with store.reading() as snapshot:
            known = snapshot.documents("memory", [document.stamp.path]).get(("memory", document.stamp.path))
            if known is None or known.content_hash == document.content_hash:
                return False
            chunks = snapshot.chunks_of("memory", document.stamp.path)
    lines = without_comments(document.text).split("\n")
    indexed: dict[int, str] = {}
    for chunk in chunks:
        indexed.update(enumerate(chunk.text.split("\n"), start=chunk.first_line))
    return any(indexed.get(number, "").strip() != lines[number - 1].strip() for number in numbers)
