"""What the store suites work with: a store, documents, prepared chunks, and vectors that anyone can compute by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from notewell.types import (
    Chunk,
    EmbedderIdentity,
    EntryLabel,
    FileStamp,
    PreparedChunk,
    SourceName,
    StoredDocument,
    Term,
    hash_text,
)

if TYPE_CHECKING:
    from notewell.protocols import Store, Vector

    OpenStore = Callable[..., Store]

DIMENSIONS = 32
IDENTITY = EmbedderIdentity("test", "directions", "k" * 64, DIMENSIONS)


def document(
    path: str = "memory/a.md",
    *,
    source: SourceName = "memory",
    dated: str | None = None,
    size: int = 1,
    text: str = "",
) -> StoredDocument:
    """Return a document; its hash comes from the text, or else from the path."""
    return StoredDocument(
        FileStamp(source, path, size=size, mtime_ns=size * 1000),
        hash_text(text or path),
        date.fromisoformat(dated) if dated else None,
    )


def prepared(
    text: str,
    *,
    context: str = "",
    line: int = 1,
    path_terms: str = "",
    turn: int = 0,
    parts: int = 1,
    label: EntryLabel | None = None,
) -> PreparedChunk:
    """Return a chunk whose terms are its words in lower case."""
    chunk = Chunk(line, line + text.count("\n"), text, context, turn, label)
    return with_terms(chunk, " ".join(text.lower().split()), f"{context} {path_terms}".lower().strip(), parts)


def with_terms(chunk: Chunk, text_terms: str, context_terms: str = "", parts: int = 1) -> PreparedChunk:
    """Return a chunk with these terms, whatever it says."""
    return PreparedChunk(chunk, lambda: (text_terms, context_terms), parts)


def chunks_of(*texts: str, context: str = "") -> list[PreparedChunk]:
    """Return chunks ten lines apart."""
    return [prepared(text, line=10 * number + 1, context=context) for number, text in enumerate(texts)]


def terms(*words: str) -> list[Term]:
    """Return one term a word."""
    return [Term((word,)) for word in words]


def vector_for(text: str) -> Vector:
    """A direction that depends on nothing but the text."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).normal(size=DIMENSIONS).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def vectors_of(chunks: Iterable[PreparedChunk]) -> dict[str, Vector]:
    """Return the vectors of chunks by their hashes."""
    return {item.chunk.embedded_hash: vector_for(item.chunk.text) for item in chunks}


def embed_pending(store: Store) -> int:
    """Give every pending chunk its vector; return how many there were."""
    done = 0
    while waiting := store.pending(limit=500):
        store.put_vectors({chunk.id: vector_for(chunk.embedded_text) for chunk in waiting})
        done += len(waiting)
    return done


def ids_by_text(store: Store) -> dict[str, int]:
    """Return the ids of all chunks by their texts."""
    with store.reading() as snapshot:
        found = snapshot.chunks(range(1, 100_000))
    return {chunk.text: chunk_id for chunk_id, chunk in found.items()}


# --- the store of a test -------------------------------------------------------------------------


class StoreFixtures:
    """A store in a folder of the test."""

    def create_store(self, folder: Path) -> Store:
        """Return your store with its files in `folder`, made if they are not there yet; it is closed afterwards."""
        raise NotImplementedError

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[OpenStore]:
        """Open the store of this test, as often as it is called."""
        opened = []

        def open_in(name: str | Path = ".") -> Store:
            folder = tmp_path / name
            folder.mkdir(exist_ok=True)
            opened.append(self.create_store(folder))
            return opened[-1]

        yield open_in
        for store in opened:
            store.close()

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Store:
        """Return an empty store."""
        return open_store()
