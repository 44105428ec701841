"""Caches the vectors of a tenant, by embedding space and text hash."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from notewell.errors import IndexReadOnlyError, StoreError
from notewell.store.cache_use import DAY_S, CacheUse, space_of
from notewell.store.vectors import checked_matrix, pack
from notewell.types import CacheStats, EmbedderIdentity

if TYPE_CHECKING:
    from notewell.protocols import Vector
    from notewell.store.postgres.connection import Database
    from notewell.store.postgres.tenant import Tenant

_FOUND = (
    " FROM notewell.cache_entries e JOIN notewell.cache_spaces s ON s.tenant = e.tenant AND s.id = e.space"
    " WHERE e.tenant = %s AND provider = %s AND model = %s AND key = %s AND dimensions = %s AND text_hash = ANY(%s)"
)
_PUT = (
    "INSERT INTO notewell.cache_entries (tenant, space, used_at, text_hash, vector)"
    " SELECT %s, s.id, %s, t.* FROM notewell.cache_spaces s, unnest(%s::bytea[], %s::bytea[]) t"
    " WHERE s.tenant = %s AND provider = %s AND model = %s AND key = %s AND dimensions = %s"
    " ON CONFLICT (tenant, space, text_hash) DO UPDATE SET vector = excluded.vector, used_at = excluded.used_at"
)


class PostgresEmbeddingCache:
    """Implements `EmbeddingCache` for one tenant; it is read-only on machines that follow the tenant."""

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
        self._use = CacheUse(max_entries, max_age_days * DAY_S, clock)
        self.notes: tuple[str, ...] = ()

    def get_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]:
        stale, vectors = self._vectors(identity, hashes)
        self._use.hits += len(vectors)
        if stale and self._tenant.writable():
            with self._writing() as db:
                db.rows(
                    "UPDATE notewell.cache_entries SET used_at = %s WHERE tenant = %s AND text_hash = ANY(%s)",
                    (self._use.now(), self._tenant.number(), stale),
                )
        return vectors

    def peek_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]:
        return self._vectors(identity, hashes)[1]

    def known(self, identity: EmbedderIdentity, hashes: Collection[str]) -> set[str]:
        found = self._rows(f"SELECT text_hash{_FOUND}", *space_of(identity), _digests(hashes)) if hashes else []
        return {digest.hex() for (digest,) in found}

    def put_many(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None:
        if not vectors:
            return
        blobs = pack(checked_matrix(vectors.values(), identity.dimensions))
        self._use.misses += len(blobs)
        if not self._tenant.writable():
            return
        with self._writing() as db:
            tenant, space = self._tenant.number(), space_of(identity)
            # In order of the hashes, so that two processes that put the same texts do not deadlock.
            entries = sorted(zip(_digests(vectors), blobs, strict=True))
            values = (tenant, self._use.now(), *map(list, zip(*entries, strict=True)), tenant, *space)
            if not db.count(_PUT, values):
                db.rows(
                    "INSERT INTO notewell.cache_spaces (tenant, provider, model, key, dimensions)"
                    " VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                    (tenant, *space),
                )
                db.count(_PUT, values)
            self._add_counts(db)
            self._drop_old(db)
            self._evict(db, added=len(entries))

    def prune(self, *, older_than_days: float) -> int:
        return self._delete("used_at < %s", int(self._use.clock() - older_than_days * DAY_S))

    def clear(self) -> int:
        gone = self._delete("used_at > %s", -1)
        self._use.hits = self._use.misses = 0
        if self._tenant.number() is not None:
            with self._writing() as db:
                db.rows("DELETE FROM notewell.cache_counters WHERE tenant = %s", (self._tenant.number(),))
        return gone

    def keep_only(self, hashes: Collection[str]) -> int:
        return self._delete("NOT text_hash = ANY(%s)", _digests(hashes))

    def stats(self) -> CacheStats:
        found = self._rows(
            "SELECT count(*), coalesce(sum(octet_length(vector) + 60), 0)::bigint, min(used_at)"
            " FROM notewell.cache_entries WHERE tenant = %s"
        )
        entries, size, oldest = found[0] if found else (0, 0, None)
        counters = {
            str(name): int(value)
            for name, value in self._rows("SELECT name, value FROM notewell.cache_counters WHERE tenant = %s")
        }
        return self._use.stats(entries=entries, size=size, oldest=oldest, stored=counters)

    def close(self) -> None:
        if (self._use.hits or self._use.misses) and self._tenant.writable():
            with suppress(StoreError), self._writing() as db:  # a busy or absent database: only counts are lost
                self._add_counts(db)

    # --- statements ------------------------------------------------------------------------------

    def _vectors(self, identity: EmbedderIdentity, hashes: Collection[str]) -> tuple[list[bytes], dict[str, Vector]]:
        """Return the hashes to record a use of, and the vectors."""
        asked = _digests(set(hashes))
        found = self._rows(f"SELECT text_hash, vector, used_at{_FOUND}", *space_of(identity), asked) if asked else []
        recent = self._use.noted_since()
        stale = [digest for digest, _, used_at in found if used_at < recent]
        rows = np.frombuffer(b"".join(blob for _, blob, _ in found), "<f2").astype(np.float32)
        matrix = rows.reshape(len(found), identity.dimensions)
        return stale, {digest.hex(): row for (digest, _, _), row in zip(found, matrix, strict=True)}

    def _evict(self, db: Database, *, added: int) -> None:
        """Delete the least recently used entries if there are too many."""
        tenant = self._tenant.number()
        count = "SELECT count(*) FROM notewell.cache_entries WHERE tenant = %s"
        if excess := self._use.excess(added, lambda: db.value(count, (tenant,))):
            db.rows(
                "DELETE FROM notewell.cache_entries e USING (SELECT space, text_hash FROM notewell.cache_entries"
                " WHERE tenant = %s ORDER BY used_at, space, text_hash LIMIT %s) old"
                " WHERE e.tenant = %s AND e.space = old.space AND e.text_hash = old.text_hash",
                (tenant, excess, tenant),
            )

    def _drop_old(self, db: Database) -> None:
        """Delete entries unused for too long, once a day."""
        before = self._use.too_old()
        if before is not None:
            db.rows(
                "DELETE FROM notewell.cache_entries WHERE tenant = %s AND used_at < %s", (self._tenant.number(), before)
            )

    def _add_counts(self, db: Database) -> None:
        """Store the counts since the last time."""
        for name, count in self._use.uncounted():
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
        self._use.most_now = None
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
