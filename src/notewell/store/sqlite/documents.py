"""Writes one document's rows in the caller's transaction: prepared chunks come in, only rows that differ change."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from notewell.store.sqlite.connection import Database, as_json
from notewell.types import PreparedChunk, StoredDocument

_LISTED = "IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class StoredRow:
    """What is needed of a stored chunk to see whether a new one is the same."""

    id: int
    embedded_hash: str
    context_length: int
    first_line: int
    last_line: int
    turn: int
    parts: int


STORED_ROW = "id, embedded_hash, context_length, first_line, last_line, turn, parts"  # the columns, in this order


@dataclass(frozen=True, slots=True)
class ChunkChanges:
    """How the chunks of a document become the new ones."""

    moved: tuple[tuple[int, PreparedChunk], ...]  # same content in another place
    reworded: tuple[tuple[int, PreparedChunk], ...]  # same embedded text, split otherwise between context and text
    added: tuple[PreparedChunk, ...]
    removed: tuple[int, ...]


def plan_chunks(old: Sequence[StoredRow], new: Sequence[PreparedChunk]) -> ChunkChanges:
    """Pair chunks by embedded hash, in order, each at most once; what is left over was added or removed."""
    waiting: defaultdict[str, deque[StoredRow]] = defaultdict(deque)
    for row in old:
        waiting[row.embedded_hash].append(row)
    moved, reworded, added = [], [], []
    for prepared in new:
        chunk = prepared.chunk
        same = waiting[chunk.embedded_hash]
        if not same:
            added.append(prepared)
            continue
        row = same.popleft()
        if row.context_length != len(chunk.context):
            reworded.append((row.id, prepared))
        if (row.first_line, row.last_line, row.turn, row.parts) != _place(prepared):
            moved.append((row.id, prepared))
    removed = [row.id for rows in waiting.values() for row in rows]
    return ChunkChanges(tuple(moved), tuple(reworded), tuple(added), tuple(removed))


def put_document_row(db: Database, document: StoredDocument) -> tuple[int, bool]:
    """Insert or update the document's own row; return its key and whether it is new."""
    stamp = document.stamp
    key = db.value("SELECT id FROM documents WHERE source = ? AND path = ?", (stamp.source, stamp.path))
    if key is not None:
        touch_document_rows(db, [document])
        return key, False
    key = db.insert(
        "INSERT INTO documents (source, path, size, mtime_ns, content_hash, dated, private) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (stamp.source, stamp.path, *_changeable(document)),
    )
    return key, True


def touch_document_rows(db: Database, documents: Iterable[StoredDocument]) -> None:
    """Update the stamps of documents that are already there."""
    db.run_many(
        "UPDATE documents SET size = ?, mtime_ns = ?, content_hash = ?, dated = ?, private = ?"
        " WHERE source = ? AND path = ?",
        ((*_changeable(document), document.stamp.source, document.stamp.path) for document in documents),
    )


def stored_rows(db: Database, document_id: int) -> list[StoredRow]:
    """Return the chunks of a document, oldest first."""
    return [
        StoredRow(chunk_id, digest.hex(), *rest)
        for chunk_id, digest, *rest in db.rows(
            f"SELECT {STORED_ROW} FROM chunks WHERE document_id = ? ORDER BY id",  # noqa: S608
            (document_id,),
        )
    ]


def move_chunks(db: Database, changes: ChunkChanges) -> None:
    """Give kept chunks their new place and, where the split between heading and text changed, their new words."""
    db.run_many(
        "UPDATE chunks SET first_line = ?, last_line = ?, turn = ?, parts = ? WHERE id = ?",
        [(*_place(new), chunk_id) for chunk_id, new in changes.moved],
    )
    for chunk_id, new in changes.reworded:
        db.rows("UPDATE chunks SET context_length = ? WHERE id = ?", (len(new.chunk.context), chunk_id))
        db.rows(
            "UPDATE chunk_texts SET context = ?, text = ? WHERE chunk_id = ?",
            (new.chunk.context, new.chunk.text, chunk_id),
        )
        db.rows("DELETE FROM terms WHERE rowid = ?", (chunk_id,))
        _insert_terms(db, [(chunk_id, new)])


def insert_chunks(db: Database, document_id: int, added: Sequence[PreparedChunk]) -> list[int]:
    """Insert new chunks, all pending, and return their ids in order."""
    last: int = db.value(
        "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'chunks'"
    )  # the table's own count
    ids = list(range(last + 1, last + 1 + len(added)))
    db.run_many(
        "INSERT INTO chunks"
        " (id, document_id, first_line, last_line, turn, parts, has_vector, embedded_hash, context_length)"
        " VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)",
        [
            (
                chunk_id,
                document_id,
                *_place(new),
                bytes.fromhex(new.chunk.embedded_hash),
                len(new.chunk.context),
            )
            for chunk_id, new in zip(ids, added, strict=True)
        ],
    )
    paired = list(zip(ids, added, strict=True))
    db.run_many(
        "INSERT INTO chunk_texts (chunk_id, context, text) VALUES (?, ?, ?)",
        [(chunk_id, prepared.chunk.context, prepared.chunk.text) for chunk_id, prepared in paired],
    )
    _insert_terms(db, paired)
    return ids


def _place(prepared: PreparedChunk) -> tuple[int, int, int, int]:
    chunk = prepared.chunk
    return chunk.first_line, chunk.last_line, chunk.turn, prepared.parts


def _insert_terms(db: Database, paired: Sequence[tuple[int, PreparedChunk]]) -> None:
    db.run_many(
        "INSERT INTO terms (rowid, text, context) VALUES (?, ?, ?)",
        [(chunk_id, prepared.text_terms, prepared.context_terms) for chunk_id, prepared in paired],
    )


def delete_chunks(db: Database, chunk_ids: Collection[int]) -> None:
    """Delete chunks, their texts and terms; their vectors must be gone already."""
    listed = (as_json(chunk_ids),)
    db.rows(f"DELETE FROM terms WHERE rowid {_LISTED}", listed)  # noqa: S608
    db.rows(f"DELETE FROM chunk_texts WHERE chunk_id {_LISTED}", listed)  # noqa: S608
    db.rows(f"DELETE FROM chunks WHERE id {_LISTED}", listed)  # noqa: S608


def document_keys(db: Database, source: str, paths: Collection[str]) -> list[int]:
    """Return the keys of those of the documents that are there."""
    found = db.rows(f"SELECT id FROM documents WHERE source = ? AND path {_LISTED}", (source, as_json(paths)))  # noqa: S608
    return [key for (key,) in found]


def chunk_ids_of(db: Database, document_ids: Collection[int]) -> list[int]:
    """Return the ids of all chunks of these documents."""
    found = db.rows(f"SELECT id FROM chunks WHERE document_id {_LISTED}", (as_json(document_ids),))  # noqa: S608
    return [chunk_id for (chunk_id,) in found]


def delete_document_rows(db: Database, document_ids: Collection[int]) -> None:
    """Delete the documents' own rows; their chunks must be gone already."""
    db.rows(f"DELETE FROM documents WHERE id {_LISTED}", (as_json(document_ids),))  # noqa: S608


def _changeable(document: StoredDocument) -> tuple[int, int, str, int | None, int]:
    dated = None if document.dated is None else document.dated.toordinal()
    return document.stamp.size, document.stamp.mtime_ns, document.content_hash, dated, int(document.private)
