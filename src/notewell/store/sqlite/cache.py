"""The embedding cache: vectors by embedding space and text hash come in, and come out again, across rebuilds."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from notewell.errors import IndexCorruptError, IndexReadOnlyError, StoreError
from notewell.store.sqlite.cache_tables import CacheStats, make_or_check_tables
from notewell.store.sqlite.connection import Database, Row, as_json
from notewell.store.sqlite.files import bytes_on_disk, create_empty, open_for_reading, open_for_writing, rewrite_file
from notewell.store.sqlite.pool import ConnectionPool
from notewell.store.state_folder import set_aside_database
from notewell.types import EmbedderIdentity

if TYPE_CHECKING:
    from notewell.protocols import Vector

Result = TypeVar("Result")

_DAY_S = 86_400  # a use is noted once a day, so that reading hardly ever writes


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
        self._most_now: int | None = None  # entries there may be, as far as this process knows; None before a count

    def get_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]:
        wanted = set(hashes)
        if not wanted:
            return {}
        found, vectors = self._rescued(lambda: self._read_vectors(identity, wanted)) or ([], {})
        self._hits += len(found)
        stale = [key for key, _, _, used_at in found if used_at < self._clock() - _DAY_S]
        if stale and not self._read_only:
            self._rescued(lambda: self._note_use(stale))
        return vectors

    def peek_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]:
        """Return what `get_many` would, without counting as use: for those who only check."""
        wanted = set(hashes)
        _, vectors = (self._rescued(lambda: self._read_vectors(identity, wanted)) if wanted else None) or ([], {})
        return vectors

    def known(self, identity: EmbedderIdentity, hashes: Collection[str]) -> set[str]:
        """Return which of these texts have a vector here; looking counts as no use and writes nothing."""
        wanted = set(hashes)
        return (self._rescued(lambda: self._read_known(identity, wanted)) if wanted else None) or set()

    def put_many(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None:
        if not vectors:
            return
        from notewell.store.sqlite.vectors.rows import checked_matrix, pack  # imports NumPy

        blobs = pack(checked_matrix(vectors.values(), identity.dimensions))
        entries = [(bytes.fromhex(digest), blob) for digest, blob in zip(vectors, blobs, strict=True)]
        self._misses += len(entries)
        self._rescued(lambda: self._write(identity, entries))

    def prune(self, *, older_than_days: float) -> int:
        """Forget entries that were not used for so long; return how many."""
        limit = self._clock() - older_than_days * _DAY_S
        return self._rescued(lambda: self._delete("used_at < ?", int(limit))) or 0

    def clear(self) -> int:
        """Forget every entry and what was counted; return how many there were."""
        self._hits = self._misses = 0
        self._rescued(self._delete_counters)
        return self._rescued(lambda: self._delete("id > ?", 0)) or 0

    def keep_only(self, hashes: Collection[str]) -> int:
        """Forget the vectors of all other texts, so that no byte of them is left; return how many there were."""
        return self._rescued(lambda: self._keep_only(hashes)) or 0

    def _keep_only(self, hashes: Collection[str]) -> int:
        if not self.path.exists():
            return 0
        with self._writing() as db:
            gone = db.rows(
                "DELETE FROM entries WHERE text_hash NOT IN (SELECT unhex(value) FROM json_each(?)) RETURNING 1",
                (as_json(hashes),),
            )
        with self._connections().writer() as db:
            rewrite_file(db)
        return len(gone)

    def stats(self) -> CacheStats:
        """Return how much the cache holds now."""
        entries, oldest = self._rescued(self._count) or (0, None)
        counters = self._rescued(self._counters) or {}
        return CacheStats(
            entries=entries,
            bytes=bytes_on_disk(self.path),
            max_entries=self.max_entries,
            oldest_use=None if oldest is None else datetime.fromtimestamp(oldest, UTC),
            hits=counters.get("hits", 0) + self._hits,
            misses=counters.get("misses", 0) + self._misses,
        )

    def close(self) -> None:
        if self._pool is None:
            return
        if (self._hits or self._misses) and not self._read_only:
            with suppress(StoreError), self._writing() as db:  # a full disk or a busy file: only counts are lost
                self._add_counts(db)
        self._drop_pool()

    def _drop_pool(self) -> None:
        self._most_now = None
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
            self._drop_pool()
            kept = set_aside_database(self.path)
        self._note(f"the embedding cache was damaged ({error.message}); it was kept as {kept.name} and a new one begun")

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes = (*self.notes, note)

    def _read_vectors(self, identity: EmbedderIdentity, wanted: Collection[str]) -> tuple[list[Row], dict[str, Vector]]:
        found = self._read(identity, wanted)
        if not found:
            return found, {}
        from notewell.store.sqlite.vectors.rows import unpack  # imports NumPy

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

    def _read_known(self, identity: EmbedderIdentity, hashes: Collection[str]) -> set[str]:
        if not self.path.exists():
            return set()
        with self._connections().reader() as db:
            rows = db.rows(
                "SELECT text_hash FROM entries JOIN spaces ON spaces.id = space_id"
                " WHERE provider = ? AND model = ? AND key = ? AND dimensions = ?"
                " AND text_hash IN (SELECT unhex(value) FROM json_each(?))",
                (*_space(identity), as_json(hashes)),
            )
        return {digest.hex() for (digest,) in rows}

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
            self._add_counts(db)
            self._evict(db, added=len(entries))

    def _evict(self, db: Database, *, added: int) -> None:
        """Let the least recently used go where there are too many; counting takes a scan, so it is done seldom."""
        if self._most_now is not None and self._most_now + added <= self.max_entries:
            self._most_now += added
            return
        count: int = db.value("SELECT count(*) FROM entries")
        excess = count - self.max_entries
        if excess > 0:
            db.rows("DELETE FROM entries WHERE id IN (SELECT id FROM entries ORDER BY used_at, id LIMIT ?)", (excess,))
        self._most_now = min(count, self.max_entries)

    def _add_counts(self, db: Database) -> None:
        """Keep what was counted since the last time, within a transaction that is under way."""
        counts = [("hits", self._hits), ("misses", self._misses)]
        self._hits = self._misses = 0
        db.run_many(
            "INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
            ((name, count) for name, count in counts if count),
        )

    def _counters(self) -> dict[str, int]:
        if not self.path.exists():
            return {}
        with self._connections().reader() as db:
            if not db.value("SELECT count(*) FROM sqlite_schema WHERE name = 'counters'"):  # version 1, read-only
                return {}
            return dict(db.rows("SELECT name, value FROM counters"))

    def _delete_counters(self) -> None:
        if self.path.exists():
            with self._writing() as db:
                db.rows("DELETE FROM counters")

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
            make_or_check_tables(first)
        except BaseException:
            first.close()
            raise
        return ConnectionPool(self._open, first, first_writes=not self._read_only)

    def _open(self, *, read_only: bool) -> Database:
        return open_for_reading(self.path) if read_only else open_for_writing(self.path)


def _space(identity: EmbedderIdentity) -> tuple[str, str, str, int]:
    return identity.provider, identity.model, identity.key, identity.dimensions
