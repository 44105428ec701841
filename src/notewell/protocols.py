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
        """Return every file now there, in stable order; never raises for a single bad file.

        With `paths` only those are looked at; one that is not there is not listed, one that could not be of this source
        raises PathRefusedError.
        """
        ...

    def read(self, stamp: FileStamp) -> Document:
        """Return the document. Raises OSError when the file is gone or unreadable."""
        ...

    def may_hold(self, path: str) -> bool:
        """Say whether a path has the form of this source's paths, without looking whether there is such a file."""
        ...

    def exists(self, path: str) -> bool:
        """Say whether the path still names a file of this source."""
        ...

    def stored_path(self, file: Path) -> str | None:
        """Return the path under which a file on disk is stored and cited; None when it is not of this source."""
        ...


@runtime_checkable
class GrowingSource(Source, Protocol):
    """Where documents come from that are appended to, and may be larger than memory."""

    @property
    def read_bytes(self) -> int:
        """How many bytes have been read since it was made."""
        ...

    def read_on(self, stamp: FileStamp, position: str | None) -> Generator[Piece]:
        """Yield what a document says after `position`, in pieces; at least one, and the last says so.

        From its beginning where there is no position or it does not fit any more. Raises OSError like `read`.
        """
        ...

    def new_lines(self, path: str, first_byte: int) -> int:
        """Return how many lines were added after `first_byte`. Raises OSError like `read`."""
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
        """How far its vectors may be squeezed for the first scan; word-average models lose too much with bits."""
        ...

    @property
    def cosine_range(self) -> tuple[float, float]:
        """The cosine of unrelated texts and that of a question with its answer: every model has its own."""
        ...

    def knows(self, text: str) -> bool:
        """Return whether the model supports the language of `text`; if not, its vectors are noise."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix: ...

    def embed_query(self, text: str) -> Vector: ...

    def close(self) -> None: ...


@runtime_checkable
class MeasuredLanguages(Protocol):
    """An embedder that was measured language by language. One that was not counts fully in all that it knows."""

    @property
    def language_weights(self) -> Mapping[str, float]:
        """How far its vectors count in a language (ISO 639-1): 1 fully, 0 not at all. The others it does not know."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddedPart:
    """Vectors of some of the texts that are being embedded, as they come in."""

    positions: Sequence[int]  # of the texts, from 0; one row of `vectors` each
    vectors: Matrix
    failed: Mapping[int, str] = field(default_factory=dict)  # texts that could not be embedded, and why
    split: Sequence[int] = ()  # texts that were too long for the model: their vectors are means of their pieces'


@runtime_checkable
class StreamingEmbedder(Protocol):
    """An embedder that keeps several requests in progress: vectors are stored while others are still awaited."""

    def stream_documents(
        self, texts: Iterable[str], *, is_over: Callable[[], bool] | None = None, hurried: bool = False
    ) -> Generator[EmbeddedPart]:
        """Yield the vectors in the order in which they come in; closing the iterator cancels what is in progress.

        `texts` is drawn from only as fast as requests are made. Once `is_over` says so, nothing more is yielded.
        `hurried` says that a caller waits. Raises EmbedderError when no more can be embedded.
        """
        ...


