"""The protocols behind which parts can be exchanged: sources, embedders, rerankers, stores and embedding caches.

All but the sources have a contract suite in `notewell.testing`, which our own implementations pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from notewell.types import (
    CacheStats,
    ChunkPlace,
    Counts,
    Document,
    EmbedderIdentity,
    EntryChunk,
    FileStamp,
    Listing,
    Match,
    PendingChunk,
    Piece,
    PreparedChunk,
    Scope,
    SourceCounts,
    SourceName,
    SpokenLine,
    StoredChunk,
    StoredDocument,
    Term,
)

if TYPE_CHECKING:  # NumPy costs 0.1 s to import: keyword search must not pay for it
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]  # one row, unit length
    Matrix = NDArray[np.float32]  # one unit-length row a text


class Source(Protocol):
    """Where documents come from."""

    @property
    def name(self) -> SourceName: ...

    def list(self, paths: Collection[str] | None = None) -> Listing:
        """Return every file in stable order; a file that cannot be read is a problem in the listing, not an exception.

        With `paths`, return only those that exist; a path that cannot belong to this source raises PathRefusedError.
        """
        ...

    def read(self, stamp: FileStamp) -> Document:
        """Return the document; raise OSError when the file is gone or unreadable."""
        ...

    def may_hold(self, path: str) -> bool:
        """Return whether this source could hold a path; the file need not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether the path still names a file of this source."""
        ...

    def stored_path(self, file: Path) -> str | None:
        """Return the path by which a file on disk is stored and cited; None for files of other sources."""
        ...


@runtime_checkable
class GrowingSource(Source, Protocol):
    """A source of documents that are appended to and may not fit into memory."""

    @property
    def read_bytes(self) -> int:
        """Bytes read so far."""
        ...

    def read_on(self, stamp: FileStamp, position: str | None) -> Generator[Piece]:
        """Yield the document from `position` on, in one or more pieces; the last one is marked as such.

        Without a position, or with one that no longer fits, start from the beginning. Raises OSError like `read`.
        """
        ...

    def new_lines(self, path: str, first_byte: int) -> int:
        """Return the number of lines after `first_byte`; raise OSError like `read`."""
        ...


class Embedder(Protocol):
    """Turns text into unit-length vectors.

    `identity` changes whenever the same text could embed differently (weights, pooling, prefix, dimensions, endpoint).
    The store keeps it, so vectors of two models are never compared by accident. It is known without loading a model.
    """

    @property
    def identity(self) -> EmbedderIdentity: ...

    @property
    def quantization(self) -> Literal["bits", "int8"]:
        """How to compress vectors for the first scan; word-average models lose too much with bits."""
        ...

    @property
    def cosine_range(self) -> tuple[float, float]:
        """The typical cosine of unrelated texts, and of a question with its answer; they differ from model to model."""
        ...

    def knows(self, text: str) -> bool:
        """Return whether the model supports the language of `text`; if not, its vectors are noise."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix: ...

    def embed_query(self, text: str) -> Vector: ...

    def close(self) -> None: ...


@runtime_checkable
class MeasuredLanguages(Protocol):
    """An embedder that was measured language by language; any other has weight 1 in every language it knows."""

    @property
    def language_weights(self) -> Mapping[str, float]:
        """The weight of its vectors by language (ISO 639-1), 0 to 1; it does not know other languages."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddedPart:
    """Vectors of some of the texts, as they arrive."""

    positions: Sequence[int]  # of the texts, from 0, in the order of the rows of `vectors`
    vectors: Matrix
    failed: Mapping[int, str] = field(default_factory=dict)  # texts that could not be embedded, and why
    split: Sequence[int] = ()  # texts that were too long for the model: their vectors are means of their pieces'


@runtime_checkable
class StreamingEmbedder(Protocol):
    """An embedder that keeps several requests in progress, so that vectors are stored while others are awaited."""

    def stream_documents(
        self, texts: Iterable[str], *, is_over: Callable[[], bool] | None = None, hurried: bool = False
    ) -> Generator[EmbeddedPart]:
        """Yield vectors as they arrive; closing the iterator cancels what is in progress.

        `texts` is consumed as requests are made. Nothing is yielded once `is_over` returns true. `hurried` means that
        somebody is waiting. Raises EmbedderError when no more can be embedded.
        """
        ...


@runtime_checkable
class Reranker(Protocol):
    """Scores the best candidates of a search again, reading query and text together."""

    @property
    def name(self) -> str:
        """Its name in messages and explanations: `cohere/rerank-v3.5`."""
        ...

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score per text, in order, higher is better; raise RerankerError on failure."""
        ...


