"""Stores the documents, chunks, terms and vectors of a tenant in PostgreSQL, and lends the current generation."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notewell.errors import IndexCorruptError, IndexMismatchError, IndexReadOnlyError, StoreError
from notewell.store.postgres.connection import (
    READING,
    REPLICA,
    WRITING,
    Connections,
    Database,
    Prepared,
)
from notewell.store.postgres.posting_blocks import UnmergedCache
from notewell.store.postgres.schema import find_faults
from notewell.store.postgres.snapshot import PostgresSnapshot, replica_note, stored_embedder
from notewell.store.postgres.tenant import FixedId, Tenant, generation_of
from notewell.store.postgres.totals import TO_DOCUMENT, TOTALS, Totals
from notewell.store.postgres.vectors import VectorTable
from notewell.store.postgres.writes import Writes
from notewell.store.rows import EMBEDDED, SKIPPED, pending_chunk
from notewell.store.writing import DocumentStore
from notewell.types import (
    EVERYTHING,
    EmbedderIdentity,
    PendingChunk,
    Scope,
    SourceName,
)

if TYPE_CHECKING:
    from notewell.protocols import Vector
    from notewell.store.vector_codes import Quantization

_COUNTED_SHARE = 5  # run ANALYZE once a fifth of the rows is new
_FEW_CHUNKS = 100
_MANY_CHUNKS = 2_000  # also within a long run
_TIDIED_EVERY = 64  # chunks; checking after every small change would take a fifth of it
_DROPPED = "its tenant was dropped from the database, or holds nothing any more"
_ROW_BYTES = (
    "SELECT avg(pg_column_size(t.*))::float8 FROM (SELECT * FROM notewell.{} WHERE tenant = %s AND generation = %s"
    " LIMIT 200) t"
)
_SEGMENT_BYTES = (
    "SELECT sum(octet_length(codes) + octet_length(ids)) FROM notewell.vector_segments"
    " WHERE tenant = %s AND generation = %s"
)
_TERM_BYTES = 11  # of postings for each word of a text, measured at 10,000 chunks
_TOTALS = f"SELECT {TOTALS} FROM notewell.generations WHERE tenant = $1 AND"
_COUNTED = "SELECT reltuples FROM pg_class WHERE oid = 'notewell.chunks'::regclass"


class PostgresStore(DocumentStore):
    """Implements `Store` for one generation of a tenant, or for the current one."""

    def __init__(
        self,
        tenant: Tenant,
        generation: int | None = None,
        *,
        read_only: bool = False,
        owner: bool = False,
        vectors: VectorTable | None = None,
    ) -> None:
        self._tenant = tenant
        self._is_owner = owner  # of the connections
        self._generation = generation
        self.read_only = read_only
        self._closed = False
        self.is_gone = False  # no generation was found
        self._note = ""  # of the latest snapshot, if it was a replica's
        self._chunks_written = 0  # since the last ANALYZE
        self._unoptimized: range | None = None  # the ids of the chunks written since the last `optimize`
        self._counted = -1.0  # chunks at the last ANALYZE, as far as this process knows
        self._unmerged = UnmergedCache()
        self._vectors = vectors or VectorTable()
        self._lock = threading.RLock()
        self._writes: Writes | None = None  # the transaction of the thread that holds the lock

    @property
    def notes(self) -> tuple[str, ...]:
        return (self._note,) if self._note else ()

    # --- reading ---------------------------------------------------------------------------------

    def reading(self) -> AbstractContextManager[PostgresSnapshot]:
        return self.reading_within(EVERYTHING)

    @contextmanager
    def reading_within(self, scope: Scope) -> Iterator[PostgresSnapshot]:
        with self._reading() as (db, totals):
            snapshot = PostgresSnapshot(db, totals, self._unmerged, self._vectors, scope)
            try:
                yield snapshot
            finally:
                snapshot.end()

    @contextmanager
    def _reading(self) -> Iterator[tuple[Database, Totals]]:
        self._check_open()
        with self._tenant.connections.transaction(READING, self._tenant.as_set(), self._totals(), REPLICA) as db:
            self._note = replica_note(*db.replica)
            yield db, self._checked_totals(db.begun[1])

    def _totals(self, locked: str = "") -> Prepared:
        """Return the statement that reads the totals of the generation."""
        number = self._tenant.number()
        if number is None:
            raise self._gone()
        if self._generation:
            return Prepared(f"{_TOTALS} generation = $2{locked}", (number, self._generation))
        return Prepared(
            f"{_TOTALS} generation = (SELECT generation FROM notewell.tenants WHERE id = $1){locked}", (number,)
        )

    def _checked_totals(self, found: list[tuple[Any, ...]]) -> Totals:
        if not found:
            raise self._gone()
        return Totals(*found[0])

    def _gone(self) -> StoreError:
        """Record that no generation was found, and return the error."""
        self.is_gone = True
        self._tenant.forget_number()
        return StoreError(f"{self._tenant.shown}: {_DROPPED}", hint="run `notewell index`")

    def pending(self, limit: int, *, after: int = 0) -> Sequence[PendingChunk]:
        with self._reading() as (db, totals):
            found = db.rows(
                "SELECT id, embedded_hash, context, text FROM notewell.chunks"
                " WHERE tenant = %s AND generation = %s AND has_vector = 0 AND id > %s ORDER BY id LIMIT %s",
                (*totals.key, after, max(limit, 0)),
            )
        return [pending_chunk(*row) for row in found]

    def embedded_hashes(self) -> set[str]:
        with self._reading() as (db, totals):
            found = db.rows(
                "SELECT DISTINCT embedded_hash FROM notewell.chunks WHERE tenant = %s AND generation = %s", totals.key
            )
        return {digest.hex() for (digest,) in found}

    def verify(self) -> Sequence[str]:
        with self._reading() as (db, totals):
            return [*find_faults(db, totals, self._unmerged.of(db, totals)), *self._vectors.findings(db, totals)]

    def size_bytes(self) -> int:
        """Return an estimate of the size of the rows, without indexes and dead rows, from a sample of them."""
        with self._reading() as (db, totals):
            size = _TERM_BYTES * totals.terms + int(db.value(_SEGMENT_BYTES, totals.key) or 0)
            counts = (("generations", 1), ("documents", totals.documents), ("chunks", totals.chunks))
            for table, count in (*counts, ("vectors", totals.vectors)):
                size += round(count * (db.value(_ROW_BYTES.format(table), totals.key) or 0))
        return size

    # --- writing ---------------------------------------------------------------------------------

    def write_meta(self, values: Mapping[str, str]) -> None:
        with self._writing() as writes:
            writes.put_meta(values)

    def set_embedder(self, identity: EmbedderIdentity, quantization: Quantization) -> None:
        with self.reading() as snapshot:
            if snapshot.embedder() == identity and snapshot.meta("quantization") == quantization:
                return
        with self._writing() as writes:
            recorded = stored_embedder(writes.totals.meta.get("embedder"))
            if writes.totals.vectors and recorded != identity:
                raise IndexMismatchError(str(recorded), str(identity))
            writes.put_meta({"embedder": json.dumps(asdict(identity)), "quantization": quantization})
            self._vectors.drop_segments(writes.db, writes.totals)
            if not writes.totals.vectors and recorded is not None:
                writes.rows(
                    "UPDATE notewell.chunks SET has_vector = 0 WHERE tenant = %s AND generation = %s AND has_vector = 2"
                )
                writes.totals.skipped = 0

    def put_vectors(self, vectors: Mapping[int, Vector]) -> None:
        if not vectors:
            return
        with self._writing() as writes:
            by_source: defaultdict[SourceName, dict[int, Vector]] = defaultdict(dict)
            replaced = []
            for chunk_id, source, has_vector in writes.rows(
                f"SELECT chunks.id, source, has_vector FROM notewell.chunks{TO_DOCUMENT}"
                " WHERE chunks.tenant = %s AND chunks.generation = %s AND chunks.id = ANY(%s) ORDER BY chunks.id",
                list(vectors),
            ):
                by_source[source][chunk_id] = vectors[chunk_id]
                if has_vector == EMBEDDED:
                    replaced.append(chunk_id)
                elif has_vector == SKIPPED:
                    writes.totals.skipped -= 1
            if replaced:
                self._vectors.remove(writes.db, writes.totals, replaced)
                self._vectors.drop_segments(writes.db, writes.totals)
            for source, of_source in by_source.items():
                writes.add_vectors(source, of_source)
            writes.rows(
                "UPDATE notewell.chunks SET has_vector = 1 WHERE tenant = %s AND generation = %s AND id = ANY(%s)",
                list(vectors),
            )

    def skip_vectors(self, chunk_ids: Collection[int]) -> None:
        if chunk_ids:
            with self._writing() as writes:
                writes.totals.skipped += len(
                    writes.rows(
                        "UPDATE notewell.chunks SET has_vector = 2 WHERE tenant = %s AND generation = %s"
                        " AND has_vector = 0 AND id = ANY(%s) RETURNING id",
                        list(chunk_ids),
                    )
                )

    def optimize(self) -> None:
        new = self._unoptimized
        if new and new.start // _TIDIED_EVERY == new.stop // _TIDIED_EVERY:
            return
        with self._writing(changes=False) as writes:
            if writes.totals.vectors:
                self._vectors.tidy(writes.db, writes.totals)
            writes.postings.tidy()
        # Always after a long run: most chunks had no vector at the last ANALYZE.
        self._count_rows(in_any_case=new is not None and len(new) >= _MANY_CHUNKS)
        self._unoptimized = None

    def _count_rows(self, *, in_any_case: bool = False) -> None:
        """Run ANALYZE once many rows are new.

        A planner that takes the tables for empty reads all chunks of a tenant to find one, and autovacuum comes a
        minute later.
        """
        if self._chunks_written * _COUNTED_SHARE <= max(self._counted, _FEW_CHUNKS) and not in_any_case:
            return
        with self._tenant.connections.transaction("BEGIN", _COUNTED) as db:
            self._counted = db.begun[-1][0][0]
            if in_any_case or self._chunks_written * _COUNTED_SHARE > max(self._counted, _FEW_CHUNKS):
                db.rows("SELECT notewell.count_rows()")
                self._chunks_written = 0
            db.commit()

    def erase_deleted(self) -> None:
        """Rewrite what still contains removed chunks; the server keeps old bytes until an administrator acts."""
        with self._writing() as writes:
            writes.postings.rewrite()
            self._vectors.drop_segments(writes.db, writes.totals)
            if writes.totals.vectors:
                self._vectors.tidy(writes.db, writes.totals)
        self._count_rows(in_any_case=True)  # statistics contain common terms

    def close(self) -> None:
        self._closed = True
        if self._is_owner:
            self._tenant.connections.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed", hint="open the index again")

    @contextmanager
    def _writing(self, *, changes: bool = True) -> Iterator[Writes]:
        """Begin a transaction, or join the one of `together`; without `changes` there may be nothing to commit."""
        self._check_open()
        if self.read_only:
            raise IndexReadOnlyError(
                f"{self._tenant.shown} is open for reading only", hint="index on a machine that holds the notes"
            )
        with self._lock:
            if self._writes is not None:
                with self._writes.joined():
                    yield self._writes
                return
            with self._tenant.writing(self._totals(" FOR UPDATE"), begin=WRITING) as db:
                writes = Writes(db, self._checked_totals(db.begun[-1]), self._vectors, changes)
                self._writes = writes
                before = writes.totals.last_chunk
                try:
                    yield writes
                    writes.finish()
                    self._chunks_written += writes.totals.last_chunk - before
                    start = before if self._unoptimized is None else self._unoptimized.start
                    self._unoptimized = range(start, writes.totals.last_chunk)
                finally:
                    self._writes = None
            if self._chunks_written >= _MANY_CHUNKS:
                self._count_rows()


class TenantIndex:
    """Implements `StoreAccess`: lends the current generation to any number of threads."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self._lock = threading.Lock()
        self._store: PostgresStore | None = None

    @contextmanager
    def use(self) -> Iterator[PostgresStore | None]:
        with self._lock:
            if self._store is None or self._store.is_gone:
                current = self.tenant.current()
                self._store = PostgresStore(self.tenant, read_only=self.tenant.follow) if current else None
            store = self._store
        yield store

    def close(self) -> None:
        with self._lock:
            self._store = None
        self.tenant.connections.close()


def open_generation(tenant: Tenant, path: Path) -> PostgresStore:
    """Open one generation for building; raise IndexCorruptError when it is missing."""
    if not tenant.holds(path):
        raise IndexCorruptError(f"{tenant.shown}: there is no {path.name}", path=path)
    return PostgresStore(tenant, generation_of(path))


def open_store(
    url: str,
    tenant: str,
    *,
    agent: str = "main",
    workspace_id: str = "library",
    vectors: VectorTable | None = None,
) -> PostgresStore:
    """Open or create the index of a tenant, for programs that use the store alone."""
    named = Tenant(Connections(url), name=tenant, agent=agent, workspace_id=FixedId(workspace_id))
    named.ensure()
    if named.current() is None:
        named.switch_to(named.next_index_path())
    return PostgresStore(named, owner=True, vectors=vectors)
