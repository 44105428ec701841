"""Caches vectors in a SQLite file, by embedding space and text hash."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from notewell.errors import IndexCorruptError, IndexReadOnlyError, StoreError
from notewell.store.cache_use import DAY_S, CacheUse, space_of
from notewell.store.sqlite.connection import (
    ConnectionPool,
    Database,
    Row,
    as_json,
    create_empty,
    open_for_reading,
    open_for_writing,
)
from notewell.store.state_folder import StateFolder, set_aside_database
from notewell.types import CacheStats, EmbedderIdentity

if TYPE_CHECKING:
    from notewell.protocols import Vector

Result = TypeVar("Result")

APPLICATION_ID = 0x72636C63  # "rclc" in ASCII
_VERSION = 2  # 1 had no counters
_COUNTERS = "CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS spaces (
  id INTEGER PRIMARY KEY, provider TEXT NOT NULL, model TEXT NOT NULL, key TEXT NOT NULL, dimensions INTEGER NOT NULL,
  UNIQUE (provider, model, key, dimensions)
);
CREATE TABLE IF NOT EXISTS entries (
  id INTEGER PRIMARY KEY, space_id INTEGER NOT NULL, text_hash BLOB NOT NULL, vector BLOB NOT NULL,  -- float16
  used_at INTEGER NOT NULL,  -- seconds since 1970
  UNIQUE (space_id, text_hash)
);
CREATE INDEX IF NOT EXISTS entries_by_use ON entries (used_at);
{_COUNTERS}
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {_VERSION};
"""
# The entries of a space that have one of the listed hashes.
_FOUND = (
    "FROM entries JOIN spaces ON spaces.id = space_id WHERE provider = ? AND model = ? AND key = ? AND dimensions = ?"
    " AND text_hash IN (SELECT unhex(value) FROM json_each(?))"
)


