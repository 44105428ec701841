"""Database files on all kinds of disks: a path comes in, a connection for writing or for reading goes out."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from notewell.errors import IndexBusyError, IndexCorruptError, IndexReadOnlyError, StoreError, store_error
from notewell.files.faults import reach
from notewell.store.sqlite.connection import Database, connect

BUSY_TIMEOUT_S = 30.0  # a bulk write holds the lock for milliseconds; longer means a stuck process
_CACHE_KIB = 16_000  # holds the hot keyword pages of 100,000 chunks
_LOG_LIMIT_BYTES = 4_096_000  # 1,000 pages, when SQLite folds the log back; a log that grew larger is cut back to it


def create_empty(path: Path) -> None:
    """Make an empty file, and its folder, for a database to begin in."""
    try:
        reach("database.create")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise store_error(error, path) from error


def open_for_writing(path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S, vfs: str | None = None) -> Database:
    """Open a database file for reading and writing; whether that is allowed shows in `file_is_read_only`."""
    db = _cached(connect(path, read_only=False, busy_timeout_s=busy_timeout_s, vfs=vfs))
    db.rows("PRAGMA synchronous = NORMAL")  # safe with a write-ahead log: a power cut loses the last commits only
    db.rows(f"PRAGMA journal_size_limit = {_LOG_LIMIT_BYTES}")
    return db


def open_for_reading(path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S, vfs: str | None = None) -> Database:
    """Open a database file for reading only, also where nothing can be written.

    A plain read-only connection needs the side files `-wal` and `-shm`: it uses those it finds, or makes them. Where it
    can do neither (a read-only folder or medium, and no process has the file open) the file will not change as far as
    we can tell, and is opened as immutable. A log that is there but unusable is never ignored.
    """
    db = connect(path, read_only=True, busy_timeout_s=busy_timeout_s, vfs=vfs)
    try:
        db.rows("SELECT count(*) FROM sqlite_schema")
    except (IndexCorruptError, IndexBusyError):
        db.close()
        raise
    except StoreError as error:
        db.close()
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size > 0:
            raise IndexReadOnlyError(
                f"{path} has changes in its log that cannot be read here",
                hint="run `notewell status` once as a user who may write to the folder",
            ) from error
        db = connect(path, read_only=True, immutable=True, busy_timeout_s=busy_timeout_s, vfs=vfs)
    return _cached(db)


def bytes_on_disk(path: Path) -> int:
    """Return the size of a database with its side files, which come and go as others open and close it."""
    total = 0
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            total += path.with_name(path.name + suffix).stat().st_size
    return total


def rewrite_file(db: Database) -> None:
    """Write the database anew, so that nothing of deleted rows is left in it or in its log."""
    db.rows("VACUUM")
    busy = db.value("PRAGMA wal_checkpoint(TRUNCATE)")  # waits for readers, as every writer does
    if busy:
        raise IndexBusyError(
            f"{db.path}: another process reads it, so its log cannot be emptied yet",
            hint="try again when that process has finished",
        )


def _cached(db: Database) -> Database:
    db.rows(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return db
