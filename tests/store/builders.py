"""Small values for store tests: documents, prepared chunks, and vectors that anyone can compute by hand."""

from __future__ import annotations

import hashlib
from datetime import date

import numpy as np

from notewell.types import Chunk, EmbedderIdentity, FileStamp, PreparedChunk, StoredDocument, Term, hash_text

DIMENSIONS = 32
IDENTITY = EmbedderIdentity("test", "directions", "k" * 64, DIMENSIONS)


def document(path="memory/a.md", *, source="memory", dated=None, size=1, text="") -> StoredDocument:
    return StoredDocument(
        FileStamp(source, path, size=size, mtime_ns=size * 1000),
        hash_text(text or path),
        date.fromisoformat(dated) if dated else None,
    )


def prepared(text, *, context="", line=1, path_terms="", turn=0, parts=1, label=None) -> PreparedChunk:
    chunk = Chunk(line, line + text.count("\n"), text, context, turn, label)
    return PreparedChunk(chunk, " ".join(text.lower().split()), f"{context} {path_terms}".lower().strip(), parts)


def chunks_of(*texts, context="") -> list[PreparedChunk]:
    return [prepared(text, line=10 * number + 1, context=context) for number, text in enumerate(texts)]


def terms(*words) -> list[Term]:
    return [Term((word,)) for word in words]


def vector_for(text) -> np.ndarray:
    """A direction that depends on nothing but the text."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).normal(size=DIMENSIONS).astype(np.float32)
    return vector / np.linalg.norm(vector)


def vectors_of(chunks) -> dict[str, np.ndarray]:
    return {item.chunk.embedded_hash: vector_for(item.chunk.text) for item in chunks}


def embed_pending(store) -> int:
    """Give every pending chunk its vector; return how many there were."""
    done = 0
    while waiting := store.pending(limit=500):
        store.put_vectors({chunk.id: vector_for(chunk.embedded_text) for chunk in waiting})
        done += len(waiting)
    return done


def ids_by_text(store) -> dict[str, int]:
    with store.reading() as snapshot:
        found = snapshot.chunks(range(1, 100_000))
    return {chunk.text: chunk_id for chunk_id, chunk in found.items()}