class Snapshot(Protocol):
    """A consistent view of a store: later commits of other threads and processes are not visible."""

    def meta(self, key: str) -> str | None: ...

    def embedder(self) -> EmbedderIdentity | None:
        """Return the embedder of the stored vectors."""
        ...

    def counts(self) -> Counts: ...

    def source_counts(self) -> Sequence[SourceCounts]:
        """Return the counts of each source that has documents, sorted by name."""
        ...

    def documents(
        self, source: SourceName | None = None, paths: Collection[str] | None = None
    ) -> Mapping[tuple[SourceName, str], StoredDocument]:
        """Return every document, or those of a source or at some paths."""
        ...

    def cursor(self, source: SourceName, path: str) -> str | None:
        """Return the cursor that `append_document` stored; None for documents that were put as a whole."""
        ...

    def document_frequencies(self, terms: Sequence[Term], *, at_most: int) -> Sequence[int]:
        """Return in how many chunks each term occurs, counting up to `at_most`."""
        ...

    def terms_beginning(self, prefix: str, *, lengths: range, limit: int) -> Sequence[str]:
        """Return indexed terms with this prefix and these lengths, in order; some may belong to removed chunks."""
        ...

    def keyword_matches(
        self,
        terms: Sequence[Term],
        *,
        limit: int,
        scope: Scope,
        led_by: Sequence[Term] | None = None,
        also: Collection[int] = (),
    ) -> Sequence[Match]:
        """Return the `limit` chunks with the best BM25 for the terms, ties by chunk id.

        With `led_by`, only chunks that contain one of those terms match; all terms count for the score. Matching chunks
        in `also` are returned beyond the limit, too.
        """
        ...

    def keyword_scores(self, terms: Sequence[Term], chunk_ids: Collection[int]) -> Mapping[int, float]:
        """Return the BM25 of the given chunks; those without any of the terms are left out."""
        ...

    def vector_matches(self, vector: Vector, *, limit: int, scope: Scope) -> Sequence[Match]:
        """Return the chunks nearest to `vector`, highest cosine first, ties by chunk id."""
        ...

    def vector_scores(self, vector: Vector, chunk_ids: Collection[int]) -> Mapping[int, float]:
        """Return the exact cosine of the given chunks; those without a vector are left out."""
        ...

    def chunks(self, chunk_ids: Collection[int]) -> Mapping[int, StoredChunk]: ...

    def entries(self, ids: Collection[str] | None = None) -> Sequence[EntryChunk]:
        """Return the chunks of all remembered entries, or of those with these ids, by path and line."""
        ...

    def messages(self, path: str, turns: Collection[int]) -> Sequence[SpokenLine]:
        """Return these messages of a conversation in order; the first piece of a message that was split."""
        ...

    def newest_chunks(self, *, limit: int, scope: Scope) -> Sequence[int]:
        """Return chunks in the scope by date of their document, newest first, undated last."""
        ...

    def chunks_of(self, source: SourceName, path: str) -> Sequence[StoredChunk]:
        """Return the chunks of one document by line."""
        ...

    def places(self, chunk_ids: Collection[int]) -> Mapping[int, ChunkPlace]:
        """Return document and message of each chunk, and the number of parts of that message."""
        ...

    def known_vectors(self, embedded_hashes: Collection[str]) -> Mapping[str, Vector]:
        """Return the stored vectors of chunks with these embedded hashes."""
        ...


class Rewrite(Protocol):
    """Replaces the chunks of a document piece by piece; unchanged ones keep their vectors, as in `put_document`."""

    def add(self, chunks: Sequence[PreparedChunk], vectors: Mapping[str, Vector]) -> None:
        """Add the next chunks, in order."""
        ...

    def finish(self, document: StoredDocument, cursor: str) -> None:
        """End the document; old chunks that were not added again are removed."""
        ...


