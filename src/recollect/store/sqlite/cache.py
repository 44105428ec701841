"""The embedding cache: vectors by embedding space and text hash come in, and come out again, across rebuilds."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from recollect.errors import IndexCorruptError, IndexReadOnlyError
from recollect.store.sqlite.connection import Database, Row, as_json
from recollect.store.sqlite.files import bytes_on_disk, create_empty, open_for_reading, open_for_writing
from recollect.store.sqlite.pool import ConnectionPool
from recollect.store.state_folder import set_aside_database
from recollect.types import EmbedderIdentity

if TYPE_CHECKING:
    from recollect.protocols import Vector

Result = TypeVar("Result")

APPLICATION_ID = 0x72636C63  # "rclc" in ASCII
_DAY_S = 86_400  # a use is noted once a day, so that reading hardly ever writes
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
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = 1;
"""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How much the cache holds and how useful it was since it was opened."""

    entries: int
    bytes: int
    max_entries: int
    oldest_use: datetime | None
    hits: int
    misses: int


class SqliteEmbeddingCache:
    """Implements `EmbeddingCache`. It is only a cache: a damaged file is set aside and a new one begun, with a note."""

    def __init__(self, path: Path, *, max_entries: int, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.max_entries = max_entries
        self.notes: tuple[str, ...] = ()
        self._clock = clock
        self._lock = threading.RLock()  # for opening and beginning anew; the pool sees to the rest
        self._pool: ConnectionPool | None = None
        self._read_only = False
        self._hits = 0
        self._misses = 0

    def get_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]:
        wanted = set(hashes)
        if not wanted:
            return {}
        found, vectors = self._rescued(lambda: self._read_vectors(identity, wanted)) or ([], {})
        self._hits += len(found)
        self._misses += len(wanted) - len(found)
        stale = [key for key, _, _, used_at in found if used_at < self._clock() - _DAY_S]
        if stale and not self._read_only:
            self._rescued(lambda: self._note_use(stale))
        return vectors

    def put_many(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None:
        if not vectors:
            return
        from recollect.store.sqlite.vectors.rows import checked_matrix, pack  # imports NumPy

        blobs = pack(checked_matrix(vectors.values(), identity.dimensions))
        entries = [(bytes.fromhex(digest), blob) for digest, blob in zip(vectors, blobs, strict=True)]
        self._rescued(lambda: self._write(identity, entries))

    def prune(self, *, older_than_days: float) -> int:
        """Forget entries that were not used for so long; return how many."""
        limit = self._clock() - older_than_days * _DAY_S
        return self._rescued(lambda: self._delete("used_at < ?", int(limit))) or 0

    def clear(self) -> int:
        """Forget every entry; return how many there were."""
        return self._rescued(lambda: self._delete("id > ?", 0)) or 0

    def stats(self) -> CacheStats:
        """Return how much the cache holds now."""
        counted = self._rescued(self._count)
        entries, oldest = counted or (0, None)
        return CacheStats(
            entries=entries,
            bytes=bytes_on_disk(self.path),
            max_entries=self.max_entries,
            oldest_use=None if oldest is None else datetime.fromtimestamp(oldest, UTC),
            hits=self._hits,
            misses=self._misses,
        )

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _rescued(self, work: Callable[[], Result]) -> Result | None:
        """Do the work; on a damaged file begin a new one and do it again; where nothing may be written, do without."""
        try:
            return work()
        except IndexCorruptError as error:
            if not os.access(self.path.parent, os.W_OK):
                self._note(f"the embedding cache is damaged and cannot be replaced: {error.message}")
                return None
            self._begin_anew(error)
            return work()
        except IndexReadOnlyError as error:
            self._note(f"the embedding cache cannot be written: {error.message}")
            return None

    def _begin_anew(self, error: IndexCorruptError) -> None:
        with self._lock:
            self.close()
            kept = set_aside_database(self.path)
        self._note(f"the embedding cache was damaged ({error.message}); it was kept as {kept.name} and a new one begun")

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes = (*self.notes, note)

    def _read_vectors(self, identity: EmbedderIdentity, wanted: Collection[str]) -> tuple[list[Row], dict[str, Vector]]:
        found = self._read(identity, wanted)
        if not found:
            return found, {}
        from recollect.store.sqlite.vectors.rows import unpack  # imports NumPy

        matrix = unpack(self.path, [blob for _, _, blob, _ in found])
        return found, {digest.hex(): row for (_, digest, _, _), row in zip(found, matrix, strict=True)}

    def _read(self, identity: EmbedderIdentity, hashes: Collection[str]) -> list[Row]:
        if not self.path.exists():
            return []
        with self._connections().reader() as db:
            return db.rows(
                "SELECT entries.id, text_hash, vector, used_at FROM entries JOIN spaces ON spaces.id = space_id"
                " WHERE provider = ? AND model = ? AND key = ? AND dimensions = ?"
                " AND text_hash IN (SELECT unhex(value) FROM json_each(?))",
                (*_space(identity), as_json(hashes)),
            )

    def _note_use(self, keys: Collection[int]) -> None:
        with self._writing() as db:
            db.rows(
                "UPDATE entries SET used_at = ? WHERE id IN (SELECT value FROM json_each(?))",
                (int(self._clock()), as_json(keys)),
            )

    def _write(self, identity: EmbedderIdentity, entries: Sequence[tuple[bytes, bytes]]) -> None:
        now = int(self._clock())
        with self._writing() as db:
            db.rows(
                "INSERT OR IGNORE INTO spaces (provider, model, key, dimensions) VALUES (?, ?, ?, ?)", _space(identity)
            )
            space = db.value(
                "SELECT id FROM spaces WHERE provider = ? AND model = ? AND key = ? AND dimensions = ?",
                _space(identity),
            )
            db.run_many(
                "INSERT INTO entries (space_id, text_hash, vector, used_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET vector = excluded.vector, used_at = excluded.used_at",
                ((space, digest, blob, now) for digest, blob in entries),
            )
            excess = db.value("SELECT count(*) FROM entries") - self.max_entries
            if excess > 0:
                db.rows(
                    "DELETE FROM entries WHERE id IN (SELECT id FROM entries ORDER BY used_at, id LIMIT ?)", (excess,)
                )

    def _delete(self, condition: str, value: int) -> int:
        if not self.path.exists():
            return 0
        with self._writing() as db:
            count: int = db.value(f"SELECT count(*) FROM entries WHERE {condition}", (value,))  # noqa: S608
            db.rows(f"DELETE FROM entries WHERE {condition}", (value,))  # noqa: S608
        if count:
            with self._connections().writer() as db:
                db.rows("VACUUM")
        return count

    def _count(self) -> tuple[int, int | None]:
        if not self.path.exists():
            return 0, None
        with self._connections().reader() as db:
            entries, oldest = db.rows("SELECT count(*), min(used_at) FROM entries")[0]
            return entries, oldest

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
        self._read_only = not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))
        first = open_for_reading(self.path) if self._read_only else open_for_writing(self.path)
        try:
            _check_ours(first)
        except BaseException:
            first.close()
            raise
        return ConnectionPool(self._open, first, first_writes=not self._read_only)

    def _open(self, *, read_only: bool) -> Database:
        return open_for_reading(self.path) if read_only else open_for_writing(self.path)


def _check_ours(db: Database) -> None:
    """Make the tables in an empty file; raises IndexCorruptError for a file that is something else."""
    found = db.value("PRAGMA application_id")
    if found == APPLICATION_ID:
        return
    if found or db.file_is_read_only or db.value("SELECT count(*) FROM sqlite_schema"):
        raise IndexCorruptError(f"{db.path} is not an embedding cache")
    db.rows("PRAGMA journal_mode = WAL")
    with db.transaction():
        db.rows(_SCHEMA)


def _space(identity: EmbedderIdentity) -> tuple[str, str, str, int]:
    return identity.provider, identity.model, identity.key, identity.dimensions
