"""Opens SQLite files, lends connections to threads, and translates errors."""

from __future__ import annotations

import errno
import json
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

import apsw

from notewell.errors import (
    NO_SPACE,
    DiskFullError,
    IndexBusyError,
    IndexCorruptError,
    IndexReadOnlyError,
    StoreError,
    store_error,
)
from notewell.files.faults import reach

Row = tuple[Any, ...]

BUSY_TIMEOUT_S = 30.0  # a bulk write takes milliseconds; longer means a stuck process
LONGEST_LOCK_SLEEP_S = 0.1  # between two attempts, as with SQLite's own timeout
SYNCHRONOUS = "NORMAL"  # safe with a write-ahead log: a power cut loses the last commits only
_CACHE_KIB = 16_000  # fits the hot keyword pages of 100,000 chunks
_LOG_LIMIT_BYTES = 4_096_000  # 1,000 pages, when SQLite folds the log back; larger logs are truncated to it

# On a healthy file no statement of ours breaks a constraint, and nothing is too big to be read.
_CORRUPT = (apsw.CorruptError, apsw.NotADBError, apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError)
# Our statements name tables and columns that exist, unless the file is corrupt.
_CORRUPT_SCHEMA = re.compile(
    "no such (table|module|column|tokenizer|index)|parse error in|malformed|vtable constructor|invalid fts5|near "
    "|unsupported file format|unrecognized|unknown (database|tokenizer)|error in |duplicate column|reserved fts5"
)


def _translated(error: apsw.Error, path: Path, *, system_errno: int = 0) -> Exception:
    """Return our error for an error of SQLite with the file at `path`."""
    what = f"{path}: {error}"
    if isinstance(error, apsw.CantOpenError) and not path.exists():
        return FileNotFoundError(errno.ENOENT, "there is no index at this path", str(path))
    if isinstance(error, apsw.FullError) or system_errno in NO_SPACE:
        return DiskFullError(what, hint="free some space; what was written before is intact")
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return IndexBusyError(what, hint="another process is writing the index; try again when it has finished")
    if isinstance(error, _CORRUPT) or (isinstance(error, apsw.SQLError) and _CORRUPT_SCHEMA.search(str(error))):
        return IndexCorruptError(what, path=path)
    if isinstance(error, (apsw.ReadOnlyError, apsw.PermissionsError)):
        return IndexReadOnlyError(what, hint="check the permissions of the folder that holds the index")
    return StoreError(what, hint="check that the disk that holds the index is readable and writable")


def has_fts5() -> bool:
    """Return whether this SQLite has FTS5, which keyword search needs."""
    return "ENABLE_FTS5" in apsw.compile_options