class ReadableStore(Protocol):
    """The read half of a store; documents outside the scope it was lent for do not exist in it."""

    @property
    def read_only(self) -> bool: ...

    @property
    def notes(self) -> Sequence[str]:
        """Notes for every answer, such as a missing extension; usually none."""
        ...

    def reading(self) -> AbstractContextManager[Snapshot]:
        """Open a snapshot; any number of threads may have one, also while another writes."""
        ...

    def pending(self, limit: int, *, after: int = 0) -> Sequence[PendingChunk]:
        """Return chunks without a vector whose id is above `after`, in order of id."""
        ...

    def embedded_hashes(self) -> set[str]:
        """Return the hash of the embedded text of every chunk."""
        ...

    def verify(self) -> Sequence[str]:
        """Return inconsistencies between documents, chunks, terms and vectors; empty when there are none."""
        ...

    def size_bytes(self) -> int: ...


class Store(ReadableStore, Protocol):
    """Keeps documents with their chunks, terms and vectors consistent. All SQL lives behind it."""

    def reading_within(self, scope: Scope) -> AbstractContextManager[Snapshot]:
        """Open a snapshot without the documents that a group may not see; counts leave them out, too."""
        ...

    def write_meta(self, values: Mapping[str, str]) -> None: ...

    def put_document(
        self, document: StoredDocument, chunks: Sequence[PreparedChunk], vectors: Mapping[str, Vector]
    ) -> None:
        """Replace one document in one transaction.

        Chunks with an unchanged embedded hash keep id and vector. A new chunk takes its vector from `vectors` (by
        embedded hash) or becomes pending.
        """
        ...

    def append_document(
        self,
        document: StoredDocument,
        chunks: Sequence[PreparedChunk],
        vectors: Mapping[str, Vector],
        *,
        cursor: str,
    ) -> None:
        """Append chunks to a document, new or old, in one transaction, and store the cursor with it."""
        ...

    def rewriting(self, source: SourceName, path: str) -> AbstractContextManager[Rewrite]:
        """Replace a growing document in one transaction; an exception leaves it as it was."""
        ...

    def together(self) -> AbstractContextManager[None]:
        """Write everything in the `with` block in one transaction, which an exception undoes.

        Many small transactions take twice as long.
        """
        ...

    def touch_documents(self, documents: Iterable[StoredDocument]) -> None:
        """Update stamp, hash and date of documents whose text did not change."""
        ...

    def remove_documents(self, source: SourceName, paths: Collection[str]) -> None: ...

    def set_embedder(self, identity: EmbedderIdentity, quantization: Literal["bits", "int8"]) -> None:
        """Set the embedder of the vectors; raise IndexMismatchError when there are vectors of another one."""
        ...

    def put_vectors(self, vectors: Mapping[int, Vector]) -> None:
        """Store vectors by chunk id in one transaction; removed chunks are skipped."""
        ...

    def skip_vectors(self, chunk_ids: Collection[int]) -> None:
        """Mark chunks as keyword-only instead of pending: the embedder does not support their script."""
        ...

    def optimize(self) -> None:
        """Merge keyword segments and refit the quantiser after a run; cheap when there is nothing to do."""
        ...

    def erase_deleted(self) -> None:
        """Erase every byte of removed documents; raise IndexBusyError when readers prevent it."""
        ...

    def close(self) -> None: ...


class EmbeddingCache(Protocol):
    """Stores vectors by embedding space and text hash, across rebuilds, renames and model switches."""

    max_entries: int
    notes: tuple[str, ...]  # for the reader, such as that it cannot be written

    def get_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]: ...

    def peek_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]:
        """Return what `get_many` would, without counting as use."""
        ...

    def known(self, identity: EmbedderIdentity, hashes: Collection[str]) -> set[str]:
        """Return which of these texts have a vector, without counting as use."""
        ...

    def put_many(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None: ...

    def keep_only(self, hashes: Collection[str]) -> int:
        """Delete the vectors of all other texts in every embedding space; return how many."""
        ...

    def prune(self, *, older_than_days: float) -> int:
        """Delete entries unused for that long; return how many."""
        ...

    def clear(self) -> int:
        """Delete all entries and statistics; return how many entries there were."""
        ...

    def stats(self) -> CacheStats: ...

    def close(self) -> None: ...
