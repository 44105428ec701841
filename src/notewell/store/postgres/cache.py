"""Caches the vectors of a tenant by embedding space and text hash, beside its index."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from notewell.errors import IndexReadOnlyError, StoreError
from notewell.store.vectors import checked_matrix, pack
from notewell.types import CacheStats, EmbedderIdentity

if TYPE_CHECKING:
    from notewell.protocols import Vector
    from notewell.store.postgres.connection import Database
    from notewell.store.postgres.tenant import Tenant

_DAY_S = 86_400  # a use is noted once a day, so that reading hardly ever writes
_FOUND = (
    " FROM notewell.cache_entries e JOIN notewell.cache_spaces s ON s.tenant = e.tenant AND s.id = e.space"
    " WHERE e.tenant = %s AND provider = %s AND model = %s AND key = %s AND dimensions = %s AND text_hash = ANY(%s)"
)


class PostgresEmbeddingCache:
    """Implements `ManagedCache` for one tenant. It is only a cache: what it cannot write is a note, not an error."""

    def __init__(
        self,
        tenant: Tenant,
        *,
        max_entries: int,
        max_age_days: float = 0.0,  # since the last use; 0 is any age
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tenant = tenant
        self.max_entries = max_entries
        self._max_age_s = max_age_days * _DAY_S
        self._prune_at = 0.0  # by the clock
        self._clock = clock
        self.notes: tuple[str, ...] = ()
        self._hits = 0
        self._misses = 0
        self._most_now: int | None = None  # entries there may be, as far as this process knows; None before a count

    def get_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]:
        stale, vectors = self._vectors(identity, hashes)
        self._hits += len(vectors)
        if stale and self._tenant.writable():
            with self._writing() as db:
                db.rows(
                    "UPDATE notewell.cache_entries SET used_at = %s WHERE tenant = %s AND text_hash = ANY(%s)",
                    (int(self._clock()), self._tenant.number(), stale),
                )
        return vectors

    def peek_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]:
        """Return what `get_many` would, without counting as use."""
        return self._vectors(identity, hashes)[1]

    def known(self, identity: EmbedderIdentity, hashes: Collection[str]) -> set[str]:
        """Return which of these texts have a vector here, without counting as use."""
        found = self._rows(f"SELECT text_hash{_FOUND}", *_space(identity), _digests(hashes)) if hashes else []
        return {digest.hex() for (digest,) in found}

    def put_many(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None:
        if not vectors:
            return
        blobs = pack(checked_matrix(vectors.values(), identity.dimensions))
        self._misses += len(blobs)
        if not self._tenant.writable():
            return
        with self._writing() as db:
            tenant, space = self._tenant.number(), _space(identity)
            db.rows(
                "INSERT INTO notewell.cache_spaces (tenant, provider, model, key, dimensions)"
                " VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (tenant, *space),
            )
            # In order of the hashes: two processes that put the same texts must not wait for each other.
            entries = sorted(zip(_digests(vectors), blobs, strict=True))
            db.rows(
                "INSERT INTO notewell.cache_entries (tenant, space, used_at, text_hash, vector)"
                " SELECT %s, s.id, %s, t.* FROM notewell.cache_spaces s, unnest(%s::bytea[], %s::bytea[]) t"
                " WHERE s.tenant = %s AND provider = %s AND model = %s AND key = %s AND dimensions = %s"
                " ON CONFLICT (tenant, space, text_hash)"
                " DO UPDATE SET vector = excluded.vector, used_at = excluded.used_at",
                (tenant, int(self._clock()), *map(list, zip(*entries, strict=True)), tenant, *space),
            )
            self._add_counts(db)
            self._drop_old(db)
            self._evict(db, added=len(entries))

    def prune(self, *, older_than_days: float) -> int:
        """Delete entries that were not used for that long; return how many."""
        return self._delete("used_at < %s", int(self._clock() - older_than_days * _DAY_S))

    def clear(self) -> int:
        """Delete every entry and all counts; return how many entries there were."""
        gone = self._delete("used_at > %s", -1)
        self._hits = self._misses = 0
        if self._tenant.number() is not None:
            with self._writing() as db:
                db.rows("DELETE FROM notewell.cache_counters WHERE tenant = %s", (self._tenant.number(),))
        return gone

    def keep_only(self, hashes: Collection[str]) -> int:
        """Delete the vectors of all other texts; return how many there were."""
        return self._delete("NOT text_hash = ANY(%s)", _digests(hashes))

    def stats(self) -> CacheStats:
        """Return how much the cache holds now."""
        found = self._rows(
            "SELECT count(*), coalesce(sum(octet_length(vector) + 60), 0)::bigint, min(used_at)"
            " FROM notewell.cache_entries WHERE tenant = %s"
        )
        entries, size, oldest = found[0] if found else (0, 0, None)
        counters = {
            str(name): int(value)
            for name, value in self._rows("SELECT name, value FROM notewell.cache_counters WHERE tenant = %s")
        }
        return CacheStats(
            entries=entries,
            bytes=size,
            max_entries=self.max_entries,
            oldest_use=None if oldest is None else datetime.fromtimestamp(oldest, UTC),
            hits=counters.get("hits", 0) + self._hits,
            misses=counters.get("misses", 0) + self._misses,
        )

    def close(self) -> None:
        if (self._hits or self._misses) and self._tenant.writable():
            with suppress(StoreError), self._writing() as db:  # a busy or absent database: only counts are lost
                self._add_counts(db)

    # --- statements ------------------------------------------------------------------------------

    def _vectors(self, identity: EmbedderIdentity, hashes: Collection[str]) -> tuple[list[bytes], dict[str, Vector]]:
        """Return the texts whose use must be recorded, and the vectors found."""
        asked = _digests(set(hashes))
        found = self._rows(f"SELECT text_hash, vector, used_at{_FOUND}", *_space(identity), asked) if asked else []
        recent = self._clock() - _DAY_S
        stale = [digest for digest, _, used_at in found if used_at < recent]
        rows = np.frombuffer(b"".join(blob for _, blob, _ in found), "<f2").astype(np.float32)
        matrix = rows.reshape(len(found), identity.dimensions)
        return stale, {digest.hex(): row for (digest, _, _), row in zip(found, matrix, strict=True)}

    def _evict(self, db: Database, *, added: int) -> None:
        """Delete the least recently used entries where there are too many; counting takes a scan, so it is rare."""
        if self._most_now is not None and self._most_now + added <= self.max_entries:
            self._most_now += added
            return
        tenant = self._tenant.number()
        count: int = db.value("SELECT count(*) FROM notewell.cache_entries WHERE tenant = %s", (tenant,))
        if count > self.max_entries:
            db.rows(
                "DELETE FROM notewell.cache_entries e USING (SELECT space, text_hash FROM notewell.cache_entries"
                " WHERE tenant = %s ORDER BY used_at, space, text_hash LIMIT %s) old"
                " WHERE e.tenant = %s AND e.space = old.space AND e.text_hash = old.text_hash",
                (tenant, count - self.max_entries, tenant),
            )
        self._most_now = min(count, self.max_entries)

    def _drop_old(self, db: Database) -> None:
        """Delete what was not used for too long, as often as once a day."""
        now = self._clock()
        if self._max_age_s and now >= self._prune_at:
            self._prune_at = now + _DAY_S
            db.rows(
                "DELETE FROM notewell.cache_entries WHERE tenant = %s AND used_at < %s",
                (self._tenant.number(), int(now - self._max_age_s)),
            )

    def _add_counts(self, db: Database) -> None:
        """Store what was counted since the last time."""
        counts = [("hits", self._hits), ("misses", self._misses)]
        self._hits = self._misses = 0
        for name, count in counts:
            if count:
                db.rows(
                    "INSERT INTO notewell.cache_counters AS c VALUES (%s, %s, %s)"
                    " ON CONFLICT (tenant, name) DO UPDATE SET value = c.value + excluded.value",
                    (self._tenant.number(), name, count),
                )

    def _delete(self, condition: str, value: Any) -> int:
        if not self._tenant.writable():
            raise IndexReadOnlyError(
                f"{self._tenant.shown} is only followed: nothing was deleted",
                hint="run this on a machine that holds the notes",
            )
        if self._tenant.number() is None:
            return 0
        self._most_now = None
        with self._writing() as db:
            return db.count(
                f"DELETE FROM notewell.cache_entries WHERE tenant = %s AND {condition}", (self._tenant.number(), value)
            )

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        number = self._tenant.number()
        if number is None:
            return []
        with self._tenant.connections.transaction("BEGIN READ ONLY", self._tenant.as_set()) as db:
            return db.rows(sql, (number, *values))

    @contextmanager
    def _writing(self) -> Iterator[Database]:
        if self._tenant.number() is None:
            self._tenant.ensure()
        with self._tenant.connections.transaction("BEGIN", self._tenant.as_set()) as db:
            yield db
            db.commit()


def _digests(hashes: Collection[str]) -> list[bytes]:
    return [bytes.fromhex(digest) for digest in hashes]


def _space(identity: EmbedderIdentity) -> tuple[str, str, str, int]:
    return identity.provider, identity.model, identity.key, identity.dimensions
