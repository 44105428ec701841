"""Reads a generation in one consistent snapshot: documents, keyword and vector matches, chunks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from notewell.errors import IndexCorruptError, StoreError
from notewell.store import postings, scopes
from notewell.store.postgres.posting_blocks import KeywordIndex
from notewell.store.postgres.totals import POSTGRES, TO_DOCUMENT, TO_DOCUMENTS, ScopeFilter, Totals
from notewell.store.rows import META_FOR_ALL, day_of, embedder_of, first_of_turns, label_of, seen_terms, without
from notewell.store.scopes import without_hidden
from notewell.types import (
    EVERYTHING,
    ChunkPlace,
    Counts,
    EmbedderIdentity,
    EntryChunk,
    FileStamp,
    Match,
    Scope,
    SourceCounts,
    SourceName,
    SpokenLine,
    StoredChunk,
    StoredDocument,
    Term,
)

if TYPE_CHECKING:
    from notewell.protocols import Vector
    from notewell.store.postgres.connection import Database
    from notewell.store.postgres.posting_blocks import UnmergedCache
    from notewell.store.postgres.vectors import VectorTable
    from notewell.store.postings import Ids

_CHECKED_AT_ONCE = 4  # times the limit: best chunks that are checked against the scope, until enough are in it
_LEAST_CHECKED = 256
_LEAST_STALE_S = 0.5  # a replica that is less behind counts as fresh
_HERE = "tenant = %s AND generation = %s"
_OF_DOCUMENT = f"chunks.document = (SELECT id FROM notewell.documents WHERE {_HERE} AND source = %s AND path = %s)"


class PostgresSnapshot:
    """Implements `Snapshot` in a repeatable-read transaction; documents outside `within` are hidden."""

    def __init__(
        self, db: Database, totals: Totals, unmerged: UnmergedCache, vectors: VectorTable, within: Scope = EVERYTHING
    ) -> None:
        self._open_db: Database | None = db
        self._totals = totals
        self._unmerged = unmerged
        self._vectors = vectors
        self._within = within

    def end(self) -> None:
        """Detach the snapshot from its connection, which goes back to the pool."""
        self._open_db = None

    @property
    def _db(self) -> Database:
        if self._open_db is None:
            raise StoreError("this snapshot has ended", hint="use it inside its `with` block only")
        return self._open_db

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement with tenant and generation as its first values."""
        return self._db.rows(sql, (*self._totals.key, *values))

    # --- figures ---------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        if self._within.public_only and key not in META_FOR_ALL:
            return None
        assert self._db
        return self._totals.meta.get(key)

    def embedder(self) -> EmbedderIdentity | None:
        assert self._db
        return stored_embedder(self._totals.meta.get("embedder"))

    def counts(self) -> Counts:
        assert self._db
        return self._counts

    @cached_property
    def _whole_counts(self) -> Counts:
        totals = self._totals
        pending = totals.chunks - totals.vectors - totals.skipped
        return Counts(files=totals.documents, chunks=totals.chunks, pending=pending, embedded=totals.vectors)

    @cached_property
    def _counts(self) -> Counts:
        whole = self._whole_counts
        condition, values = self._seen_condition
        if not condition:
            return whole
        hidden = self._rows(
            "SELECT count(DISTINCT documents.id), count(chunks.id), count(*) FILTER (WHERE has_vector = 1),"
            " count(*) FILTER (WHERE has_vector = 0) FROM notewell.documents LEFT JOIN notewell.chunks"
            " ON chunks.tenant = documents.tenant AND chunks.generation = documents.generation"
            " AND chunks.document = documents.id"
            f" WHERE documents.tenant = %s AND documents.generation = %s AND NOT ({condition})",
            *values,
        )[0]
        return without(whole, hidden)

    def source_counts(self) -> Sequence[SourceCounts]:
        condition, values = self._seen_condition
        found = self._rows(
            "SELECT source, count(DISTINCT documents.id), count(chunks.id) FROM notewell.documents"
            " LEFT JOIN notewell.chunks ON chunks.tenant = documents.tenant"
            " AND chunks.generation = documents.generation AND chunks.document = documents.id"
            f" WHERE documents.tenant = %s AND documents.generation = %s{_and(condition)}"
            " GROUP BY source ORDER BY source",
            *values,
        )
        return [SourceCounts(*row) for row in found]

    # --- what is hidden from a group -------------------------------------------------------------

    @cached_property
    def _seen_condition(self) -> tuple[str, list[Any]]:
        """The SQL condition that hides documents, and its values; empty when none is hidden."""
        return scopes.scope_condition(self._within, POSTGRES)

    @cached_property
    def _hides_some(self) -> bool:
        return self._within.public_only and self._counts != self._whole_counts

    @cached_property
    def _hidden(self) -> Ids:
        """The hidden chunks, ascending."""
        if not self._hides_some:
            return np.empty(0, np.int64)
        condition, values = self._seen_condition
        found = self._rows(
            f"SELECT chunks.id FROM notewell.chunks{TO_DOCUMENTS}"
            f" WHERE chunks.tenant = %s AND chunks.generation = %s AND NOT ({condition}) ORDER BY chunks.id",
            *values,
        )
        return np.array([chunk_id for (chunk_id,) in found], np.int64)

    def _visible(self, chunk_ids: Collection[int]) -> list[int]:
        """Return the chunks that are not hidden."""
        ids = list(chunk_ids)
        return np.setdiff1d(np.array(ids, np.int64), self._hidden).tolist() if self._hides_some and ids else ids

    def _narrowed(self, scope: Scope) -> Scope:
        """Return the scope without hidden documents and without filters that exclude nothing."""
        return scopes.without_idle_filters(without_hidden(scope, self._within), POSTGRES, self._any_document)

    def _any_document(self, condition: str, values: Sequence[Any]) -> bool:
        return bool(self._rows(f"SELECT 1 FROM notewell.documents WHERE {_HERE} AND ({condition}) LIMIT 1", *values))

    # --- documents -------------------------------------------------------------------------------

    def documents(
        self, source: SourceName | None = None, paths: Collection[str] | None = None
    ) -> Mapping[tuple[SourceName, str], StoredDocument]:
        condition, values = self._seen_condition
        asked: list[Any] = []
        where = ""
        if source is not None:
            where += " AND source = %s"
            asked.append(source)
        if paths is not None:
            where += " AND path = ANY(%s)"
            asked.append(list(paths))
        found = self._rows(
            "SELECT source, path, size, mtime_ns, ctime_ns, inode, content_hash, dated, private"
            f" FROM notewell.documents WHERE {_HERE}{where}{_and(condition)} ORDER BY source, path",
            *asked,
            *values,
        )
        return {
            (name, path): StoredDocument(FileStamp(name, path, *stamp), content_hash, day_of(dated), private == 1)
            for name, path, *stamp, content_hash, dated, private in found
        }

    def cursor(self, source: SourceName, path: str) -> str | None:
        condition, values = self._seen_condition
        found = self._rows(
            f"SELECT cursor FROM notewell.documents WHERE {_HERE} AND source = %s AND path = %s{_and(condition)}",
            source,
            path,
            *values,
        )
        return found[0][0] if found else None

    # --- keywords --------------------------------------------------------------------------------

    @cached_property
    def _keywords(self) -> KeywordIndex:
        return KeywordIndex(self._db, self._totals.key, self._unmerged.of(self._db, self._totals))

    @cached_property
    def _collection(self) -> postings.Collection:
        """The chunks that BM25 is computed over, which must not include hidden ones."""
        mean = self._totals.terms / self._totals.chunks if self._totals.chunks else 1.0
        return postings.Collection(self._counts.chunks, mean or 1.0, self._hidden)

    def document_frequencies(self, terms: Sequence[Term], *, at_most: int) -> Sequence[int]:
        return self._keywords.counts(terms, at_most=max(at_most, 0), hidden=self._hidden)

    def terms_beginning(self, prefix: str, *, lengths: range, limit: int) -> Sequence[str]:
        if not self._within.public_only:
            return self._keywords.terms_beginning(prefix, lengths=lengths, limit=limit)
        return seen_terms(
            lambda most: self._keywords.terms_beginning(prefix, lengths=lengths, limit=most),
            partial(self.document_frequencies, at_most=1),
            limit,
        )

    def keyword_matches(
        self,
        terms: Sequence[Term],
        *,
        limit: int,
        scope: Scope,
        led_by: Sequence[Term] | None = None,
        also: Collection[int] = (),
    ) -> Sequence[Match]:
        if limit < 1:
            return []
        among: Ids | None = None
        wanted = np.array(sorted(also), np.int64)
        if led_by is not None:
            leading = [self._keywords.postings_of(term).ids for term in led_by]
            if not any(len(ids) for ids in leading):
                return []
            among = np.unique(np.concatenate([*leading, wanted]))
        ids, found = self._ranked(terms, among)
        if not len(ids):
            return []
        # Stable, so that ids of equal scores stay ascending.
        order = np.argsort(-found, kind="stable")
        narrowed = ScopeFilter.of(self._narrowed(scope))
        if narrowed.condition:
            order = self._in_scope(ids, order, limit, wanted, narrowed)
        chosen = order[:limit]
        if len(wanted) and len(order) > limit:
            rest = order[limit:]
            chosen = np.concatenate([chosen, rest[np.isin(ids[rest], wanted)]])
        return list(map(Match, ids[chosen].tolist(), found[chosen].tolist()))

    def _in_scope(self, ids: Ids, order: Ids, limit: int, wanted: Ids, scope: ScopeFilter) -> Ids:
        """Return the positions of chunks in the scope, best first: up to the limit, and all that are wanted."""
        kept: list[Ids] = []
        count = start = 0
        step = max(_LEAST_CHECKED, _CHECKED_AT_ONCE * limit)
        while start < len(order) and count < limit:
            part = order[start : start + step]
            inside = part[np.isin(ids[part], self._permitted(ids[part], scope))]
            kept.append(inside)
            count += len(inside)
            start += step
        rest = order[start:]
        if len(wanted) and len(rest):
            rest = rest[np.isin(ids[rest], wanted)]
            kept.append(rest[np.isin(ids[rest], self._permitted(ids[rest], scope))])
        return np.concatenate(kept)

    def _permitted(self, ids: Ids, scope: ScopeFilter) -> Ids:
        found = self._rows(
            f"SELECT chunks.id FROM notewell.chunks{TO_DOCUMENT}"
            f" WHERE chunks.tenant = %s AND chunks.generation = %s AND chunks.id = ANY(%s) AND {scope.condition}",
            ids.tolist(),
            *scope.values,
        )
        return np.array([chunk_id for (chunk_id,) in found], np.int64)

    def _ranked(self, terms: Sequence[Term], among: Ids | None) -> tuple[Ids, Any]:
        found = [self._keywords.postings_of(term) for term in terms]
        ids, scores = postings.ranked((each for each in found if len(each.ids)), self._collection, among)
        if self._hides_some and len(ids):
            scores = np.array([float(f"{score:.9g}") for score in scores])  # equal ones stay equal
        return ids, scores

    def keyword_scores(self, terms: Sequence[Term], chunk_ids: Collection[int]) -> Mapping[int, float]:
        if not chunk_ids or not terms:
            return {}
        ids, found = self._ranked(terms, np.array(sorted(chunk_ids), np.int64))
        return dict(zip(ids.tolist(), found.tolist(), strict=True))

    # --- vectors ---------------------------------------------------------------------------------

    def _dimensions(self) -> int | None:
        """Return the length of the stored vectors; None when there are none."""
        identity = self.embedder() if self._totals.vectors else None
        return identity.dimensions if identity else None

    def vector_matches(self, vector: Vector, *, limit: int, scope: Scope) -> Sequence[Match]:
        dimensions = self._dimensions()
        if dimensions is None or limit < 1:
            return []
        narrowed = self._narrowed(scope)
        return self._vectors.matches(self._db, self._totals, vector, dimensions=dimensions, limit=limit, scope=narrowed)

    def vector_scores(self, vector: Vector, chunk_ids: Collection[int]) -> Mapping[int, float]:
        dimensions = self._dimensions()
        if dimensions is None or not chunk_ids:
            return {}
        return self._vectors.scores(self._db, self._totals, vector, self._visible(chunk_ids), dimensions=dimensions)

    def known_vectors(self, embedded_hashes: Collection[str]) -> Mapping[str, Vector]:
        if not embedded_hashes or self._dimensions() is None or self._within.public_only:
            return {}  # the vector of a text would show a group that the text exists
        found = self._rows(
            f"SELECT DISTINCT ON (embedded_hash) id, embedded_hash FROM notewell.chunks WHERE {_HERE}"
            " AND embedded_hash = ANY(%s) AND has_vector = 1",
            [bytes.fromhex(digest) for digest in embedded_hashes],
        )
        digests = {chunk_id: digest.hex() for chunk_id, digest in found}
        vectors = self._vectors.of_chunks(self._db, self._totals, list(digests)) if digests else {}
        return {digests[chunk_id]: row for chunk_id, row in vectors.items()}

    # --- chunks ----------------------------------------------------------------------------------

    def chunks(self, chunk_ids: Collection[int]) -> Mapping[int, StoredChunk]:
        return {chunk.id: chunk for chunk in self._chunks("chunks.id = ANY(%s)", list(chunk_ids))}

    def chunks_of(self, source: SourceName, path: str) -> Sequence[StoredChunk]:
        found = self._chunks(_OF_DOCUMENT, *self._totals.key, source, path)
        return sorted(found, key=lambda chunk: (chunk.first_line, chunk.last_line, chunk.id))

    def _chunks(self, asked: str, *asked_values: Any) -> list[StoredChunk]:
        condition, values = self._seen_condition
        found = self._rows(
            "SELECT chunks.id, source, path, dated, first_line, last_line, text, context, turn, parts, entry, category,"
            f" importance FROM notewell.chunks{TO_DOCUMENT}"
            f" WHERE chunks.tenant = %s AND chunks.generation = %s AND {asked}{_and(condition)}",
            *asked_values,
            *values,
        )
        return [
            StoredChunk(chunk_id, source, path, day_of(dated), first, last, text, context, turn, parts, label_of(label))
            for chunk_id, source, path, dated, first, last, text, context, turn, parts, *label in found
        ]

    def entries(self, ids: Collection[str] | None = None) -> Sequence[EntryChunk]:
        among = "" if ids is None else " AND entry = ANY(%s)"
        condition, values = self._seen_condition
        found = self._rows(
            f"SELECT entry, path, chunks.id FROM notewell.chunks{TO_DOCUMENT} WHERE chunks.tenant = %s"
            f" AND chunks.generation = %s AND category IS NOT NULL{among}{_and(condition)}"
            ' ORDER BY path COLLATE "C", first_line, chunks.id',
            *(() if ids is None else (list(ids),)),
            *values,
        )
        return [EntryChunk(*row) for row in found]

    def messages(self, path: str, turns: Collection[int]) -> Sequence[SpokenLine]:
        condition, values = self._seen_condition
        found = self._rows(
            f"SELECT first_line, text, turn FROM notewell.chunks{TO_DOCUMENT}"
            f" WHERE chunks.tenant = %s AND chunks.generation = %s AND {_OF_DOCUMENT} AND turn > 0"
            f" AND turn = ANY(%s){_and(condition)} ORDER BY turn, chunks.id",
            *self._totals.key,
            "sessions",
            path,
            list(turns),
            *values,
        )
        return first_of_turns(found)

    def newest_chunks(self, *, limit: int, scope: Scope) -> Sequence[int]:
        condition, values = scopes.scope_condition(self._narrowed(scope), POSTGRES)
        found = self._rows(
            f"SELECT chunks.id FROM notewell.chunks{TO_DOCUMENTS}"
            f" WHERE chunks.tenant = %s AND chunks.generation = %s{_and(condition)}"
            " ORDER BY dated DESC NULLS LAST, document, first_line, chunks.id LIMIT %s",
            *values,
            max(limit, 0),
        )
        return [chunk_id for (chunk_id,) in found]

    def places(self, chunk_ids: Collection[int]) -> Mapping[int, ChunkPlace]:
        found = self._rows(
            f"SELECT id, document, turn, parts FROM notewell.chunks WHERE {_HERE} AND id = ANY(%s)",
            self._visible(chunk_ids),
        )
        places = {chunk_id: ChunkPlace(*place) for chunk_id, *place in found}
        return {chunk_id: places[chunk_id] for chunk_id in chunk_ids if chunk_id in places}


def _and(condition: str) -> str:
    return f" AND {condition}" if condition else ""


def stored_embedder(recorded: str | None) -> EmbedderIdentity | None:
    """Return the identity that `set_embedder` recorded."""
    try:
        return embedder_of(recorded)
    except (TypeError, ValueError) as error:
        raise IndexCorruptError("the record of the embedder in the database is corrupt") from error


def replica_note(is_replica: bool, is_caught_up: bool, behind_s: float | None) -> str:
    """Return a note on how old an answer of a replica may be; nothing for the primary server."""
    if not is_replica:
        return ""
    if behind_s is None:
        return "answered by a replica, which does not say how recent it is"
    if is_caught_up or behind_s < _LEAST_STALE_S:
        return "answered by a replica that has applied all changes it received"
    return f"answered by a replica, which may miss changes of the last {behind_s:,.0f} seconds"