class Database:
    """One connection; statements are run to their end, so that errors are raised where they happen."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    def rows(self, sql: str, bindings: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return all of its rows."""
        try:
            return self._connection.execute(sql, bindings).fetchall()
        except apsw.Error as error:
            raise self._ours(error) from error
        except UnicodeDecodeError as error:  # SQLite does not check the text it stores
            raise self.corrupt("a text") from error

    def value(self, sql: str, bindings: Sequence[Any] = ()) -> Any:
        """Return the first column of the first row, or None when there is no row."""
        found = self.rows(sql, bindings)
        return found[0][0] if found else None

    def insert(self, sql: str, bindings: Sequence[Any] = ()) -> int:
        """Run one INSERT and return the row's key."""
        self.rows(sql, bindings)
        return self._connection.last_insert_rowid()

    def run_many(self, sql: str, many_bindings: Iterable[Sequence[Any]]) -> None:
        """Run one statement once for each set of values."""
        try:
            self._connection.executemany(sql, many_bindings).fetchall()
        except apsw.Error as error:
            raise self._ours(error) from error

    def patch_blob(self, table: str, column: str, key: int, patches: Iterable[tuple[int, bytes]]) -> None:
        """Overwrite parts of a blob in place, given as (offset, bytes); only these pages are written."""
        try:
            with self._connection.blob_open("main", table, column, key, True) as blob:
                for offset, content in patches:
                    blob.seek(offset)
                    blob.write(content)
        except apsw.Error as error:
            raise self._ours(error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Take the write lock, commit at the end, roll back on any exception."""
        reach("database.begin")
        self.rows("BEGIN IMMEDIATE")
        try:
            yield
            reach("database.commit")
            self.rows("COMMIT")
        except BaseException:
            self.end_transaction()
            raise

    @contextmanager
    def joined_transaction(self) -> Iterator[None]:
        """Join the open transaction, or open one; an exception rolls back all of it in either case."""
        if not self._connection.in_transaction:
            with self.transaction():
                yield
            return
        try:
            yield
        except BaseException:
            self.end_transaction()
            raise

    def end_transaction(self) -> None:
        """Roll back; a no-op outside a transaction, which a full disk may have ended already."""
        if self._connection.in_transaction:
            self.rows("ROLLBACK")

    @property
    def file_is_read_only(self) -> bool:
        return self._connection.readonly("main")

    def load_extension(self, library: str) -> None:
        """Load a SQLite extension into this connection only."""
        try:
            self._connection.enable_load_extension(True)
            self._connection.load_extension(library)
        except apsw.Error as error:
            raise StoreError(f"{library} cannot be loaded: {error}") from error
        finally:
            self._connection.enable_load_extension(False)

    def close(self) -> None:
        """Close; if the log cannot be folded back now, the next process to open the file does so."""
        with suppress(apsw.Error):
            self._connection.close()

    def corrupt(self, what: str) -> IndexCorruptError:
        """Return the error for something in the file that we cannot have stored."""
        return IndexCorruptError(f"{self.path}: {what} in it is corrupt", path=self.path)

    def rewrite_file(self) -> None:
        """Rewrite the file and empty its log, so that nothing of deleted rows is left."""
        self.rows("VACUUM")
        busy = self.value("PRAGMA wal_checkpoint(TRUNCATE)")  # waits for readers, as every writer does
        if busy:
            raise IndexBusyError(
                f"{self.path}: another process reads it, so its log cannot be emptied yet",
                hint="try again when that process has finished",
            )

    def _ours(self, error: apsw.Error) -> Exception:
        return _translated(error, self.path, system_errno=self._connection.system_errno)


class _Limit(threading.local):
    until = float("inf")  # when this thread stops waiting for locks, on the monotonic clock


_limit = _Limit()


@contextmanager
def lock_wait_limit(seconds: float) -> Iterator[None]:
    """Limit how long this thread waits for locks of other processes, in all databases together."""
    before = _limit.until
    _limit.until = min(time.monotonic() + seconds, before)
    try:
        yield
    finally:
        _limit.until = before


class _LockWait:
    """Waits for locks as SQLite itself would, within the limit of the thread."""

    def __init__(self) -> None:
        self._give_up_at = 0.0

    def __call__(self, tries: int) -> bool:
        now = time.monotonic()
        if tries == 0:
            self._give_up_at = now + BUSY_TIMEOUT_S
        left_s = min(self._give_up_at, _limit.until) - now
        if left_s <= 0:
            return False
        time.sleep(min(left_s, LONGEST_LOCK_SLEEP_S, 0.001 * 2 ** min(tries, 10)))
        return True


_file_layer: str | None = None


@contextmanager
def through_file_layer(name: str) -> Iterator[None]:
    """Open databases through a SQLite file layer (VFS) that the caller has registered.

    It can count, slow down or fail every read, write, sync, lock and open.
    """
    global _file_layer  # noqa: PLW0603 - SQLite's own default, which this overrides, is one for the process, too
    before, _file_layer = _file_layer, name
    try:
        yield
    finally:
        _file_layer = before


def connect(path: Path, *, read_only: bool, immutable: bool = False) -> Database:
    """Open an existing database file without reading it yet.

    `immutable` promises SQLite that nobody writes: then it needs no lock and no side file, and ignores the log.
    """
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    name = os.fspath(path.absolute())
    if immutable:
        flags |= apsw.SQLITE_OPEN_URI
        name = f"{path.absolute().as_uri()}?immutable=1"
    try:
        reach("database.open")
        connection = apsw.Connection(name, flags=flags, vfs=_file_layer)
    except apsw.Error as error:
        raise _translated(error, path) from error
    except OSError as error:
        raise store_error(error, path) from error
    # Plans independent of bound values, or SQLite would recompile a statement of FTS5 fifty times in a search.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.set_busy_handler(_LockWait())
    return Database(connection, path)


def create_empty(path: Path) -> None:
    """Create an empty database file, and its folder."""
    try:
        reach("database.create")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise store_error(error, path) from error


def open_for_writing(path: Path) -> Database:
    """Open a database file for reading and writing; `file_is_read_only` shows whether that is permitted."""
    db = connect(path, read_only=False)
    db.rows(f"PRAGMA cache_size = -{_CACHE_KIB}")
    db.rows(f"PRAGMA synchronous = {SYNCHRONOUS}")
    db.rows(f"PRAGMA journal_size_limit = {_LOG_LIMIT_BYTES}")
    return db


def open_for_reading(path: Path) -> Database:
    """Open a database file for reading, also on read-only media.

    A read-only connection uses the side files `-wal` and `-shm`, or creates them. If it can do neither (a read-only
    folder, and no process has the file open), the file is opened as immutable. A log that cannot be read is never
    ignored.
    """
    db = connect(path, read_only=True)
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
                hint="run `notewell status` once as a user with write permission for the folder",
            ) from error
        db = connect(path, read_only=True, immutable=True)
    db.rows(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return db


def connect_in_memory(name: str) -> Database:
    """Open a database in memory, which connections of the same name share."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    return Database(apsw.Connection(f"file:/{name}?vfs=memdb", flags=flags), Path(name))


def as_json(values: Iterable[int] | Iterable[str]) -> str:
    """Return values as one parameter for `json_each(?)`."""
    listed = list(values)
    if listed and isinstance(listed[0], int):
        return f"[{','.join(map(str, listed))}]"  # a third of the time
    return json.dumps(listed)


# --- connections lent to threads -----------------------------------------------------------------
#
# A connection must never be used on both sides of a fork. Idle ones are closed before it, busy ones are left alone in
# the child, and the child opens its own.

_MAX_IDLE = 8  # connections, with a few MB of page cache each


class Opener(Protocol):
    """Opens one more connection to the same file."""

    def __call__(self, *, read_only: bool) -> Database: ...


class _ProcessState:
    """The connections of one process; a forked child gets its own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.write_lock = threading.RLock()
        self.idle: list[Database] = []
        self.writer: Database | None = None


class ConnectionPool:
    """Lends connections to threads, one at a time each."""

    def __init__(self, opener: Opener, first: Database, *, first_writes: bool) -> None:
        self._opener = opener
        self._closed = False
        self._state = _ProcessState()
        if first_writes:
            self._state.writer = first
        else:
            self._state.idle.append(first)
        _pools.add(self)

    @contextmanager
    def reader(self) -> Iterator[Database]:
        """Lend a connection that nobody else uses meanwhile."""
        state = self._current()
        with state.lock:
            db = state.idle.pop() if state.idle else None
        if db is None:
            db = self._opener(read_only=True)
        try:
            yield db
        finally:
            self._return(state, db)

    @contextmanager
    def writer(self) -> Iterator[Database]:
        """Lend the one connection that writes; other threads wait their turn."""
        state = self._current()
        with state.write_lock:
            if state.writer is None:
                state.writer = self._opener(read_only=False)
            yield state.writer

    def close_idle(self) -> None:
        """Close what nobody uses right now; the next use opens it again."""
        state = self._state
        if state.pid != os.getpid():
            return
        with state.lock:
            unused, state.idle = state.idle, []
        if state.write_lock.acquire(blocking=False):
            try:
                if state.writer is not None:
                    unused.append(state.writer)
                    state.writer = None
            finally:
                state.write_lock.release()
        for db in unused:  # the writer last: it alone may fold the write-ahead log back into the file
            db.close()

    def close(self) -> None:
        """Close for good; connections still lent are closed when they come back."""
        self._closed = True
        self.close_idle()

    def _current(self) -> _ProcessState:
        if self._closed:
            raise StoreError("the store is closed", hint="open the index again")
        if self._state.pid != os.getpid():
            _inherited.append(self._state)
            self._state = _ProcessState()
        return self._state

    def _return(self, state: _ProcessState, db: Database) -> None:
        if state.pid != os.getpid():
            return  # forked inside the `with` block: the connection is the parent's
        try:
            db.end_transaction()
        except StoreError:
            db.close()
            raise
        with state.lock:
            keep = not self._closed and len(state.idle) < _MAX_IDLE
            if keep:
                state.idle.append(db)
        if not keep:
            db.close()


_pools: WeakSet[ConnectionPool] = WeakSet()
_inherited: list[_ProcessState] = []  # closing a parent's connection in a child could drop the parent's log


def _close_idle_connections() -> None:
    for pool in list(_pools):
        pool.close_idle()


if hasattr(os, "register_at_fork"):  # no fork on Windows
    os.register_at_fork(before=_close_idle_connections)
