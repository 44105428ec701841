"""Writes the store's files so that a crash leaves either the old or the new state.

An append overwrites the last bytes of a file. First the old and the new bytes are written to a journal on disk; if the
append is interrupted, `recover` finishes it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path

from notewell.errors import NO_SPACE, DiskFullError, SessionBusyError
from notewell.files.atomic import replace, sync_folder, write_atomically
from notewell.files.faults import reach
from notewell.files.no_follow import open_regular, read_regular

POLL_S = 0.005  # between attempts to get a lock; an append takes about a millisecond
JOURNAL_KEPT = 2**16  # bytes; a larger journal is truncated, which costs another write to disk


@contextmanager
def locked(lock: Path, timeout_s: float, what: str) -> Iterator[None]:
    """Hold a lock among all processes and threads; raises SessionBusyError after `timeout_s`.

    The operating system releases the lock when its holder dies. On file systems without locks, filelock uses a file
    that names its holder, and takes it over when that process is gone.
    """
    import filelock  # costs as much as a keyword search

    lock.parent.mkdir(parents=True, exist_ok=True)
    held = filelock.FileLock(lock)
    try:
        held.acquire(timeout=timeout_s, poll_interval=POLL_S)
    except filelock.Timeout as error:
        raise SessionBusyError(
            f"another process has been writing {what} for more than {timeout_s:g} s",
            hint="try again when it has finished",
        ) from error
    try:
        yield
    finally:
        held.release()


def overwrite_end(path: Path, journal: Path, offset: int, new: bytes) -> None:
    """Replace everything from `offset` on with `new`; after a crash the file has the old or the new end."""
    with _full_disk_told(path), path.open("r+b", buffering=0) as file:
        file.seek(offset)
        old = file.read()
        _write_journal(journal, offset, old, new)
        try:
            reach("session.write")
            file.seek(offset)
            _write_all(file.fileno(), new)
            if len(new) < len(old):
                file.truncate(offset + len(new))
            reach("session.fsync")
            os.fsync(file.fileno())
        except BaseException:
            _set_end(file.fileno(), offset, old)
            _clear(journal)
            raise
    _clear(journal)


def recover(path: Path, journal: Path) -> bool:
    """Finish an interrupted append; returns whether there was one.

    A file that was changed since is left alone: only a mix of the old and the new bytes is half an append. Call it
    under the lock: an append in progress looks like an interrupted one.
    """
    if not is_unfinished(journal):
        return False
    entry = _read_journal(journal)
    if entry is None:
        _clear(journal)  # interrupted itself: the append never began
        return False
    offset, old, new = entry
    try:
        file = path.open("r+b", buffering=0)
    except FileNotFoundError:
        _clear(journal)
        return False
    with _full_disk_told(path), file:
        file.seek(offset)
        now = file.read()
        torn = now not in (old, new) and _is_mix(now, old, new)  # the old bytes: it never began
        if torn:
            _set_end(file.fileno(), offset, new)
    _clear(journal)
    return torn


def is_unfinished(journal: Path) -> bool:
    """Return whether an append is in progress or was interrupted."""
    try:
        with open_regular(journal) as file:
            return file.read(1) == b"{"
    except OSError:
        return False


def replace_file(path: Path, data: bytes) -> None:
    """Create a file or replace its content atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _full_disk_told(path):
        write_atomically(path, data, faults="session.draft")


def move(source: Path, target: Path) -> None:
    """Rename a file durably, replacing any other at the target."""
    target.parent.mkdir(parents=True, exist_ok=True)
    replace(source, target, faults="session")
    for folder in {source.parent, target.parent}:
        sync_folder(folder)


# --- the journal -------------------------------------------------------------------------------


def _write_journal(journal: Path, offset: int, old: bytes, new: bytes) -> None:
    """Overwrite the journal in place: syncing a file of unchanged length costs half as much."""
    facts = {"offset": offset, "oldSize": len(old), "newSize": len(new), "hash": _hash(offset, old, new)}
    is_new = not journal.exists()
    if not is_new:
        open_regular(journal).close()  # a pipe in its place would be written to
    if is_new:
        journal.parent.mkdir(parents=True, exist_ok=True)
    with journal.open("wb" if is_new else "r+b", buffering=0) as file:
        try:
            reach("session.journal")
            _write_all(file.fileno(), json.dumps(facts).encode() + b"\n" + old + new)
            os.fsync(file.fileno())
        except BaseException:
            os.ftruncate(file.fileno(), 0)
            raise
    if is_new:
        sync_folder(journal.parent)


def _read_journal(journal: Path) -> tuple[int, bytes, bytes] | None:
    """Return the content of the journal; None if there is none or it is incomplete: then the file is untouched."""
    try:
        head, _, rest = read_regular(journal).partition(b"\n")
        facts = json.loads(head)
        offset, end = int(facts["offset"]), facts["oldSize"] + facts["newSize"]
        old, new = rest[: facts["oldSize"]], rest[facts["oldSize"] : end]
        return (offset, old, new) if facts["hash"] == _hash(offset, old, new) else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _hash(offset: int, old: bytes, new: bytes) -> str:
    return hashlib.sha256(b"%d %d\n" % (offset, len(old)) + old + new).hexdigest()


def _is_mix(now: bytes, old: bytes, new: bytes) -> bool:
    """Return whether each byte is the old one, the new one, or zero (never written)."""
    if not min(len(old), len(new)) <= len(now) <= max(len(old), len(new)):
        return False
    pairs = zip_longest(now, old[: len(now)], new[: len(now)])
    return all(byte in (before, after, 0) for byte, before, after in pairs)


def _clear(journal: Path) -> None:
    """Blank the journal, without a sync: if the old content survives a crash, its append is found to be complete."""
    with suppress(FileNotFoundError), journal.open("r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size > JOURNAL_KEPT:
            file.truncate(0)
        else:
            file.seek(0)
            _write_all(file.fileno(), bytes(size))


def _set_end(handle: int, offset: int, data: bytes) -> None:
    os.lseek(handle, offset, os.SEEK_SET)
    _write_all(handle, data)
    os.ftruncate(handle, offset + len(data))
    os.fsync(handle)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


@contextmanager
def _full_disk_told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise DiskFullError(
            f"the disk is full: cannot write {path}", hint="free some space; what was written before is intact"
        ) from error