class SqliteEmbeddingCache:
    """Implements `EmbeddingCache`; a corrupt file is replaced by a new one, with a note."""

    def __init__(
        self,
        path: Path,
        *,
        max_entries: int,
        max_age_days: float = 0.0,  # since the last use; 0 is any age
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self.max_entries = max_entries
        self._use = CacheUse(max_entries, max_age_days * DAY_S, clock)
        self.notes: tuple[str, ...] = ()
        self._lock = threading.RLock()  # for opening and replacing the file
        self._pool: ConnectionPool | None = None
        self._read_only = False

    def get_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]:
        stale, vectors = self._vectors(identity, hashes)
        self._use.hits += len(vectors)
        if stale and not self._read_only:
            self._write(
                lambda db: db.rows(
                    "UPDATE entries SET used_at = ? WHERE id IN (SELECT value FROM json_each(?))",
                    (self._use.now(), as_json(stale)),
                )
            )
        return vectors

    def peek_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]:
        return self._vectors(identity, hashes)[1]

    def known(self, identity: EmbedderIdentity, hashes: Collection[str]) -> set[str]:
        if not hashes:
            return set()
        asked = (*space_of(identity), as_json(hashes))
        found: list[Row] = self._read(lambda db: db.rows(f"SELECT text_hash {_FOUND}", asked), [])
        return {digest.hex() for (digest,) in found}

    def put_many(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None:
        if not vectors:
            return
        from notewell.store.vectors import checked_matrix, pack  # imports NumPy

        blobs = pack(checked_matrix(vectors.values(), identity.dimensions))
        entries = [(bytes.fromhex(digest), blob) for digest, blob in zip(vectors, blobs, strict=True)]
        self._use.misses += len(entries)
        self._write(lambda db: self._put(db, identity, entries))

    def prune(self, *, older_than_days: float) -> int:
        return self._delete("used_at < ?", int(self._use.clock() - older_than_days * DAY_S))

    def clear(self) -> int:
        gone = self._delete("id > ?", 0)
        self._use.hits = self._use.misses = 0
        if self.path.exists():
            self._write(lambda db: db.rows("DELETE FROM counters"))
        return gone

    def keep_only(self, hashes: Collection[str]) -> int:
        return self._delete("text_hash NOT IN (SELECT unhex(value) FROM json_each(?))", as_json(hashes), erase=True)

    def stats(self) -> CacheStats:
        entries, oldest = self._read(lambda db: db.rows("SELECT count(*), min(used_at) FROM entries")[0], (0, None))
        counters: dict[str, int] = self._read(_counters, {})
        return self._use.stats(entries=entries, size=StateFolder.bytes_of(self.path), oldest=oldest, stored=counters)

    def close(self) -> None:
        if self._pool is None:
            return
        if (self._use.hits or self._use.misses) and not self._read_only:
            with suppress(StoreError), self._writing() as db:  # a full disk or a busy file: only counts are lost
                self._add_counts(db)
        self._drop_pool()

    # --- statements ------------------------------------------------------------------------------

    def _vectors(self, identity: EmbedderIdentity, hashes: Collection[str]) -> tuple[list[int], dict[str, Vector]]:
        """Return the entries to record a use of, and the vectors."""

        def read(db: Database) -> tuple[list[int], dict[str, Vector]]:
            found = db.rows(
                f"SELECT entries.id, text_hash, vector, used_at {_FOUND}", (*space_of(identity), as_json(set(hashes)))
            )
            if not found:
                return [], {}
            from notewell.store.vectors import unpack  # imports NumPy

            matrix = unpack(self.path, [blob for _, _, blob, _ in found])
            recent = self._use.noted_since()
            stale = [key for key, _, _, used_at in found if used_at < recent]
            return stale, {digest.hex(): row for (_, digest, _, _), row in zip(found, matrix, strict=True)}

        nothing: tuple[list[int], dict[str, Vector]] = ([], {})
        return self._read(read, nothing) if hashes else nothing

    def _put(self, db: Database, identity: EmbedderIdentity, entries: Sequence[tuple[bytes, bytes]]) -> None:
        now = self._use.now()
        db.rows(
            "INSERT OR IGNORE INTO spaces (provider, model, key, dimensions) VALUES (?, ?, ?, ?)", space_of(identity)
        )
        space = db.value(
            "SELECT id FROM spaces WHERE provider = ? AND model = ? AND key = ? AND dimensions = ?", space_of(identity)
        )
        db.run_many(
            "INSERT INTO entries (space_id, text_hash, vector, used_at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET vector = excluded.vector, used_at = excluded.used_at",
            ((space, digest, blob, now) for digest, blob in entries),
        )
        self._add_counts(db)
        self._drop_old(db)
        self._evict(db, added=len(entries))

    def _evict(self, db: Database, *, added: int) -> None:
        """Delete the least recently used entries if there are too many."""
        excess = self._use.excess(added, lambda: db.value("SELECT count(*) FROM entries"))
        if excess:
            db.rows("DELETE FROM entries WHERE id IN (SELECT id FROM entries ORDER BY used_at, id LIMIT ?)", (excess,))

    def _drop_old(self, db: Database) -> None:
        """Delete entries unused for too long, once a day."""
        before = self._use.too_old()
        if before is not None:
            db.rows("DELETE FROM entries WHERE used_at < ?", (before,))

    def _add_counts(self, db: Database) -> None:
        """Store the counts since the last time."""
        db.run_many(
            "INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
            self._use.uncounted(),
        )

    def _delete(self, condition: str, value: int | str, *, erase: bool = False) -> int:
        """Delete entries and free their space, with `erase` also in the log."""

        def delete() -> int:
            if not self.path.exists():
                return 0
            with self._writing() as db:
                gone = len(db.rows(f"DELETE FROM entries WHERE {condition} RETURNING 1", (value,)))  # noqa: S608
            with self._connections().writer() as db:
                if erase:
                    db.rewrite_file()
                elif gone:
                    db.rows("VACUUM")
            return gone

        if self.path.exists() and not self._is_writable():
            raise IndexReadOnlyError(
                f"{self.path} is read-only: nothing was deleted",
                hint="check the permissions of the folder that holds it, or set store.path",
            )
        return self._rescued(delete, 0)

    # --- the file --------------------------------------------------------------------------------

    def _read(self, work: Callable[[Database], Result], default: Result) -> Result:
        """Return what `work` reads, or `default` without a usable cache."""

        def read() -> Result:
            if not self.path.exists():
                return default
            with self._connections().reader() as db:
                return work(db)

        return self._rescued(read, default)

    def _write(self, work: Callable[[Database], object]) -> None:
        def write() -> None:
            with self._writing() as db:
                work(db)

        self._rescued(write, None)

    def _rescued(self, work: Callable[[], Result], default: Result) -> Result:
        """Do the work, with a new file if this one is corrupt; return `default` if it cannot be written."""
        try:
            return work()
        except IndexCorruptError as error:
            if not os.access(self.path.parent, os.W_OK):
                self._note(f"the embedding cache is corrupt and cannot be replaced: {error.message}")
                return default
            with self._lock:
                self._drop_pool()
                kept = set_aside_database(self.path).name
            self._note(f"the embedding cache was corrupt ({error.message}); it was kept as {kept} and a new one begun")
            return work()
        except IndexReadOnlyError as error:
            self._note(f"the embedding cache cannot be written: {error.message}")
            return default

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes = (*self.notes, note)

    @contextmanager
    def _writing(self) -> Iterator[Database]:
        connections = self._connections()
        if self._read_only:
            raise IndexReadOnlyError(f"{self.path} is read-only")
        with connections.writer() as db, db.transaction():
            yield db

    def _connections(self) -> ConnectionPool:
        with self._lock:
            if self._pool is None:
                self._pool = self._open_pool()
            return self._pool

    def _open_pool(self) -> ConnectionPool:
        if not self.path.exists():
            create_empty(self.path)
        self._read_only = not self._is_writable()
        first = self._open(read_only=self._read_only)
        try:
            _prepare_tables(first)
            if self._use.max_age_s and not self._read_only:
                with first.transaction():
                    self._drop_old(first)
        except BaseException:
            first.close()
            raise
        return ConnectionPool(self._open, first, first_writes=not self._read_only)

    def _is_writable(self) -> bool:
        return os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)

    def _open(self, *, read_only: bool) -> Database:
        return open_for_reading(self.path) if read_only else open_for_writing(self.path)

    def _drop_pool(self) -> None:
        self._use.most_now = None
        if self._pool is not None:
            self._pool.close()
            self._pool = None


def _counters(db: Database) -> dict[str, int]:
    if not db.value("SELECT count(*) FROM sqlite_schema WHERE name = 'counters'"):  # version 1, read-only
        return {}
    return dict(db.rows("SELECT name, value FROM counters"))


def _prepare_tables(db: Database) -> None:
    """Create the tables in an empty file; raise IndexCorruptError for a foreign file."""
    found = db.value("PRAGMA application_id")
    if found == APPLICATION_ID:
        if db.value("PRAGMA user_version") < _VERSION and not db.file_is_read_only:
            with db.transaction():
                db.rows(f"{_COUNTERS} PRAGMA user_version = {_VERSION};")
        return
    if found or db.file_is_read_only or db.value("SELECT count(*) FROM sqlite_schema"):
        raise IndexCorruptError(f"{db.path} is not an embedding cache")
    db.rows("PRAGMA journal_mode = WAL")
    with db.transaction():
        db.rows(_SCHEMA)
