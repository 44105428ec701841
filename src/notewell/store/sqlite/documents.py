"""Writes documents with their chunks, terms and vectors in one transaction, and selects those in a scope."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from notewell.errors import StoreError
from notewell.store import scopes
from notewell.store.rows import EMBEDDED, STORED_ROW, ChunkChanges, StoredRow, changeable, embedder_of, place_of
from notewell.store.scopes import Dialect
from notewell.store.sqlite.connection import Database, as_json
from notewell.types import EmbedderIdentity, PreparedChunk, Scope, SourceName, StoredDocument

if TYPE_CHECKING:
    from notewell.protocols import Vector
    from notewell.store.sqlite.vector_search import VectorIndex

_LISTED = "IN (SELECT value FROM json_each(?))"


class Writes:
    """Implements `DocumentWrites` for one file."""

    def __init__(self, db: Database, vector_index: Callable[[], VectorIndex]) -> None:
        self.db = db
        self._vector_index = vector_index  # called late: it imports NumPy
        self.changed_chunks = 0

    # --- documents -------------------------------------------------------------------------------

    def put_document_row(self, document: StoredDocument) -> tuple[int, bool]:
        stamp = document.stamp
        key = self.db.value("SELECT id FROM documents WHERE source = ? AND path = ?", (stamp.source, stamp.path))
        if key is not None:
            self.touch_document_rows([document])
            return key, False
        key = self.db.insert(
            "INSERT INTO documents (source, path, size, mtime_ns, ctime_ns, inode, content_hash, dated, private) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (stamp.source, stamp.path, *changeable(document)),
        )
        self._count(documents=1)
        return key, True

    def touch_document_rows(self, documents: Sequence[StoredDocument]) -> None:
        self.db.run_many(
            "UPDATE documents SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, content_hash = ?, dated = ?,"
            " private = ? WHERE source = ? AND path = ?",
            ((*changeable(document), document.stamp.source, document.stamp.path) for document in documents),
        )

    def put_cursor(self, document_id: int, cursor: str) -> None:
        self.db.rows("INSERT OR REPLACE INTO cursors (document_id, cursor) VALUES (?, ?)", (document_id, cursor))

    def remove_documents(self, source: SourceName, paths: Collection[str]) -> None:
        found = self.db.rows(
            f"SELECT id FROM documents WHERE source = ? AND path {_LISTED}",  # noqa: S608
            (source, as_json(paths)),
        )
        listed = as_json(key for (key,) in found)
        chunks = self.db.rows(f"SELECT id FROM chunks WHERE document_id {_LISTED}", (listed,))  # noqa: S608
        self.remove_chunks([chunk_id for (chunk_id,) in chunks])
        self.db.rows(f"DELETE FROM cursors WHERE document_id {_LISTED}", (listed,))  # noqa: S608
        self.db.rows(f"DELETE FROM documents WHERE id {_LISTED}", (listed,))  # noqa: S608
        self._count(documents=-len(found))

    # --- chunks ----------------------------------------------------------------------------------

    def chunk_ids_of(self, document_id: int) -> set[int]:
        return {chunk_id for (chunk_id,) in self.db.rows("SELECT id FROM chunks WHERE document_id = ?", (document_id,))}

    def stored_rows(self, document_id: int, hashes: Collection[str] | None = None) -> list[StoredRow]:
        # The plus makes SQLite use the index of hashes instead of scanning the document's chunks.
        where = "document_id = ?"
        if hashes is not None:
            where = "+document_id = ? AND embedded_hash IN (SELECT unhex(value) FROM json_each(?))"
        found = self.db.rows(
            f"SELECT {STORED_ROW} FROM chunks WHERE {where} ORDER BY id",  # noqa: S608
            (document_id, *(() if hashes is None else (as_json(hashes),))),
        )
        return [StoredRow(chunk_id, digest.hex(), *rest) for chunk_id, digest, *rest in found]

    def apply(self, source: SourceName, document_id: int, changes: ChunkChanges, vectors: Mapping[str, Vector]) -> None:
        self.remove_chunks(changes.removed)
        self.db.run_many(
            "UPDATE chunks SET first_line = ?, last_line = ?, turn = ?, parts = ?, entry = ?, category = ?,"
            " importance = ? WHERE id = ?",
            [(*place_of(new), chunk_id) for chunk_id, new in changes.moved],
        )
        for chunk_id, new in changes.reworded:
            chunk = new.chunk
            self.db.rows("UPDATE chunks SET context_length = ? WHERE id = ?", (len(chunk.context), chunk_id))
            words = (chunk.context, chunk.text, chunk_id)
            self.db.rows("UPDATE chunk_texts SET context = ?, text = ? WHERE chunk_id = ?", words)
            self.db.rows("DELETE FROM terms WHERE rowid = ?", (chunk_id,))
            self._insert_terms([(chunk_id, new)])
        self.insert_chunks(source, document_id, changes.added, vectors)

    def insert_chunks(
        self, source: SourceName, document_id: int, added: Sequence[PreparedChunk], vectors: Mapping[str, Vector]
    ) -> None:
        if not added:
            return
        last: int = self.db.value("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'chunks'")
        paired = list(enumerate(added, start=last + 1))
        self.db.run_many(
            "INSERT INTO chunks"
            " (id, document_id, first_line, last_line, turn, parts, entry, category, importance, has_vector,"
            " embedded_hash, context_length) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
            [
                (chunk_id, document_id, *place_of(new), bytes.fromhex(new.chunk.embedded_hash), len(new.chunk.context))
                for chunk_id, new in paired
            ],
        )
        self.db.run_many(
            "INSERT INTO chunk_texts (chunk_id, context, text) VALUES (?, ?, ?)",
            [(chunk_id, new.chunk.context, new.chunk.text) for chunk_id, new in paired],
        )
        self._insert_terms(paired)
        self._count(chunks=len(paired))
        self.changed_chunks += len(paired)
        hashes = ((chunk_id, new.chunk.embedded_hash) for chunk_id, new in paired)
        known = {chunk_id: vectors[digest] for chunk_id, digest in hashes if digest in vectors}
        if known:
            self.add_vectors(source, known)

    def _insert_terms(self, paired: Sequence[tuple[int, PreparedChunk]]) -> None:
        self.db.run_many(
            "INSERT INTO terms (rowid, text, context) VALUES (?, ?, ?)",
            [(chunk_id, *new.terms()) for chunk_id, new in paired],
        )

    def remove_chunks(self, chunk_ids: Sequence[int]) -> None:
        if not chunk_ids:
            return
        self.remove_vectors(chunk_ids)
        listed = (as_json(chunk_ids),)
        for table, key in (("terms", "rowid"), ("chunk_texts", "chunk_id"), ("chunks", "id")):
            self.db.rows(f"DELETE FROM {table} WHERE {key} {_LISTED}", listed)  # noqa: S608
        self._count(chunks=-len(chunk_ids))
        self.changed_chunks += len(chunk_ids)

    # --- vectors ---------------------------------------------------------------------------------

    def add_vectors(self, source: SourceName, vectors: Mapping[int, Vector]) -> None:
        """Store the vectors of chunks of one source."""
        identity = stored_embedder(self.db)
        if identity is None:
            raise StoreError("no embedder is set, so no vectors can be stored", hint="call set_embedder first")
        from notewell.store.vectors import checked_matrix, pack

        ids = list(vectors)
        matrix = checked_matrix(vectors.values(), identity.dimensions)
        rows = zip(ids, pack(matrix), strict=True)
        self.db.run_many("INSERT INTO vectors (chunk_id, embedding) VALUES (?, ?)", rows)
        self.db.rows(f"UPDATE chunks SET has_vector = ? WHERE id {_LISTED}", (EMBEDDED, as_json(ids)))  # noqa: S608
        self._count(vectors=len(ids))
        self._vector_index().add(self.db, source, ids, matrix)

    def remove_vectors(self, chunk_ids: Collection[int]) -> None:
        """Delete the vectors of chunks; some may have none."""
        gone = self.db.rows(
            f"DELETE FROM vectors WHERE chunk_id {_LISTED} RETURNING chunk_id",  # noqa: S608
            (as_json(chunk_ids),),
        )
        if gone:
            self._count(vectors=-len(gone))
            self._vector_index().remove(self.db, [chunk_id for (chunk_id,) in gone])

    def _count(self, *, documents: int = 0, chunks: int = 0, vectors: int = 0) -> None:
        """Update the totals; changed vectors get a new generation before their index is updated."""
        self.db.rows(
            "UPDATE totals SET documents = documents + ?1, chunks = chunks + ?2, vectors = vectors + ?3,"
            " vector_generation = vector_generation + (?3 <> 0) WHERE id = 1",
            (documents, chunks, vectors),
        )


def stored_embedder(db: Database) -> EmbedderIdentity | None:
    """Return the identity that `set_embedder` recorded."""
    try:
        return embedder_of(db.value("SELECT value FROM meta WHERE key = 'embedder'"))
    except (TypeError, ValueError) as error:
        raise db.corrupt("the record of its embedder") from error


# --- scopes --------------------------------------------------------------------------------------

SQLITE = Dialect(mark="?", listed=_LISTED, as_list=as_json)


def without_idle_filters(db: Database, scope: Scope) -> Scope:
    """Drop filters that exclude nothing."""
    return scopes.without_idle_filters(
        scope,
        SQLITE,
        lambda condition, values: bool(db.rows(f"SELECT 1 FROM documents WHERE {condition} LIMIT 1", values)),  # noqa: S608
    )


def scope_condition(scope: Scope) -> tuple[str, list[Any]]:
    """Return the SQL condition on a chunk and its document, and its values."""
    return scopes.scope_condition(scope, SQLITE)


def chunk_ids_in(db: Database, scope: Scope) -> list[int]:
    """Return the ids of every chunk in the scope, ascending."""
    condition, values = scope_condition(scope)
    where = f" WHERE {condition}" if condition else ""
    found = db.rows(
        "SELECT chunks.id FROM documents JOIN chunks ON chunks.document_id = documents.id"  # noqa: S608
        f"{where} ORDER BY chunks.id",
        values,
    )
    return [chunk_id for (chunk_id,) in found]
