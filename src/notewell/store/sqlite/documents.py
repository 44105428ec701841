"""Reads and writes the rows of documents and their chunks, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from notewell.store import scopes
from notewell.store.rows import (
    STORED_ROW,
    ChunkChanges,
    StoredRow,
    changeable,
    place_of,
    plan_chunks,
)
from notewell.store.scopes import Dialect
from notewell.store.sqlite.connection import Database, as_json
from notewell.types import FileStamp, PreparedChunk, Scope, SourceName, StoredDocument

if TYPE_CHECKING:
    from notewell.protocols import Vector

    InsertChunks = Callable[[Database, SourceName, int, Sequence[PreparedChunk], Mapping[str, Vector]], None]
    RemoveChunks = Callable[[Database, Sequence[int]], None]

_LISTED = "IN (SELECT value FROM json_each(?))"


# --- documents -----------------------------------------------------------------------------------


def put_document_row(db: Database, document: StoredDocument) -> tuple[int, bool]:
    """Insert or update the document's own row; return its key and whether it is new."""
    stamp = document.stamp
    key = db.value("SELECT id FROM documents WHERE source = ? AND path = ?", (stamp.source, stamp.path))
    if key is not None:
        touch_document_rows(db, [document])
        return key, False
    key = db.insert(
        "INSERT INTO documents (source, path, size, mtime_ns, ctime_ns, inode, content_hash, dated, private) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (stamp.source, stamp.path, *changeable(document)),
    )
    return key, True


def touch_document_rows(db: Database, documents: Iterable[StoredDocument]) -> None:
    """Update the stamps of documents that are already there."""
    db.run_many(
        "UPDATE documents SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, content_hash = ?, dated = ?, private = ?"
        " WHERE source = ? AND path = ?",
        ((*changeable(document), document.stamp.source, document.stamp.path) for document in documents),
    )


def document_keys(db: Database, source: str, paths: Collection[str]) -> list[int]:
    """Return the keys of those of the documents that are there."""
    found = db.rows(f"SELECT id FROM documents WHERE source = ? AND path {_LISTED}", (source, as_json(paths)))  # noqa: S608
    return [key for (key,) in found]


def delete_document_rows(db: Database, document_ids: Collection[int]) -> None:
    """Delete the documents' own rows and cursors; their chunks must be gone already."""
    listed = (as_json(document_ids),)
    db.rows(f"DELETE FROM cursors WHERE document_id {_LISTED}", listed)  # noqa: S608
    db.rows(f"DELETE FROM documents WHERE id {_LISTED}", listed)  # noqa: S608


def put_cursor(db: Database, document_id: int, cursor: str) -> None:
    """Record how far a growing document is indexed."""
    db.rows("INSERT OR REPLACE INTO cursors (document_id, cursor) VALUES (?, ?)", (document_id, cursor))


# --- chunks --------------------------------------------------------------------------------------


def stored_rows(db: Database, document_id: int) -> list[StoredRow]:
    """Return the chunks of a document, oldest first."""
    sql = f"SELECT {STORED_ROW} FROM chunks WHERE document_id = ? ORDER BY id"  # noqa: S608
    return [StoredRow(chunk_id, digest.hex(), *rest) for chunk_id, digest, *rest in db.rows(sql, (document_id,))]


def chunk_ids_of(db: Database, document_ids: Collection[int]) -> list[int]:
    """Return the ids of all chunks of these documents."""
    found = db.rows(f"SELECT id FROM chunks WHERE document_id {_LISTED}", (as_json(document_ids),))  # noqa: S608
    return [chunk_id for (chunk_id,) in found]


def insert_chunks(db: Database, document_id: int, added: Sequence[PreparedChunk]) -> list[int]:
    """Insert new chunks, all pending, and return their ids in order."""
    last: int = db.value("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'chunks'")
    ids = list(range(last + 1, last + 1 + len(added)))
    paired = list(zip(ids, added, strict=True))
    db.run_many(
        "INSERT INTO chunks"
        " (id, document_id, first_line, last_line, turn, parts, entry, category, importance, has_vector, embedded_hash,"
        " context_length) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
        [
            (chunk_id, document_id, *place_of(new), bytes.fromhex(new.chunk.embedded_hash), len(new.chunk.context))
            for chunk_id, new in paired
        ],
    )
    db.run_many(
        "INSERT INTO chunk_texts (chunk_id, context, text) VALUES (?, ?, ?)",
        [(chunk_id, new.chunk.context, new.chunk.text) for chunk_id, new in paired],
    )
    _insert_terms(db, paired)
    return ids


