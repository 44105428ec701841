"""A whole life of an index without vectors, for the test that it needs no NumPy."""

from __future__ import annotations

from pathlib import Path

from notewell.store.sqlite import open_index
from notewell.types import EVERYTHING, Chunk, EmbedderIdentity, FileStamp, PreparedChunk, StoredDocument, Term


def use(path: Path) -> None:
    store = open_index(path, create=True, read_only=False)
    store.set_embedder(EmbedderIdentity("test", "model", "key", 8), "bits")
    document = StoredDocument(FileStamp("memory", "a.md", 1, 1), "ab")
    store.put_document(document, [PreparedChunk(Chunk(1, 1, "one"), lambda: ("one", ""))], {})
    store.put_document(document, [PreparedChunk(Chunk(1, 1, "two"), lambda: ("two", ""))], {})
    with store.reading() as snapshot:
        assert len(snapshot.keyword_matches([Term(("two",))], limit=5, scope=EVERYTHING)) == 1
        assert len(snapshot.chunks([1, 2])) == 1
        assert snapshot.known_vectors(["ab" * 32]) == {}
    assert len(store.pending(5)) == 1
    store.optimize()
    assert store.verify() == []
    store.remove_documents("memory", ["a.md"])
    store.close()
