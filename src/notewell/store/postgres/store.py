"""Keeps the documents, chunks, terms and vectors of a tenant in PostgreSQL, and hands out the generation in use."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notewell.errors import IndexCorruptError, IndexMismatchError, IndexReadOnlyError, StoreError
from notewell.store.bm25 import storable
from notewell.store.chunk_changes import ChunkChanges, StoredRow, place_of, plan_chunks
from notewell.store.postgres.connection import (
    READING,
    REPLICA,
    WRITING,
    ByteArrays,
    Connections,
    Database,
    Prepared,
    Texts,
)
from notewell.store.postgres.posting_blocks import PostingBlocks, UnmergedCache
from notewell.store.postgres.snapshot import PostgresSnapshot, replica_note, stored_embedder
from notewell.store.postgres.tenant import FixedId, Tenant, generation_of
from notewell.store.postgres.totals import TO_DOCUMENT, TOTALS, Totals
from notewell.store.postgres.vectors import VectorTable
from notewell.store.postgres.verification import find_faults
from notewell.store.postings import ChunkTerms, chunk_terms
from notewell.store.vectors import checked_matrix
from notewell.types import (
    EVERYTHING,
    EmbedderIdentity,
    FileStamp,
    PendingChunk,
    PreparedChunk,
    Scope,
    SourceName,
    StoredDocument,
)

if TYPE_CHECKING:
    from notewell.protocols import Vector
    from notewell.store.vector_codes import Quantization

PENDING, EMBEDDED, SKIPPED = 0, 1, 2  # states of `chunks.has_vector`
_COUNTED_SHARE = 5  # let the server count its rows again once a fifth of them is new
_FEW_CHUNKS = 100
_MANY_CHUNKS = 2_000  # in a long run, too
_FLUSHED_TERMS = 1_000_000  # in memory at once: some 100 MB
_PLACE = "first_line, last_line, turn, parts, entry, category, importance"
_STORED_ROW = f"id, embedded_hash, context_length, {_PLACE}"  # in the order of `StoredRow`
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


class PostgresStore:
    """Implements `Store` for one generation of a tenant, or for the one that answers at the time of each use."""

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
        self._read_only = read_only
        self._closed = False
        self.is_gone = False  # no generation was found: who opened the store should look again
        self._note = ""  # of the latest snapshot, where it was a replica's
        self._chunks_written = 0  # since the server last counted
        self._looked_at = 0  # how many that were when the server was last asked
        self._unmerged = UnmergedCache()
        self._vectors = vectors or VectorTable()
        self._lock = threading.RLock()
        self._writes: _Writes | None = None  # the transaction of the thread that holds the lock

    @property
    def read_only(self) -> bool:
        return self._read_only

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
        """Return the statement that reads the totals of the generation in use."""
        number = self._tenant.number()
        if number is None:
            self._checked_totals([])
            raise AssertionError
        if self._generation:
            return Prepared(f"{_TOTALS} generation = $2{locked}", (number, self._generation))
        return Prepared(
            f"{_TOTALS} generation = (SELECT generation FROM notewell.tenants WHERE id = $1){locked}", (number,)
        )

    def _checked_totals(self, found: list[tuple[Any, ...]]) -> Totals:
        if not found:
            self.is_gone = True
            self._tenant.forget_number()
            raise StoreError(f"{self._tenant.shown}: {_DROPPED}", hint="run `notewell index`")
        return Totals(*found[0])

    def pending(self, limit: int, *, after: int = 0) -> Sequence[PendingChunk]:
        with self._reading() as (db, totals):
            found = db.rows(
                "SELECT id, embedded_hash, context, text FROM notewell.chunks"
                " WHERE tenant = %s AND generation = %s AND has_vector = 0 AND id > %s ORDER BY id LIMIT %s",
                (*totals.key, after, max(limit, 0)),
            )
        return [
            PendingChunk(chunk_id, digest.hex(), f"{context}\n{text}" if context else text)
            for chunk_id, digest, context, text in found
        ]

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
        """Return about how much the rows of this generation take, without indexes and dead rows.

        It is an estimate by the sizes of a few rows: those of all would have to be read.
        """
        with self._reading() as (db, totals):
            size = _TERM_BYTES * totals.terms + int(db.value(_SEGMENT_BYTES, totals.key) or 0)
            counts = (("generations", 1), ("documents", totals.documents), ("chunks", totals.chunks))
            for table, count in (*counts, ("vectors", totals.vectors)):
                size += round(count * (db.value(_ROW_BYTES.format(table), totals.key) or 0))
        return size

    # --- writing ---------------------------------------------------------------------------------

    def write_meta(self, values: Mapping[str, str]) -> None:
        with self._writing() as writes:
            _put_meta(writes, values)

    def put_document(
        self, document: StoredDocument, chunks: Sequence[PreparedChunk], vectors: Mapping[str, Vector]
    ) -> None:
        with self._writing() as writes:
            key, is_new = writes.put_document_row(document)
            changes = plan_chunks([] if is_new else writes.stored_rows(key), chunks)
            writes.apply(document.stamp.source, key, changes, vectors)

    def append_document(
        self,
        document: StoredDocument,
        chunks: Sequence[PreparedChunk],
        vectors: Mapping[str, Vector],
        *,
        cursor: str,
    ) -> None:
        with self._writing() as writes:
            key, _ = writes.put_document_row(document)
            writes.insert_chunks(document.stamp.source, key, chunks, vectors)
            writes.put_cursor(key, cursor)

    @contextmanager
    def rewriting(self, source: SourceName, path: str) -> Iterator[PostgresRewrite]:
        with self._writing() as writes:
            rewrite = PostgresRewrite(writes, source, path)
            yield rewrite
            if not rewrite.complete:
                raise StoreError("only part of a document was rewritten", hint="run `notewell index` again")

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._writing():
            yield

    def touch_documents(self, documents: Iterable[StoredDocument]) -> None:
        touched = list(documents)
        if touched:
            with self._writing() as writes:
                writes.touch_document_rows(touched)

    def remove_documents(self, source: SourceName, paths: Collection[str]) -> None:
        if not paths:
            return
        with self._writing() as writes:
            keys = [
                key
                for (key,) in writes.rows(
                    "DELETE FROM notewell.documents WHERE tenant = %s AND generation = %s AND source = %s"
                    " AND path = ANY(%s) RETURNING id",
                    source,
                    list(paths),
                )
            ]
            writes.totals.documents -= len(keys)
            writes.remove_chunks("document = ANY(%s)", keys)

    def set_embedder(self, identity: EmbedderIdentity, quantization: Quantization) -> None:
        with self.reading() as snapshot:
            if snapshot.embedder() == identity and snapshot.meta("quantization") == quantization:
                return
        with self._writing() as writes:
            recorded = stored_embedder(writes.value(_META, "embedder"))
            if writes.totals.vectors and recorded != identity:
                raise IndexMismatchError(str(recorded), str(identity))
            _put_meta(writes, {"embedder": json.dumps(asdict(identity)), "quantization": quantization})
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
        with self._writing(changes=False) as writes:
            if writes.totals.vectors:
                self._vectors.tidy(writes.db, writes.totals)
            writes.postings.tidy()
        self._count_rows(at_least=_FEW_CHUNKS // _COUNTED_SHARE)

    def _count_rows(self, *, at_least: int) -> None:
        """Let the server count its rows once many are new.

        A planner that takes the tables for empty reads all chunks of a tenant to find one, and the server counts by
        itself a minute later only.
        """
        written = self._chunks_written
        if written - self._looked_at < at_least:
            return
        self._looked_at = written
        with self._tenant.connections.transaction("BEGIN", _COUNTED) as db:
            if written * _COUNTED_SHARE > max(db.begun[-1][0][0], _FEW_CHUNKS):
                db.rows("SELECT notewell.count_rows()")
                db.commit()
                self._chunks_written = self._looked_at = 0

    def erase_deleted(self) -> None:
        """Rewrite what still names removed chunks; the server keeps old bytes until an administrator acts."""
        with self._writing() as writes:
            writes.postings.rewrite()
            self._vectors.drop_segments(writes.db, writes.totals)
            if writes.totals.vectors:
                self._vectors.tidy(writes.db, writes.totals)

    def close(self) -> None:
        self._closed = True
        if self._is_owner:
            self._tenant.connections.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed", hint="open the index again")

    @contextmanager
    def _writing(self, *, changes: bool = True) -> Iterator[_Writes]:
        """Begin to write, or go on with what is written together; without `changes` perhaps nothing is to be done."""
        self._check_open()
        if self._read_only:
            raise IndexReadOnlyError(
                f"{self._tenant.shown} is open for reading only", hint="index on a machine that holds the notes"
            )
        with self._lock:
            if self._writes is not None:
                with self._writes.joined():
                    yield self._writes
                return
            with self._tenant.writing(self._totals(" FOR UPDATE"), begin=WRITING) as db:
                writes = _Writes(db, self._checked_totals(db.begun[-1]), self._vectors, changes)
                self._writes = writes
                before = writes.totals.last_chunk
                try:
                    yield writes
                    writes.finish()
                    self._chunks_written += writes.totals.last_chunk - before
                finally:
                    self._writes = None
            self._count_rows(at_least=_MANY_CHUNKS)


@dataclass(slots=True)
class _Writes:
    """One transaction that writes: all of it is kept, or nothing."""

    db: Database
    totals: Totals
    vectors: VectorTable
    changes: bool = True
    waiting: list[ChunkTerms] = field(default_factory=list)  # whose terms are written at the end, all at once
    waiting_terms: int = 0
    dead: list[int] = field(default_factory=list)
    failed: bool = False
    before: Totals = field(init=False)

    def __post_init__(self) -> None:
        self.before = replace(self.totals)

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Be part of this transaction; an exception undoes all of it, also where the caller goes on."""
        try:
            yield
        except BaseException:
            self.failed = True
            raise

    @property
    def postings(self) -> PostingBlocks:
        return PostingBlocks(self.db, self.totals)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement whose first two values are the tenant and the generation."""
        return self.db.rows(sql, (*self.totals.key, *values))

    def value(self, sql: str, *values: Any) -> Any:
        """Return the first column of the first row of such a statement."""
        return self.db.value(sql, (*self.totals.key, *values))

    def finish(self) -> None:
        """Write what waits and the totals, and commit."""
        if self.failed:
            raise StoreError("a part of what was to be written together failed: nothing was", hint="try again")
        totals = self.totals
        if self.dead:  # before terms are written: what was removed soon after it was added never gets into blocks
            self.postings.bury(self.dead)
            totals.dead += len(self.dead)
            totals.change_postings()
        self._flush()
        if totals == self.before and not self.changes:
            return  # there was nothing to tidy up
        self.db.rows(
            "UPDATE notewell.generations SET documents = %s, chunks = %s, vectors = %s, skipped = %s, terms = %s,"
            " last_document = %s, last_chunk = %s, vector_generation = %s, postings_generation = %s, dead = %s,"
            " changed_at = now() WHERE tenant = %s AND generation = %s",
            (*totals.changeable, *totals.key),
        )
        self.db.commit()

    def _flush(self) -> None:
        if self.waiting:
            self.postings.append(self.waiting)
        self.waiting, self.waiting_terms = [], 0

    # --- documents ---

    def put_document_row(self, document: StoredDocument) -> tuple[int, bool]:
        """Insert or update the document's own row; return its key and whether it is new."""
        stamp = document.stamp
        found = self.db.rows(
            "UPDATE notewell.documents SET size = %s, mtime_ns = %s, ctime_ns = %s, inode = %s, content_hash = %s,"
            " dated = %s, private = %s"
            " WHERE tenant = %s AND generation = %s AND source = %s AND path = %s RETURNING id",
            (*_changeable(document), *self.totals.key, stamp.source, stamp.path),
        )
        if found:
            return found[0][0], False
        self.totals.last_document += 1
        self.totals.documents += 1
        self.rows(
            "INSERT INTO notewell.documents (tenant, generation, id, source, path, size, mtime_ns, ctime_ns, inode,"
            " content_hash, dated, private) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            self.totals.last_document,
            stamp.source,
            stamp.path,
            *_changeable(document),
        )
        return self.totals.last_document, True

    def touch_document_rows(self, documents: Sequence[StoredDocument]) -> None:
        """Update the stamps of documents that are already there."""
        columns = list(zip(*map(_changeable, documents), strict=True))
        self.rows(
            "UPDATE notewell.documents d SET size = t.size, mtime_ns = t.mtime_ns, ctime_ns = t.ctime_ns,"
            " inode = t.inode, content_hash = t.content_hash, dated = t.dated, private = t.private"
            " FROM (SELECT %s::int AS tenant, %s::int AS generation) k, unnest(%s::text[], %s::text[], %s::bigint[],"
            " %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::int[], %s::smallint[])"
            " AS t (source, path, size, mtime_ns, ctime_ns, inode, content_hash, dated, private)"
            " WHERE d.tenant = k.tenant AND d.generation = k.generation AND d.source = t.source AND d.path = t.path",
            [document.stamp.source for document in documents],
            [document.stamp.path for document in documents],
            *map(list, columns),
        )

    def put_cursor(self, document_id: int, cursor: str) -> None:
        """Record how far a growing document is indexed."""
        self.db.rows(
            "UPDATE notewell.documents SET cursor = %s WHERE tenant = %s AND generation = %s AND id = %s",
            (cursor, *self.totals.key, document_id),
        )

    # --- chunks ---

    def stored_rows(self, document_id: int, hashes: Collection[str] | None = None) -> list[StoredRow]:
        """Return the chunks of a document, oldest first; with `hashes` those of these embedded texts."""
        among = "" if hashes is None else " AND embedded_hash = ANY(%s)"
        values = () if hashes is None else ([bytes.fromhex(digest) for digest in hashes],)
        found = self.rows(
            f"SELECT {_STORED_ROW} FROM notewell.chunks"
            f" WHERE tenant = %s AND generation = %s AND document = %s{among} ORDER BY id",
            document_id,
            *values,
        )
        return [StoredRow(chunk_id, digest.hex(), *rest) for chunk_id, digest, *rest in found]

    def apply(self, source: SourceName, document_id: int, changes: ChunkChanges, vectors: Mapping[str, Vector]) -> None:
        """Make the planned changes. Terms are only ever appended, so a chunk with other terms becomes a new one."""
        reworded = dict(changes.reworded)
        kept = self.vectors.of_chunks(self.db, self.totals, list(reworded)) if reworded else {}
        known = {new.chunk.embedded_hash: kept[old] for old, new in reworded.items() if old in kept}
        gone = [*changes.removed, *reworded]
        if gone:
            self.remove_chunks("id = ANY(%s)", gone)
        self._move([(chunk_id, new) for chunk_id, new in changes.moved if chunk_id not in reworded])
        added = [*changes.added, *reworded.values()]
        self.insert_chunks(source, document_id, added, {**vectors, **known} if known else vectors)

    def _move(self, moved: Sequence[tuple[int, PreparedChunk]]) -> None:
        if not moved:
            return
        columns = zip(*(place_of(new) for _, new in moved), strict=True)
        self.rows(
            "UPDATE notewell.chunks c SET first_line = t.first_line, last_line = t.last_line, turn = t.turn,"
            " parts = t.parts, entry = t.entry, category = t.category, importance = t.importance"
            " FROM (SELECT %s::int AS tenant, %s::int AS generation) k, unnest(%s::int[], %s::int[], %s::int[],"
            " %s::int[], %s::int[], %s::text[], %s::text[], %s::smallint[])"
            " AS t (id, first_line, last_line, turn, parts, entry, category, importance)"
            " WHERE c.tenant = k.tenant AND c.generation = k.generation AND c.id = t.id",
            [chunk_id for chunk_id, _ in moved],
            *map(list, columns),
        )

    def insert_chunks(
        self,
        source: SourceName,
        document_id: int,
        added: Sequence[PreparedChunk],
        vectors: Mapping[str, Vector],
    ) -> None:
        """Insert new chunks with the vectors that are known; the others are pending."""
        if not added:
            return
        first = self.totals.last_chunk + 1
        ids = list(range(first, first + len(added)))
        terms = [
            chunk_terms(chunk_id, new.text_terms, new.context_terms) for chunk_id, new in zip(ids, added, strict=True)
        ]
        places = zip(*map(place_of, added), strict=True)
        chunks = [new.chunk for new in added]
        self.rows(
            "INSERT INTO notewell.chunks (tenant, generation, document, has_vector, id, first_line, last_line, turn,"
            " parts, entry, category, importance, embedded_hash, context_length, terms, context, text)"
            " SELECT %s, %s, %s, 0, * FROM unnest(%s::int[], %s::int[], %s::int[], %s::int[], %s::int[], %s::text[],"
            " %s::text[], %s::smallint[], %s::bytea[], %s::int[], %s::int[], %s::text[], %s::text[])",
            document_id,
            ids,
            *map(list, places),
            ByteArrays([bytes.fromhex(chunk.embedded_hash) for chunk in chunks]),
            [len(chunk.context) for chunk in chunks],
            [each.length for each in terms],
            Texts([storable(chunk.context) for chunk in chunks]),
            Texts([storable(chunk.text) for chunk in chunks]),
        )
        totals = self.totals
        totals.last_chunk = ids[-1]
        totals.chunks += len(ids)
        count = sum(each.length for each in terms)
        totals.terms += count
        self.waiting += terms
        self.waiting_terms += count
        if self.waiting_terms > _FLUSHED_TERMS:
            self._flush()
        known = {
            chunk_id: vectors[chunk.embedded_hash]
            for chunk_id, chunk in zip(ids, chunks, strict=True)
            if chunk.embedded_hash in vectors
        }
        if known:
            self.add_vectors(source, known)

    def remove_chunks(self, condition: str, values: Sequence[int]) -> None:
        """Delete the chunks that meet the condition, with their vectors; their terms are dead from now on."""
        removed = self.rows(
            "DELETE FROM notewell.chunks WHERE tenant = %s AND generation = %s"
            f" AND {condition} RETURNING id, terms, has_vector",
            list(values),
        )
        if not removed:
            return
        totals = self.totals
        totals.chunks -= len(removed)
        totals.terms -= sum(terms for _, terms, _ in removed)
        totals.skipped -= sum(has_vector == SKIPPED for _, _, has_vector in removed)
        embedded = [chunk_id for chunk_id, _, has_vector in removed if has_vector == EMBEDDED]
        if embedded:
            self.vectors.remove(self.db, totals, embedded)
        gone = {chunk_id for chunk_id, _, _ in removed}
        waiting = {each.chunk_id for each in self.waiting} & gone  # never written, so nothing is dead
        if waiting:
            self.waiting = [each for each in self.waiting if each.chunk_id not in waiting]
        self.dead += sorted(chunk_id for chunk_id, terms, _ in removed if terms and chunk_id not in waiting)

    # --- vectors ---

    def add_vectors(self, source: SourceName, vectors: Mapping[int, Vector]) -> None:
        """Store the vectors of chunks of one source."""
        identity = stored_embedder(self.value(_META, "embedder"))
        if identity is None:
            raise StoreError("no embedder is set, so no vectors can be stored", hint="call set_embedder first")
        ids = list(vectors)
        matrix = checked_matrix(vectors.values(), identity.dimensions)
        self.vectors.add(self.db, self.totals, source, ids, matrix)
        self.rows(
            "UPDATE notewell.chunks SET has_vector = 1 WHERE tenant = %s AND generation = %s AND id = ANY(%s)", ids
        )


