"""Rows of documents that grow at their end: chunks and a cursor come in, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from notewell.store.sqlite import documents as rows
from notewell.store.sqlite.connection import Database, as_json
from notewell.store.sqlite.documents import ChunkChanges, StoredRow
from notewell.types import FileStamp, PreparedChunk, SourceName, StoredDocument

if TYPE_CHECKING:
    from notewell.protocols import Vector

    InsertChunks = Callable[[Database, SourceName, int, Sequence[PreparedChunk], Mapping[str, Vector]], None]
    RemoveChunks = Callable[[Database, Sequence[int]], None]


def put_cursor(db: Database, document_id: int, cursor: str) -> None:
    """Remember how far a document has been taken in."""
    db.rows("INSERT OR REPLACE INTO cursors (document_id, cursor) VALUES (?, ?)", (document_id, cursor))


def delete_cursors(db: Database, document_ids: Collection[int]) -> None:
    """Forget how far documents have been taken in."""
    db.rows("DELETE FROM cursors WHERE document_id IN (SELECT value FROM json_each(?))", (as_json(document_ids),))


def cursor_of(db: Database, source: str, path: str) -> str | None:
    """Return how far a document has been taken in; None for those that are taken in as a whole."""
    found: str | None = db.value(
        "SELECT cursor FROM cursors JOIN documents ON id = document_id WHERE source = ? AND path = ?", (source, path)
    )
    return found


class ChunkPairing:
    """Pairs a document's chunks with those it gets instead, handed over bit by bit; each at most once, in order."""

    def __init__(self, db: Database, document_id: int) -> None:
        self._db = db
        self._document_id = document_id
        self._unused = set(rows.chunk_ids_of(db, [document_id]))  # of a gigabyte some 300,000: the ids alone are held

    def take(self, chunks: Sequence[PreparedChunk]) -> ChunkChanges:
        """Return which of these chunks are new and which only moved; nothing is removed yet."""
        old = [row for row in self._rows({new.chunk.embedded_hash for new in chunks}) if row.id in self._unused]
        changes = rows.plan_chunks(old, chunks)
        self._unused -= {row.id for row in old} - set(changes.removed)
        return ChunkChanges(changes.moved, changes.reworded, changes.added, ())

    def left_over(self) -> list[int]:
        """Return the chunks that the document no longer has."""
        return sorted(self._unused)

    def _rows(self, hashes: Collection[str]) -> list[StoredRow]:
        # The plus keeps SQLite from going through all chunks of the document instead of those with these hashes.
        found = self._db.rows(
            f"SELECT {rows.STORED_ROW} FROM chunks"  # noqa: S608
            " WHERE +document_id = ? AND embedded_hash IN (SELECT unhex(value) FROM json_each(?)) ORDER BY id",
            (self._document_id, as_json(hashes)),
        )
        return [StoredRow(chunk_id, digest.hex(), *rest) for chunk_id, digest, *rest in found]


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
        self._key, self.is_new = rows.put_document_row(db, unread)
        self._pairing = ChunkPairing(db, self._key)
        self.complete = False

    def add(self, chunks: Sequence[PreparedChunk], vectors: Mapping[str, Vector]) -> None:
        changes = self._pairing.take(chunks)
        rows.move_chunks(self._db, changes)
        self._insert(self._db, self._source, self._key, changes.added, vectors)

    def finish(self, document: StoredDocument, cursor: str) -> None:
        self._remove(self._db, self._pairing.left_over())
        rows.touch_document_rows(self._db, [document])
        put_cursor(self._db, self._key, cursor)
        self.complete = True
