"""What an index holds, as values that two indexes of the same files must agree on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from notewell import Memory
from notewell.embedding.hashing import HashingEmbedder

MOST_CHUNK_IDS = 5_000  # more than any test makes, deleted ones counted
PROBE = "a b c d e f g h note subject harbour 1 2 3 4 5 6 7 8 9"  # shares words with everything the tests write

HALF_PRECISION = 0.005  # vectors are kept as 16-bit floats: 11 bits, times the error of a sum of 384


class IndexedChunk(NamedTuple):
    """A chunk without its number, which depends on the order of the work."""

    path: str
    first_line: int
    last_line: int
    text: str
    context: str
    turn: int
    parts: int
    has_vector: bool


def contents_of(memory: Memory) -> set[IndexedChunk]:
    """Return every chunk of an index made with the hashing embedder.

    Fails on two chunks in the same place with the same text, and on a vector that is not that of its text.
    """
    embedder = HashingEmbedder()
    probe = embedder.embed_query(PROBE)
    with memory._components.index.use() as store:
        assert store is not None, "nothing is indexed"
        with store.reading() as snapshot:
            chunks = snapshot.chunks(range(1, MOST_CHUNK_IDS))
            cosines = snapshot.vector_scores(probe, list(chunks)) if snapshot.embedder() else {}
            counts = snapshot.counts()
    listed = [
        IndexedChunk(c.path, c.first_line, c.last_line, c.text, c.context, c.turn, c.parts, chunk_id in cosines)
        for chunk_id, c in chunks.items()
    ]
    found = set(listed)
    assert len(found) == len(listed) == counts.chunks
    embedded = [chunks[chunk_id] for chunk_id in cosines]
    texts = [f"{chunk.context}\n{chunk.text}" if chunk.context else chunk.text for chunk in embedded]
    expected = embedder.embed_documents(texts) @ probe
    for chunk, wanted in zip(embedded, expected, strict=True):
        assert abs(cosines[chunk.id] - wanted) < HALF_PRECISION, f"{chunk.path}: the vector of another text"
    return found


def fresh_contents(workspace: Path, state: Path) -> set[IndexedChunk]:
    """Return what a new index of the same files holds; `state` must not exist yet."""
    assert not state.exists()
    with Memory.open(workspace, provider="hashing", store__path=str(state)) as memory:
        report = memory.index()
        assert (report.pending, report.complete) == (0, True)
        return contents_of(memory)


def faults_of(memory: Memory) -> list[str]:
    """Return what is out of step in the index; empty when nothing has been indexed yet."""
    with memory._components.index.use() as store:
        return [] if store is None else list(store.verify())