class PostgresRewrite:
    """Implements `Rewrite` within one transaction; the server keeps what does not fit into memory."""

    def __init__(self, writes: _Writes, source: SourceName, path: str) -> None:
        self._writes = writes
        self._source = source
        unread = StoredDocument(FileStamp(source, path, size=0, mtime_ns=0), "")
        self._key, _ = writes.put_document_row(unread)
        found = writes.rows(
            "SELECT id FROM notewell.chunks WHERE tenant = %s AND generation = %s AND document = %s", self._key
        )
        self._unused = {chunk_id for (chunk_id,) in found}
        self.complete = False

    def add(self, chunks: Sequence[PreparedChunk], vectors: Mapping[str, Vector]) -> None:
        hashes = {new.chunk.embedded_hash for new in chunks}
        old = [row for row in self._writes.stored_rows(self._key, hashes) if row.id in self._unused]
        changes = plan_chunks(old, chunks)
        self._unused -= {row.id for row in old} - set(changes.removed)  # a later chunk may pair with the others
        kept = ChunkChanges(changes.moved, changes.reworded, changes.added, ())
        self._writes.apply(self._source, self._key, kept, vectors)

    def finish(self, document: StoredDocument, cursor: str) -> None:
        self._writes.remove_chunks("id = ANY(%s)", sorted(self._unused))
        self._writes.touch_document_rows([document])
        self._writes.put_cursor(self._key, cursor)
        self.complete = True


