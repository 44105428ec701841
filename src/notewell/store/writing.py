"""Writes documents for every storage engine: replaces the chunks that changed and keeps the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from notewell.errors import StoreError
from notewell.store.rows import ChunkChanges, StoredRow, plan_chunks
from notewell.types import FileStamp, PreparedChunk, SourceName, StoredDocument

if TYPE_CHECKING:
    from notewell.protocols import Vector


class DocumentWrites(Protocol):
    """The statements of an engine, within a transaction; a document has a number in each engine."""

    def put_document_row(self, document: StoredDocument) -> tuple[int, bool]:
        """Insert or update the row of a document; return its number and whether it is new."""
        ...

    def touch_document_rows(self, documents: Sequence[StoredDocument]) -> None:
        """Update the stamps of existing documents."""
        ...

    def put_cursor(self, document_id: int, cursor: str) -> None:
        """Record how far a growing document is indexed."""
        ...

    def remove_documents(self, source: SourceName, paths: Collection[str]) -> None: ...

    def chunk_ids_of(self, document_id: int) -> set[int]: ...

    def stored_rows(self, document_id: int, hashes: Collection[str] | None = None) -> list[StoredRow]:
        """Return the chunks of a document, oldest first, or those with these embedded hashes."""
        ...

    def apply(self, source: SourceName, document_id: int, changes: ChunkChanges, vectors: Mapping[str, Vector]) -> None:
        """Apply the changes; new chunks take their vectors from `vectors`, or are pending."""
        ...

    def insert_chunks(
        self, source: SourceName, document_id: int, added: Sequence[PreparedChunk], vectors: Mapping[str, Vector]
    ) -> None:
        """Insert chunks with their vectors; those without one are pending."""
        ...

    def remove_chunks(self, chunk_ids: Sequence[int]) -> None:
        """Delete chunks with their terms and vectors."""
        ...


class DocumentStore:
    """The part of a `Store` that writes documents; each method is one transaction."""

    def _writing(self) -> AbstractContextManager[DocumentWrites]:
        raise NotImplementedError

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
    def rewriting(self, source: SourceName, path: str) -> Iterator[DocumentRewrite]:
        with self._writing() as writes:
            rewrite = DocumentRewrite(writes, source, path)
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
        if paths:
            with self._writing() as writes:
                writes.remove_documents(source, paths)


class DocumentRewrite:
    """Implements `Rewrite` in one transaction, which may not fit into memory: the database spills it to disk."""

    def __init__(self, writes: DocumentWrites, source: SourceName, path: str) -> None:
        self._writes = writes
        self._source = source
        self._key, _ = writes.put_document_row(StoredDocument(FileStamp(source, path, size=0, mtime_ns=0), ""))
        self._unused = writes.chunk_ids_of(self._key)  # of a gigabyte some 300,000 ids
        self.complete = False

    def add(self, chunks: Sequence[PreparedChunk], vectors: Mapping[str, Vector]) -> None:
        hashes = {new.chunk.embedded_hash for new in chunks}
        old = [row for row in self._writes.stored_rows(self._key, hashes) if row.id in self._unused]
        changes = plan_chunks(old, chunks)
        self._unused -= {row.id for row in old} - set(changes.removed)  # the others may pair with later chunks
        self._writes.apply(self._source, self._key, replace(changes, removed=()), vectors)

    def finish(self, document: StoredDocument, cursor: str) -> None:
        self._writes.remove_chunks(sorted(self._unused))
        self._writes.touch_document_rows([document])
        self._writes.put_cursor(self._key, cursor)
        self.complete = True
