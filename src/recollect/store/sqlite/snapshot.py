"""A consistent view of one index: ids, terms, vectors and scopes come in; frozen values go out."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from recollect.errors import StoreError
from recollect.store.sqlite import keyword
from recollect.store.sqlite.connection import Database, as_json, damaged
from recollect.store.sqlite.scopes import without_idle_filters
from recollect.types import (
    Counts,
    EmbedderIdentity,
    FileStamp,
    Match,
    Scope,
    SourceName,
    StoredChunk,
    StoredDocument,
    Term,
)

if TYPE_CHECKING:
    from recollect.protocols import Vector
    from recollect.store.sqlite.vectors import VectorIndex


class SqliteSnapshot:
    """Implements `Snapshot` on a connection that is inside a read transaction."""

    def __init__(self, db: Database, vector_index: Callable[[], VectorIndex]) -> None:
        self._open_db: Database | None = db
        self._vector_index = vector_index  # asked for late: it imports NumPy

    def end(self) -> None:
        """Cut the snapshot off its connection, which goes back to the pool."""
        self._open_db = None
        vars(self).pop("_counts", None)
        vars(self).pop("_identity", None)

    @property
    def _db(self) -> Database:
        if self._open_db is None:
            raise StoreError("this snapshot has ended", hint="use it inside its `with` block only")
        return self._open_db

    def meta(self, key: str) -> str | None:
        value: str | None = self._db.value("SELECT value FROM meta WHERE key = ?", (key,))
        return value

    def embedder(self) -> EmbedderIdentity | None:
        """Return whose vectors the index holds or waits for; None before the first `set_embedder`."""
        return self._identity

    def counts(self) -> Counts:
        return self._counts

    @cached_property
    def _identity(self) -> EmbedderIdentity | None:
        return stored_embedder(self._db)

    @cached_property
    def _counts(self) -> Counts:
        # Through its partial index the count of pending chunks costs nothing once all are embedded.
        files, chunks, vectors, pending = self._db.rows(
            "SELECT documents, chunks, vectors, (SELECT count(*) FROM chunks WHERE has_vector = 0) FROM totals"
        )[0]
        return Counts(files=files, chunks=chunks, pending=pending, embedded=vectors)

    def documents(
        self, source: SourceName | None = None, paths: Collection[str] | None = None
    ) -> Mapping[tuple[SourceName, str], StoredDocument]:
        among = "" if paths is None else " AND path IN (SELECT value FROM json_each(?2))"
        return {
            (name, path): StoredDocument(FileStamp(name, path, size, mtime_ns), content_hash, _day(dated))
            for name, path, size, mtime_ns, content_hash, dated in self._db.rows(
                "SELECT source, path, size, mtime_ns, content_hash, dated FROM documents"  # noqa: S608
                f" WHERE (?1 IS NULL OR source = ?1){among} ORDER BY source, path",
                (source,) if paths is None else (source, as_json(paths)),
            )
        }

    def document_frequencies(self, terms: Sequence[Term], *, at_most: int) -> Sequence[int]:
        return keyword.document_frequencies(self._db, terms, at_most=at_most)

    def terms_beginning(self, prefix: str, *, lengths: range, limit: int) -> Sequence[str]:
        return keyword.terms_beginning(self._db, prefix, lengths=lengths, limit=limit)

    def keyword_matches(
        self, terms: Sequence[Term], *, limit: int, scope: Scope, also: Collection[int] = ()
    ) -> Sequence[Match]:
        narrowed = without_idle_filters(self._db, scope)
        return keyword.keyword_matches(self._db, terms, limit=limit, scope=narrowed, also=also)

    def vector_matches(self, vector: Vector, *, limit: int, scope: Scope) -> Sequence[Match]:
        dimensions = self._dimensions()
        if dimensions is None or limit < 1:
            return []
        from recollect.store.sqlite.vectors import searching

        narrowed = without_idle_filters(self._db, scope)
        return searching.vector_matches(
            self._db, self._vector_index(), vector, dimensions=dimensions, limit=limit, scope=narrowed
        )

    def vector_scores(self, vector: Vector, chunk_ids: Collection[int]) -> Mapping[int, float]:
        dimensions = self._dimensions()
        if dimensions is None or not chunk_ids:
            return {}
        from recollect.store.sqlite.vectors import searching

        return searching.vector_scores(self._db, vector, chunk_ids, dimensions=dimensions)

    def chunks(self, chunk_ids: Collection[int]) -> Mapping[int, StoredChunk]:
        return {
            chunk_id: StoredChunk(chunk_id, source, path, _day(dated), first_line, last_line, text, context)
            for chunk_id, source, path, dated, first_line, last_line, text, context in self._db.rows(
                "SELECT chunks.id, source, path, dated, first_line, last_line, text, context FROM chunks"
                " JOIN documents ON documents.id = document_id JOIN chunk_texts ON chunk_id = chunks.id"
                " WHERE chunks.id IN (SELECT value FROM json_each(?))",
                (as_json(chunk_ids),),
            )
        }

    def term_counts(self, chunk_ids: Collection[int]) -> Mapping[int, int]:
        return dict(
            self._db.rows(
                "SELECT chunks.id, term_count FROM json_each(?) CROSS JOIN chunks ON chunks.id = value",
                (as_json(chunk_ids),),
            )
        )

    def known_vectors(self, embedded_hashes: Collection[str]) -> Mapping[str, Vector]:
        if not embedded_hashes or self._dimensions() is None:
            return {}
        from recollect.store.sqlite.vectors import searching

        return searching.known_vectors(self._db, embedded_hashes)

    def _dimensions(self) -> int | None:
        """Return the length of the stored vectors, or None when there is none to compare with."""
        return self._identity.dimensions if self._identity and self._counts.embedded else None


def stored_embedder(db: Database) -> EmbedderIdentity | None:
    """Return the identity that `set_embedder` recorded."""
    recorded = db.value("SELECT value FROM meta WHERE key = 'embedder'")
    if recorded is None:
        return None
    try:
        return EmbedderIdentity(**json.loads(recorded))
    except (TypeError, ValueError) as error:
        raise damaged(db.path, "the record of its embedder") from error


def _day(number: int | None) -> date | None:
    return None if number is None else date.fromordinal(number)
