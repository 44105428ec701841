"""Reads an index in one consistent snapshot: documents, keyword and vector matches, chunks."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from notewell.errors import StoreError
from notewell.store import bm25
from notewell.store.rows import (
    META_FOR_ALL,
    best_first,
    day_of,
    first_of_turns,
    label_of,
    seen_terms,
    without,
)
from notewell.store.scopes import without_hidden
from notewell.store.sqlite.connection import Database, Row, as_json
from notewell.store.sqlite.documents import scope_condition, stored_embedder, without_idle_filters
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
    from notewell.store.sqlite.vector_search import VectorSearch

MOST_RESCORED = 2_000  # chunks found by a keyword search for a group: their scores are computed again
_BM25 = f"-bm25(terms, 1.0, {bm25.CONTEXT_WEIGHT})"  # FTS5 gives better matches smaller numbers
_LISTED = "SELECT value FROM json_each(?)"
_TO_DOCUMENTS = "JOIN chunks ON chunks.id = terms.rowid JOIN documents ON documents.id = chunks.document_id"


class SqliteSnapshot:
    """Implements `Snapshot` in a read transaction; documents outside `within` are hidden from every method."""

    def __init__(self, db: Database, vector_search: Callable[[], VectorSearch], within: Scope = EVERYTHING) -> None:
        self._open_db: Database | None = db
        self._vector_search = vector_search  # asked for late: it imports NumPy
        self._within = within

    def end(self) -> None:
        """Detach the snapshot from its connection, which goes back to the pool."""
        self._open_db = None
        for kept in ("_counts", "_whole_counts", "_hides_some", "_identity", "_has_vectors"):
            vars(self).pop(kept, None)

    @property
    def _db(self) -> Database:
        if self._open_db is None:
            raise StoreError("this snapshot has ended", hint="use it inside its `with` block only")
        return self._open_db

    def meta(self, key: str) -> str | None:
        if self._within.public_only and key not in META_FOR_ALL:
            return None
        value: str | None = self._db.value("SELECT value FROM meta WHERE key = ?", (key,))
        return value

    def embedder(self) -> EmbedderIdentity | None:
        return self._identity

    def counts(self) -> Counts:
        return self._counts

    def source_counts(self) -> Sequence[SourceCounts]:
        seen, values = self._seen("WHERE")
        found = self._db.rows(
            "SELECT source, count(DISTINCT documents.id), count(chunks.id) FROM documents"  # noqa: S608
            f" LEFT JOIN chunks ON document_id = documents.id{seen} GROUP BY source ORDER BY source",
            values,
        )
        return [SourceCounts(*row) for row in found]

    @cached_property
    def _identity(self) -> EmbedderIdentity | None:
        return stored_embedder(self._db)

    @cached_property
    def _whole_counts(self) -> Counts:
        # A partial index makes the count of pending chunks free once all are embedded.
        found = self._db.rows(
            "SELECT documents, chunks, vectors, (SELECT count(*) FROM chunks WHERE has_vector = 0) FROM totals"
        )
        if len(found) != 1 or not all(isinstance(value, int) for value in found[0]):
            raise self._db.corrupt("the record of its totals")
        files, chunks, vectors, pending = found[0]
        return Counts(files=files, chunks=chunks, pending=pending, embedded=vectors)

    @cached_property
    def _counts(self) -> Counts:
        whole = self._whole_counts
        condition, values = scope_condition(self._within)
        if not condition:
            return whole
        # Counting what is hidden is faster than counting the rest: it is usually less.
        hidden = self._db.rows(
            "SELECT count(DISTINCT documents.id), count(chunks.id), ifnull(sum(has_vector = 1), 0),"  # noqa: S608
            " ifnull(sum(has_vector = 0), 0) FROM documents LEFT JOIN chunks ON document_id = documents.id"
            f" WHERE NOT ({condition})",
            values,
        )[0]
        return without(whole, hidden)

    def _seen(self, joined_by: str) -> tuple[str, list[Any]]:
        """Return the SQL condition that hides documents, and its values; empty when none is hidden."""
        condition, values = scope_condition(self._within)
        return (f" {joined_by} {condition}", values) if condition else ("", [])

    def _narrowed(self, scope: Scope) -> Scope:
        """Return the scope without hidden documents and without filters that exclude nothing."""
        return without_idle_filters(self._db, without_hidden(scope, self._within))

    def _visible(self, chunk_ids: Collection[int]) -> Collection[int]:
        """Return the chunks that are not hidden."""
        seen, values = self._seen("AND")
        if not seen:
            return chunk_ids
        found = self._db.rows(
            "SELECT chunks.id FROM json_each(?) CROSS JOIN chunks ON chunks.id = value"  # noqa: S608
            f" JOIN documents ON documents.id = document_id{seen}",
            (as_json(chunk_ids), *values),
        )
        return [chunk_id for (chunk_id,) in found]

    def documents(
        self, source: SourceName | None = None, paths: Collection[str] | None = None
    ) -> Mapping[tuple[SourceName, str], StoredDocument]:
        among = "" if paths is None else " AND path IN (SELECT value FROM json_each(?))"
        seen, values = self._seen("AND")
        found = self._db.rows(
            "SELECT source, path, size, mtime_ns, ctime_ns, inode, content_hash, dated, private FROM documents"  # noqa: S608
            f" WHERE (?1 IS NULL OR source = ?1){among}{seen} ORDER BY source, path",
            (source, *(() if paths is None else (as_json(paths),)), *values),
        )
        if not all(
            type(name) is type(path) is type(digest) is str and type(size) is type(time) is type(ctime) is int
            for name, path, size, time, ctime, _, digest, _, _ in found
        ):
            raise self._db.corrupt("the record of a document")
        new = tuple.__new__  # of thousands a sync; by its own name a NamedTuple takes twice as long
        return {
            (name, path): new(
                StoredDocument,
                (
                    new(FileStamp, (name, path, size, mtime_ns, ctime, inode)),
                    content_hash,
                    None if dated is None else day_of(dated),
                    private == 1,
                ),
            )
            for name, path, size, mtime_ns, ctime, inode, content_hash, dated, private in found
        }

    def cursor(self, source: SourceName, path: str) -> str | None:
        seen, values = self._seen("AND")
        found: str | None = self._db.value(
            "SELECT cursor FROM cursors JOIN documents ON id = document_id"  # noqa: S608
            f" WHERE source = ? AND path = ?{seen}",
            (source, path, *values),
        )
        return found

    # --- keywords --------------------------------------------------------------------------------

    def document_frequencies(self, terms: Sequence[Term], *, at_most: int) -> Sequence[int]:
        return self._frequencies(terms, at_most, self._narrowed(EVERYTHING))

    def _frequencies(self, terms: Sequence[Term], at_most: int, scope: Scope) -> list[int]:
        """Return in how many chunks of the scope each term occurs; counting stops at `at_most`."""
        expressions = [_match_expression([term]) for term in terms]
        condition, values = scope_condition(scope)
        joined, condition = (f" {_TO_DOCUMENTS}", f" AND {condition}") if condition else ("", "")
        counted = self._db.rows(
            "SELECT (SELECT count(*) FROM"  # noqa: S608
            f" (SELECT 1 FROM terms{joined} WHERE terms MATCH json_each.value{condition} LIMIT ?)) FROM json_each(?)",
            (*values, max(at_most, 0), as_json(filter(None, expressions))),
        )
        frequencies = iter(counted)
        return [next(frequencies)[0] if each else 0 for each in expressions]

    def terms_beginning(self, prefix: str, *, lengths: range, limit: int) -> Sequence[str]:
        if not prefix or not lengths or limit < 1:
            return []

        def find(limit: int) -> list[str]:
            # Terms compare by their bytes in UTF-8, which U+10FFFF ends: no character sorts behind it.
            found = self._db.rows(
                "SELECT term FROM vocabulary WHERE term >= ?1 AND term < ?1 || char(0x10FFFF)"
                " AND length(term) BETWEEN ?2 AND ?3 LIMIT ?4",
                (bm25.storable(prefix), lengths.start, lengths.stop - 1, limit),
            )
            return [term for (term,) in found]

        if self._within.public_only:
            return seen_terms(find, partial(self.document_frequencies, at_most=1), limit)
        return find(limit)

    def keyword_matches(
        self,
        terms: Sequence[Term],
        *,
        limit: int,
        scope: Scope,
        led_by: Sequence[Term] | None = None,
        also: Collection[int] = (),
    ) -> Sequence[Match]:
        scope = self._narrowed(scope)
        if not self._hides_some:
            return self._matches(terms, limit, scope, led_by, also)
        most = max(limit, MOST_RESCORED) if limit > 0 else limit
        found = self._matches(terms, most, scope, led_by, also)
        scores = self.keyword_scores(terms, [match.chunk_id for match in found])
        ranked = sorted((Match(match.chunk_id, scores[match.chunk_id]) for match in found), key=best_first)
        wanted = set(also)
        return [match for place, match in enumerate(ranked) if place < limit or match.chunk_id in wanted]

    def _matches(
        self, terms: Sequence[Term], limit: int, scope: Scope, led_by: Sequence[Term] | None, also: Collection[int]
    ) -> list[Match]:
        """Return the best matches; the rarity of terms counts hidden chunks, too."""
        expression = _match_expression(terms)
        leading = expression if led_by is None else _match_expression(led_by)
        if expression is None or leading is None or limit < 1:
            return []
        joined, among = "", ""
        condition, values = scope_condition(scope)
        if condition:
            joined = _TO_DOCUMENTS
            condition = f"AND {condition}"
        if leading != expression:
            # Finding a row is cheap, scoring it is not. The plus keeps FTS5 from looking up each row by itself.
            among = f"AND +terms.rowid IN (SELECT rowid FROM terms WHERE terms MATCH ? UNION ALL {_LISTED})"  # noqa: S608
        ids = as_json(also)
        # Materialised, so that FTS5 goes through its lists once for both halves.
        found = self._db.rows(
            f"WITH found AS MATERIALIZED (SELECT terms.rowid AS id, {_BM25} AS bm25 FROM terms {joined}"  # noqa: S608
            f" WHERE terms MATCH ? {condition} {among})"
            " SELECT id, bm25 FROM (SELECT id, bm25 FROM found ORDER BY bm25 DESC, id LIMIT ?)"
            f" UNION SELECT id, bm25 FROM found WHERE id IN ({_LISTED}) ORDER BY bm25 DESC, id",
            (expression, *values, *((leading, ids) if among else ()), limit, ids),
        )
        return [Match(chunk_id, score) for chunk_id, score in self._possible(found)]

    def _scores(self, terms: Sequence[Term], chunk_ids: Collection[int]) -> dict[int, float]:
        """Return the BM25 of chunks; the rarity of terms counts hidden chunks, too."""
        expression = _match_expression(terms)
        if expression is None or not chunk_ids:
            return {}
        found = self._db.rows(
            f"SELECT rowid, {_BM25} FROM terms WHERE terms MATCH ? AND +rowid IN ({_LISTED})",  # noqa: S608
            (expression, as_json(chunk_ids)),
        )
        return dict(self._possible(found))

    def _possible(self, found: list[Row]) -> list[Row]:
        """Return the scores; raise for an impossible one, because FTS5 does not check the lengths that it stores."""
        if all(score is not None and 0 <= score < math.inf for _, score in found):
            return found
        raise self._db.corrupt("the length of a text")

    def keyword_scores(self, terms: Sequence[Term], chunk_ids: Collection[int]) -> Mapping[int, float]:
        if not self._hides_some:
            return self._scores(terms, chunk_ids)
        # BM25 weighs each term by its rarity, which must not depend on hidden texts: otherwise the score of a note with
        # a guessed word would show whether hidden texts contain it.
        seen = self._visible(chunk_ids)
        rows, within = self._whole_counts.chunks, self.counts().chunks
        scores: dict[int, float] = {}
        everywhere = self._frequencies(terms, rows, EVERYTHING)
        here = self.document_frequencies(terms, at_most=rows)
        for term, in_all, in_seen in zip(terms, everywhere, here, strict=True):
            share = bm25.rarity(within, in_seen) / bm25.rarity(rows, in_all)
            for chunk_id, score in self._scores([term], seen).items():
                scores[chunk_id] = scores.get(chunk_id, 0.0) + score * share
        return {chunk_id: float(f"{score:.9g}") for chunk_id, score in scores.items()}  # equal ones stay equal

    @cached_property
    def _hides_some(self) -> bool:
        return self._within.public_only and self.counts() != self._whole_counts

    # --- vectors ---------------------------------------------------------------------------------

    def vector_matches(self, vector: Vector, *, limit: int, scope: Scope) -> Sequence[Match]:
        dimensions = self._dimensions()
        if dimensions is None or limit < 1:
            return []
        scope = self._narrowed(scope)
        return self._vector_search().matches(self._db, vector, dimensions=dimensions, limit=limit, scope=scope)

    def vector_scores(self, vector: Vector, chunk_ids: Collection[int]) -> Mapping[int, float]:
        dimensions = self._dimensions()
        if dimensions is None or not chunk_ids:
            return {}
        return self._vector_search().scores(self._db, vector, self._visible(chunk_ids), dimensions=dimensions)

    def known_vectors(self, embedded_hashes: Collection[str]) -> Mapping[str, Vector]:
        if not embedded_hashes or self._dimensions() is None or self._within.public_only:
            return {}  # the vector of a text would show a group that the text exists
        from notewell.store.sqlite.vector_search import known_vectors

        return known_vectors(self._db, embedded_hashes)

    def _dimensions(self) -> int | None:
        """Return the length of the stored vectors; None when there are none."""
        return self._identity.dimensions if self._identity and self._has_vectors else None

    @cached_property
    def _has_vectors(self) -> bool:
        return bool(self._db.value("SELECT vectors FROM totals"))  # cheaper than `counts`

    # --- chunks ----------------------------------------------------------------------------------

    def chunks(self, chunk_ids: Collection[int]) -> Mapping[int, StoredChunk]:
        found = self._chunks("chunks.id IN (SELECT value FROM json_each(?))", as_json(chunk_ids))
        return {chunk.id: chunk for chunk in found}

    def chunks_of(self, source: SourceName, path: str) -> Sequence[StoredChunk]:
        found = self._chunks("source = ? AND path = ?", source, path)
        return sorted(found, key=lambda chunk: (chunk.first_line, chunk.last_line, chunk.id))

    def _chunks(self, condition: str, *asked: str) -> Iterator[StoredChunk]:
        seen, values = self._seen("AND")
        for chunk_id, source, path, dated, first_line, last_line, text, context, turn, parts, *label in self._db.rows(
            "SELECT chunks.id, source, path, dated, first_line, last_line, text, context, turn, parts, entry, category,"  # noqa: S608
            " importance FROM chunks"
            " JOIN documents ON documents.id = document_id JOIN chunk_texts ON chunk_id = chunks.id"
            f" WHERE {condition}{seen}",
            (*asked, *values),
        ):
            kinds = (type(source), type(path), type(text), type(context))
            numbers = (type(first_line), type(last_line), type(turn), type(parts))
            if kinds != _FOUR_TEXTS or numbers != _FOUR_NUMBERS:
                raise self._db.corrupt("the record of a chunk")
            yield StoredChunk(
                chunk_id,
                source,
                path,
                day_of(dated),
                first_line,
                last_line,
                text,
                context,
                turn,
                parts,
                label_of(label),
            )

    def entries(self, ids: Collection[str] | None = None) -> Sequence[EntryChunk]:
        among = "" if ids is None else " AND entry IN (SELECT value FROM json_each(?))"
        seen, values = self._seen("AND")
        found = self._db.rows(
            "SELECT entry, path, chunks.id FROM chunks JOIN documents ON documents.id = document_id"  # noqa: S608
            f" WHERE category IS NOT NULL{among}{seen} ORDER BY path, first_line, chunks.id",
            (*(() if ids is None else (as_json(ids),)), *values),
        )
        if not all(type(entry) is type(path) is str for entry, path, _ in found):
            raise self._db.corrupt("the record of an entry")
        return [EntryChunk(*row) for row in found]

    def messages(self, path: str, turns: Collection[int]) -> Sequence[SpokenLine]:
        seen, values = self._seen("AND")
        found = self._db.rows(
            "SELECT first_line, text, turn FROM documents JOIN chunks ON document_id = documents.id"  # noqa: S608
            " JOIN chunk_texts ON chunk_id = chunks.id WHERE source = 'sessions' AND path = ? AND turn > 0"
            f" AND turn IN (SELECT value FROM json_each(?)){seen} ORDER BY turn, chunks.id",
            (path, as_json(turns), *values),
        )
        if not all(type(text) is str and type(line) is int for line, text, _ in found):
            raise self._db.corrupt("the record of a chunk")
        return first_of_turns(found)

    def newest_chunks(self, *, limit: int, scope: Scope) -> Sequence[int]:
        condition, values = scope_condition(self._narrowed(scope))
        where = f" WHERE {condition}" if condition else ""
        found = self._db.rows(
            f"SELECT chunks.id FROM chunks JOIN documents ON documents.id = document_id{where}"  # noqa: S608
            " ORDER BY dated DESC NULLS LAST, document_id, first_line, chunks.id LIMIT ?",
            (*values, limit),
        )
        return [chunk_id for (chunk_id,) in found]

    def places(self, chunk_ids: Collection[int]) -> Mapping[int, ChunkPlace]:
        found = self._db.rows(
            "SELECT chunks.id, document_id, turn, parts FROM json_each(?) CROSS JOIN chunks ON chunks.id = value",
            (as_json(self._visible(chunk_ids)),),
        )
        places = {}
        for chunk_id, document, turn, parts in found:
            if type(document) is not int or type(turn) is not int or type(parts) is not int or turn < 0 or parts < 1:
                raise self._db.corrupt("the place of a chunk")
            places[chunk_id] = ChunkPlace(document, turn, parts)
        return places


def _match_expression(terms: Sequence[Term]) -> str | None:
    """Return the FTS5 query for any of the terms, None if it is empty; everything in it is quoted."""
    return " OR ".join(phrase for term in terms if (phrase := _phrase(term))) or None


def _phrase(term: Term) -> str:
    cleaned = bm25.storable(" ".join(term.tokens))
    if not cleaned.split():
        return ""
    words = cleaned.replace('"', '""')
    return f'"{words}" *' if term.prefix else f'"{words}"'


# SQLite returns whatever a corrupt page contains, so types are checked: all at once, fifty times per search.
_FOUR_TEXTS, _FOUR_NUMBERS = (str,) * 4, (int,) * 4
