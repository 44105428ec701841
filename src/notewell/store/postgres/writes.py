"""Writes documents, chunks, terms and vectors of a generation in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from notewell.errors import StoreError
from notewell.store.bm25 import storable
from notewell.store.postgres.connection import ByteArrays, Database, Prepared, Texts
from notewell.store.postgres.posting_blocks import PostingBlocks
from notewell.store.postgres.snapshot import stored_embedder
from notewell.store.postgres.totals import Totals
from notewell.store.postgres.vectors import VectorTable
from notewell.store.postings import ChunkTerms, chunk_terms
from notewell.store.rows import (
    EMBEDDED,
    SKIPPED,
    STORED_ROW,
    ChunkChanges,
    StoredRow,
    changeable,
    place_of,
)
from notewell.store.vectors import checked_matrix
from notewell.types import PreparedChunk, SourceName, StoredDocument

if TYPE_CHECKING:
    from notewell.protocols import Vector

_FLUSHED_TERMS = 1_000_000  # in memory at once: some 100 MB
_PUT_TOTALS = (
    "UPDATE notewell.generations SET documents = $3, chunks = $4, vectors = $5, skipped = $6, terms = $7,"
    " last_document = $8, last_chunk = $9, vector_generation = $10, postings_generation = $11, dead = $12,"
    " changed_at = now() WHERE tenant = $1 AND generation = $2"
)


@dataclass(slots=True)
class Writes:
    """Implements `DocumentWrites` for one transaction."""

    db: Database
    totals: Totals
    vectors: VectorTable
    changes: bool = True
    waiting: list[ChunkTerms] = field(default_factory=list)  # written at the end, all at once
    waiting_terms: int = 0
    dead: list[int] = field(default_factory=list)
    failed: bool = False
    before: Totals = field(init=False)

    def __post_init__(self) -> None:
        self.before = replace(self.totals)

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Join this transaction; an exception rolls back all of it, even if the caller continues."""
        try:
            yield
        except BaseException:
            self.failed = True
            raise

    @property
    def postings(self) -> PostingBlocks:
        return PostingBlocks(self.db, self.totals)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement with tenant and generation as its first values."""
        return self.db.rows(sql, (*self.totals.key, *values))

    def finish(self) -> None:
        """Write waiting terms and the totals, and commit."""
        if self.failed:
            raise StoreError("a part of what was to be written together failed: nothing was", hint="try again")
        totals = self.totals
        if self.dead:  # before terms are written, so that chunks that were just removed do not get into blocks
            self.postings.bury(self.dead)
            totals.dead += len(self.dead)
            totals.change_postings()
        self._flush()
        if totals == self.before and not self.changes:
            self.db.commit()  # there was nothing to tidy up
        else:
            self.db.commit(Prepared(_PUT_TOTALS, (*totals.key, *totals.changeable), "bigint"))

    def _flush(self) -> None:
        if self.waiting:
            self.postings.append(self.waiting)
        self.waiting, self.waiting_terms = [], 0

    def put_meta(self, values: Mapping[str, str]) -> None:
        """Store meta values."""
        self.rows(
            "INSERT INTO notewell.meta (tenant, generation, key, value)"
            " SELECT %s, %s, * FROM unnest(%s::text[], %s::text[])"
            " ON CONFLICT (tenant, generation, key) DO UPDATE SET value = excluded.value",
            list(values),
            list(values.values()),
        )
        self.totals.meta |= values

    # --- documents ---

    def put_document_row(self, document: StoredDocument) -> tuple[int, bool]:
        stamp = document.stamp
        found = self.db.rows(
            "UPDATE notewell.documents SET size = %s, mtime_ns = %s, ctime_ns = %s, inode = %s, content_hash = %s,"
            " dated = %s, private = %s"
            " WHERE tenant = %s AND generation = %s AND source = %s AND path = %s RETURNING id",
            (*changeable(document), *self.totals.key, stamp.source, stamp.path),
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
            *changeable(document),
        )
        return self.totals.last_document, True

    def touch_document_rows(self, documents: Sequence[StoredDocument]) -> None:
        columns = list(zip(*map(changeable, documents), strict=True))
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
        self.db.rows(
            "UPDATE notewell.documents SET cursor = %s WHERE tenant = %s AND generation = %s AND id = %s",
            (cursor, *self.totals.key, document_id),
        )

    def remove_documents(self, source: SourceName, paths: Collection[str]) -> None:
        found = self.rows(
            "DELETE FROM notewell.documents WHERE tenant = %s AND generation = %s AND source = %s AND path = ANY(%s)"
            " RETURNING id",
            source,
            list(paths),
        )
        self.totals.documents -= len(found)
        self.remove_chunks([key for (key,) in found], column="document")

    # --- chunks ---

    def chunk_ids_of(self, document_id: int) -> set[int]:
        found = self.rows(
            "SELECT id FROM notewell.chunks WHERE tenant = %s AND generation = %s AND document = %s", document_id
        )
        return {chunk_id for (chunk_id,) in found}

    def stored_rows(self, document_id: int, hashes: Collection[str] | None = None) -> list[StoredRow]:
        among = "" if hashes is None else " AND embedded_hash = ANY(%s)"
        values = () if hashes is None else ([bytes.fromhex(digest) for digest in hashes],)
        found = self.rows(
            f"SELECT {STORED_ROW} FROM notewell.chunks"
            f" WHERE tenant = %s AND generation = %s AND document = %s{among} ORDER BY id",
            document_id,
            *values,
        )
        return [StoredRow(chunk_id, digest.hex(), *rest) for chunk_id, digest, *rest in found]

    def apply(self, source: SourceName, document_id: int, changes: ChunkChanges, vectors: Mapping[str, Vector]) -> None:
        """Terms are only appended, so that a chunk with other terms becomes a new one."""
        reworded = dict(changes.reworded)
        kept = self.vectors.of_chunks(self.db, self.totals, list(reworded)) if reworded else {}
        known = {new.chunk.embedded_hash: kept[old] for old, new in reworded.items() if old in kept}
        gone = [*changes.removed, *reworded]
        if gone:
            self.remove_chunks(gone)
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
        if not added:
            return
        first = self.totals.last_chunk + 1
        ids = list(range(first, first + len(added)))
        terms = [chunk_terms(chunk_id, *new.terms()) for chunk_id, new in zip(ids, added, strict=True)]
        places = zip(*map(place_of, added), strict=True)
        chunks = [new.chunk for new in added]
        known = {
            chunk_id: vectors[chunk.embedded_hash]
            for chunk_id, chunk in zip(ids, chunks, strict=True)
            if chunk.embedded_hash in vectors
        }
        self.rows(
            "INSERT INTO notewell.chunks (tenant, generation, document, id, has_vector, first_line, last_line, turn,"
            " parts, entry, category, importance, embedded_hash, context_length, terms, context, text)"
            " SELECT %s, %s, %s, * FROM unnest(%s::int[], %s::smallint[], %s::int[], %s::int[], %s::int[], %s::int[],"
            " %s::text[], %s::text[], %s::smallint[], %s::bytea[], %s::int[], %s::int[], %s::text[], %s::text[])",
            document_id,
            ids,
            [int(chunk_id in known) for chunk_id in ids],
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
        if known:
            self.add_vectors(source, known)

    def remove_chunks(self, keys: Sequence[int], *, column: str = "id") -> None:
        """Delete chunks with their vectors; their terms become dead."""
        removed = self.rows(
            "DELETE FROM notewell.chunks WHERE tenant = %s AND generation = %s"
            f" AND {column} = ANY(%s) RETURNING id, terms, has_vector",
            list(keys),
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
        """Store the vectors of chunks of one source; the chunks themselves are not changed."""
        identity = stored_embedder(self.totals.meta.get("embedder"))
        if identity is None:
            raise StoreError("no embedder is set, so no vectors can be stored", hint="call set_embedder first")
        matrix = checked_matrix(vectors.values(), identity.dimensions)
        self.vectors.add(self.db, self.totals, source, list(vectors), matrix)
