"""Marks index files as in use, across processes: a path comes in; who may delete it and when goes out.

Deleting a database that another process has open is safe only once that process will not open it again, which it does
for every further thread. So each process that has an index open holds a shared lock on a small file beside it, and only
who gets that lock alone may delete. The lock is never put on the database itself: closing a second handle of it would
drop the locks that SQLite holds. On Windows an open file cannot be deleted at all, so nothing is needed there.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

if sys.platform != "win32":
    import fcntl

MARK_ENDING = ".in-use"


def mark_of(database: Path) -> Path:
    """Return the file that is locked while the database is in use."""
    return database.with_name(database.name + MARK_ENDING)


class Mark:
    """A database that this process uses, until `release`; raises FileNotFoundError when it is being deleted."""

    def __init__(self, database: Path) -> None:
        self._handle: int | None = None
        if sys.platform == "win32":
            return
        handle = _opened(mark_of(database))
        if handle is None:
            return  # nothing may be written here and nobody made the mark: then nobody deletes here either
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise FileNotFoundError(errno.ENOENT, "this index is being deleted", str(database)) from error
        except OSError:  # a file system without locks
            os.close(handle)
        else:
            self._handle = handle

    def release(self) -> None:
        """Say that this process uses the database no longer; may be called twice."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


@contextmanager
def alone_with(database: Path) -> Iterator[bool]:
    """Yield whether nobody uses the database; if so, nobody can begin to while the block runs."""
    if sys.platform == "win32":
        yield True
        return
    handle = _opened(mark_of(database))
    try:
        if handle is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            except OSError:  # a file system without locks: as without marks
                pass
        yield True
    finally:
        if handle is not None:
            os.close(handle)


def _opened(mark: Path) -> int | None:
    """Open the mark, made if need be; a lock needs no right to write it."""
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        with suppress(OSError):
            return os.open(mark, flags | os.O_CLOEXEC, 0o644)
    return None
