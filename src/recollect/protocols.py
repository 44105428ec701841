"""The seams: what a source of documents, an embedder, a store and a vector index must be able to do.

Every protocol has a contract suite in `tests/contracts/` that runs against each implementation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol

from recollect.types import (
    Counts,
    Document,
    EmbedderIdentity,
    FileStamp,
    Listing,
    Match,
    PendingChunk,
    PreparedChunk,
    Scope,
    SourceName,
    StoredChunk,
    StoredDocument,
    Term,
)

if TYPE_CHECKING:  # NumPy costs 0.1 s to import: keyword search must not pay for it
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

    def exists(self, path: str) -> bool:
        """Say whether the path still names a file of this source."""
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
        """Say whether the model was trained on the writing of `text`; if not, its opinion of it is noise."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix: ...

    def embed_query(self, text: str) -> Vector: ...

    def close(self) -> None: ...


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

    def documents(
        self, source: SourceName | None = None, paths: Collection[str] | None = None
    ) -> Mapping[tuple[SourceName, str], StoredDocument]:
        """Return what is remembered of every document, or of those of a source or at some paths."""
        ...

    def document_frequencies(self, terms: Sequence[Term], *, at_most: int) -> Sequence[int]:
        """Return in how many chunks each term occurs; counting stops at `at_most`."""
        ...

    def terms_beginning(self, prefix: str, *, lengths: range, limit: int) -> Sequence[str]:
        """Return indexed terms that begin so, in order, of these lengths; some may be of chunks that are gone."""
        ...

    def keyword_matches(
        self, terms: Sequence[Term], *, limit: int, scope: Scope, also: Collection[int] = ()
    ) -> Sequence[Match]:
        """Return the `limit` chunks with the best BM25 among those that hold any of the terms, ties by chunk id.

        Chunks in `also` that hold a term and lie in the scope are returned in any case, in their place.
        """
        ...

    def vector_matches(self, vector: Vector, *, limit: int, scope: Scope) -> Sequence[Match]:
        """Return the chunks nearest to `vector`, highest cosine first, ties by chunk id."""
        ...

    def vector_scores(self, vector: Vector, chunk_ids: Collection[int]) -> Mapping[int, float]:
        """Return the exact cosine of those of the given chunks that have a vector."""
        ...

    def chunks(self, chunk_ids: Collection[int]) -> Mapping[int, StoredChunk]: ...

    def term_counts(self, chunk_ids: Collection[int]) -> Mapping[int, int]:
        """Return how many terms the text of each chunk has."""
        ...

    def known_vectors(self, embedded_hashes: Collection[str]) -> Mapping[str, Vector]:
        """Return the stored vectors of chunks with these embedded hashes."""
        ...


class Store(Protocol):
    """Keeps documents, their chunks, terms and vectors in step. All SQL lives behind it."""

    @property
    def read_only(self) -> bool: ...

    def reading(self) -> AbstractContextManager[Snapshot]:
        """Open a snapshot; several threads may each have one, also while another thread writes."""
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

    def touch_documents(self, documents: Iterable[StoredDocument]) -> None:
        """Update stamp, hash and date of documents whose text did not change."""
        ...

    def remove_documents(self, source: SourceName, paths: Collection[str]) -> None: ...

    def set_embedder(self, identity: EmbedderIdentity, quantization: Literal["bits", "int8"]) -> None:
        """Declare whose vectors come next. Raises IndexMismatchError when vectors of another identity are stored."""
        ...

    def pending(self, limit: int, *, after: int = 0) -> Sequence[PendingChunk]:
        """Return chunks without a vector whose id is above `after`, in order of id."""
        ...

    def put_vectors(self, vectors: Mapping[int, Vector]) -> None:
        """Store vectors by chunk id in one transaction; ids that are gone by now are left out."""
        ...

    def skip_vectors(self, chunk_ids: Collection[int]) -> None:
        """Let these chunks wait no longer: the embedder does not know their writing, so words alone find them."""
        ...

    def optimize(self) -> None:
        """Tidy up after a run (merge keyword segments, refit the quantiser); cheap when there is nothing to do."""
        ...

    def verify(self) -> Sequence[str]:
        """Return what is out of step between documents, chunks, terms and vectors; empty means all is well."""
        ...

    def size_bytes(self) -> int: ...

    def close(self) -> None: ...


class EmbeddingCache(Protocol):
    """Remembers vectors by embedding space and text hash, across rebuilds, renames and model switches."""

    def get_many(self, identity: EmbedderIdentity, hashes: Collection[str]) -> Mapping[str, Vector]: ...

    def put_many(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None: ...

    def close(self) -> None: ...