_META = "SELECT value FROM notewell.meta WHERE tenant = %s AND generation = %s AND key = %s"


def _put_meta(writes: _Writes, values: Mapping[str, str]) -> None:
    writes.rows(
        "INSERT INTO notewell.meta (tenant, generation, key, value)"
        " SELECT %s, %s, * FROM unnest(%s::text[], %s::text[])"
        " ON CONFLICT (tenant, generation, key) DO UPDATE SET value = excluded.value",
        list(values),
        list(values.values()),
    )


def _changeable(document: StoredDocument) -> tuple[int | str | None, ...]:
    dated = None if document.dated is None else document.dated.toordinal()
    _, _, size, mtime_ns, ctime_ns, inode = document.stamp
    return size, mtime_ns, ctime_ns, inode, document.content_hash, dated, int(document.private)


class TenantIndex:
    """Implements `StoreAccess`: lends the generation that answers, to any number of threads."""

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
    """Open one generation for building; raises IndexCorruptError when it is not there."""
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
    """Open the index of a tenant, created if it is not there; for programs that use the store by itself."""
    named = Tenant(Connections(url), name=tenant, agent=agent, workspace_id=FixedId(workspace_id))
    named.ensure()
    if named.current() is None:
        named.switch_to(named.next_index_path())
    return PostgresStore(named, owner=True, vectors=vectors)