@runtime_checkable
class Reranker(Protocol):
    """Takes a second look at the best candidates of a search, reading the query and a text together."""

    @property
    def name(self) -> str:
        """Who looks, for messages and explanations: `cohere/rerank-v3.5`."""
        ...

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score a text, in the order of the texts; higher is better. Raises RerankerError when it cannot."""
        ...


class Snapshot(Protocol):
    """A consistent view of a store: nothing another thread or process commits shows while it is open."""

    def meta(self, key: str) -> str | None: ...

    def embedder(self) -> EmbedderIdentity | None:
        """Return whose vectors the store holds."""
        ...

    def counts(self) -> Counts: ...

    def source_counts(self) -> Sequence[SourceCounts]:
        """Return how much comes from each source that has documents, by name."""
        ...

    def documents(
        self, source: SourceName | None = None, paths: Collection[str] | None = None
    ) -> Mapping[tuple[SourceName, str], StoredDocument]:
        """Return what is remembered of every document, or of those of a source or at some paths."""
        ...

    def cursor(self, source: SourceName, path: str) -> str | None:
        """Return what `append_document` kept with a document; None for those that are put as a whole."""
        ...

    def document_frequencies(self, terms: Sequence[Term], *, at_most: int) -> Sequence[int]:
        """Return in how many chunks each term occurs; counting stops at `at_most`."""
        ...

    def terms_beginning(self, prefix: str, *, lengths: range, limit: int) -> Sequence[str]:
        """Return indexed terms that begin so, in order, of these lengths; some may be of chunks that are gone."""
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
        """Return the `limit` chunks with the best BM25 among those that hold any of the terms, ties by chunk id.

        With `led_by`, a chunk must hold one of these to be found; its score is that of all the terms. Chunks in `also`
        that hold a term and lie in the scope are returned in any case, in their place.
        """
        ...

    def keyword_scores(self, terms: Sequence[Term], chunk_ids: Collection[int]) -> Mapping[int, float]:
        """Return the BM25 of those of the given chunks that hold any of the terms."""
        ...

    def vector_matches(self, vector: Vector, *, limit: int, scope: Scope) -> Sequence[Match]:
        """Return the chunks nearest to `vector`, highest cosine first, ties by chunk id."""
        ...

    def vector_scores(self, vector: Vector, chunk_ids: Collection[int]) -> Mapping[int, float]:
        """Return the exact cosine of those of the given chunks that have a vector."""
        ...

    def chunks(self, chunk_ids: Collection[int]) -> Mapping[int, StoredChunk]: ...

    def entries(self, ids: Collection[str] | None = None) -> Sequence[EntryChunk]:
        """Return the chunks of remembered entries, of all or of those with these ids, in order of path and line."""
        ...

    def messages(self, path: str, turns: Collection[int]) -> Sequence[SpokenLine]:
        """Return these messages of a conversation, in order; of one that is cut into pieces the first piece."""
        ...

    def newest_chunks(self, *, limit: int, scope: Scope) -> Sequence[int]:
        """Return chunks of the documents in the scope, the latest dated first, those without a date last."""
        ...

    def chunks_of(self, source: SourceName, path: str) -> Sequence[StoredChunk]:
        """Return the chunks of one document, in order of their lines."""
        ...

    def places(self, chunk_ids: Collection[int]) -> Mapping[int, ChunkPlace]:
        """Return where each chunk stands: in which document, in which message, and as one of how many parts."""
        ...

    def known_vectors(self, embedded_hashes: Collection[str]) -> Mapping[str, Vector]:
        """Return the stored vectors of chunks with these embedded hashes."""
        ...


class Rewrite(Protocol):
    """A document on its way to other chunks; as with `put_document`, those whose text stays only move."""

    def add(self, chunks: Sequence[PreparedChunk], vectors: Mapping[str, Vector]) -> None:
        """Hand over the next chunks, in order."""
        ...

    def finish(self, document: StoredDocument, cursor: str) -> None:
        """Say that these were all; chunks that were not handed over again are removed."""
        ...


class ReadableStore(Protocol):
    """What can be read of a store. Documents outside the scope it was lent for are not there."""

    @property
    def read_only(self) -> bool: ...

    @property
    def notes(self) -> Sequence[str]:
        """What every answer should say about it, such as a part that is missing; usually nothing."""
        ...

    def reading(self) -> AbstractContextManager[Snapshot]:
        """Open a snapshot; several threads may each have one, also while another thread writes."""
        ...

    def pending(self, limit: int, *, after: int = 0) -> Sequence[PendingChunk]:
        """Return chunks without a vector whose id is above `after`, in order of id."""
        ...

    def embedded_hashes(self) -> set[str]:
        """Return the hash of the embedded text of every chunk."""
        ...

    def verify(self) -> Sequence[str]:
        """Return what is out of step between documents, chunks, terms and vectors; empty means all is well."""
        ...

    def size_bytes(self) -> int: ...


class Store(ReadableStore, Protocol):
    """Keeps documents with their chunks, terms and vectors consistent. All SQL lives behind it."""

    def reading_within(self, scope: Scope) -> AbstractContextManager[Snapshot]:
        """Open a snapshot in which documents that a group may not see are not there, not even in counts."""
        ...

    def write_meta(self, values: Mapping[str, str]) -> None: ...

    def put_document(
        self, document: StoredDocument, chunks: Sequence[PreparedChunk], vectors: Mapping[str, Vector]
    ) -> None:
        """Replace one document in one transaction.

        Chunks whose embedded hash stays keep their identity and vector and only move. A new chunk takes its vector from
        `vectors` (by embedded hash) or becomes pending.
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
        """Let one document grow by chunks in one transaction; one that is not there yet begins.

        The cursor is kept with the document, for the next time.
        """
        ...

    def rewriting(self, source: SourceName, path: str) -> AbstractContextManager[Rewrite]:
        """Begin to replace one growing document in one transaction; an exception leaves it as it was."""
        ...

    def together(self) -> AbstractContextManager[None]:
        """Make one transaction of what this thread writes in the `with` block: many small ones take twice as long.

        An exception in it undoes all of it.
        """
        ...

    def touch_documents(self, documents: Iterable[StoredDocument]) -> None:
        """Update stamp, hash and date of documents whose text did not change."""
        ...

    def remove_documents(self, source: SourceName, paths: Collection[str]) -> None: ...

    def set_embedder(self, identity: EmbedderIdentity, quantization: Literal["bits", "int8"]) -> None:
        """Declare whose vectors come next. Raises IndexMismatchError when vectors of another identity are stored."""
        ...

    def put_vectors(self, vectors: Mapping[int, Vector]) -> None:
        """Store vectors by chunk id in one transaction; ids that are gone by now are left out."""
        ...

    def skip_vectors(self, chunk_ids: Collection[int]) -> None:
        """Mark chunks as keyword-only: the embedder does not support their script, so they are no longer pending."""
        ...

    def optimize(self) -> None:
        """Tidy up after a run (merge keyword segments, refit the quantiser); cheap when there is nothing to do."""
        ...

    def erase_deleted(self) -> None:
        """Leave no byte of removed documents in what is stored; raises IndexBusyError when readers forbid it."""
        ...

    def close(self) -> None: ...


class EmbeddingCache(Protocol):
    """Remembers vectors by embedding space and text hash, across rebuilds, renames and model switches."""

    def get_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]: ...

    def known(self, identity: EmbedderIdentity, hashes: Collection[str]) -> set[str]:
        """Return which of these texts have a vector here; looking counts as no use and writes nothing."""
        ...

    def put_many(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None: ...

    def keep_only(self, hashes: Collection[str]) -> int:
        """Forget the vectors of all other texts, in every embedding space; return how many there were."""
        ...

    def close(self) -> None: ...


class ManagedCache(EmbeddingCache, Protocol):
    """A cache that belongs to a memory: it counts, grows old and can be cleared."""

    max_entries: int
    notes: tuple[str, ...]  # what the reader should know, such as that it cannot be written

    def peek_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]:
        """Return what `get_many` would, without counting as use."""
        ...

    def prune(self, *, older_than_days: float) -> int:
        """Delete entries that were not used for that long; return how many."""
        ...

    def clear(self) -> int:
        """Delete every entry and all counts; return how many entries there were."""
        ...

    def stats(self) -> CacheStats:
        """Return how much the cache holds now."""
        ...