def move_chunks(db: Database, changes: ChunkChanges) -> None:
    """Give kept chunks their new place and, where the split between heading and text changed, their new words."""
    db.run_many(
        "UPDATE chunks SET first_line = ?, last_line = ?, turn = ?, parts = ?, entry = ?, category = ?, importance = ?"
        " WHERE id = ?",
        [(*place_of(new), chunk_id) for chunk_id, new in changes.moved],
    )
    for chunk_id, new in changes.reworded:
        db.rows("UPDATE chunks SET context_length = ? WHERE id = ?", (len(new.chunk.context), chunk_id))
        db.rows(
            "UPDATE chunk_texts SET context = ?, text = ? WHERE chunk_id = ?",
            (new.chunk.context, new.chunk.text, chunk_id),
        )
        db.rows("DELETE FROM terms WHERE rowid = ?", (chunk_id,))
        _insert_terms(db, [(chunk_id, new)])


def delete_chunks(db: Database, chunk_ids: Collection[int]) -> None:
    """Delete chunks, their texts and terms; their vectors must be gone already."""
    listed = (as_json(chunk_ids),)
    db.rows(f"DELETE FROM terms WHERE rowid {_LISTED}", listed)  # noqa: S608
    db.rows(f"DELETE FROM chunk_texts WHERE chunk_id {_LISTED}", listed)  # noqa: S608
    db.rows(f"DELETE FROM chunks WHERE id {_LISTED}", listed)  # noqa: S608


def _insert_terms(db: Database, paired: Sequence[tuple[int, PreparedChunk]]) -> None:
    db.run_many(
        "INSERT INTO terms (rowid, text, context) VALUES (?, ?, ?)",
        [(chunk_id, new.text_terms, new.context_terms) for chunk_id, new in paired],
    )


class SqliteRewrite:
    """Implements `Rewrite` within one transaction, which may be larger than memory: SQLite spills it to the disk."""

    def __init__(
        self, db: Database, source: SourceName, path: str, *, insert: InsertChunks, remove: RemoveChunks
    ) -> None:
        self._db = db
        self._source = source
        self._insert = insert
        self._remove = remove
        unread = StoredDocument(FileStamp(source, path, size=0, mtime_ns=0), "")
        self._key, self.is_new = put_document_row(db, unread)
        self._unused = set(chunk_ids_of(db, [self._key]))  # of a gigabyte some 300,000: the ids alone are held
        self.complete = False

    def add(self, chunks: Sequence[PreparedChunk], vectors: Mapping[str, Vector]) -> None:
        old = [row for row in self._rows({new.chunk.embedded_hash for new in chunks}) if row.id in self._unused]
        changes = plan_chunks(old, chunks)
        self._unused -= {row.id for row in old} - set(changes.removed)  # a later chunk may pair with the others
        move_chunks(self._db, changes)
        self._insert(self._db, self._source, self._key, changes.added, vectors)

    def finish(self, document: StoredDocument, cursor: str) -> None:
        self._remove(self._db, sorted(self._unused))
        touch_document_rows(self._db, [document])
        put_cursor(self._db, self._key, cursor)
        self.complete = True

    def _rows(self, hashes: Collection[str]) -> list[StoredRow]:
        # The plus keeps SQLite from going through all chunks of the document instead of those with these hashes.
        found = self._db.rows(
            f"SELECT {STORED_ROW} FROM chunks"  # noqa: S608
            " WHERE +document_id = ? AND embedded_hash IN (SELECT unhex(value) FROM json_each(?)) ORDER BY id",
            (self._key, as_json(hashes)),
        )
        return [StoredRow(chunk_id, digest.hex(), *rest) for chunk_id, digest, *rest in found]


# --- scopes --------------------------------------------------------------------------------------

SQLITE = Dialect(mark="?", listed=_LISTED, as_list=as_json)


def without_idle_filters(db: Database, scope: Scope) -> Scope:
    """Drop filters that exclude nothing, because checking them costs more than the search itself."""
    return scopes.without_idle_filters(
        scope,
        SQLITE,
        lambda condition, values: bool(db.rows(f"SELECT 1 FROM documents WHERE {condition} LIMIT 1", values)),  # noqa: S608
    )


def scope_condition(scope: Scope) -> tuple[str, list[Any]]:
    """Return the SQL condition a chunk and its document must meet, and its values; empty when every chunk does."""
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
