"""Vectors of large tenants: codes in segments name the candidates, whatever was added and removed since."""

from __future__ import annotations

import numpy as np
import pytest

from notewell.store.postgres import open_store
from notewell.store.postgres.vectors import VectorTable
from notewell.testing.samples import DIMENSIONS, IDENTITY, chunks_of, document
from notewell.types import EVERYTHING, Scope
from tests.postgres_server import shared_database

pytestmark = pytest.mark.slow

BATCH = 300


@pytest.fixture
def store(tmp_path):
    opened = open_store(shared_database(), str(tmp_path), vectors=VectorTable(exact_limit=500, tail=200))
    opened.set_embedder(IDENTITY, "int8")
    yield opened
    opened.close()


def put(store, path, random, source="memory"):
    chunks = chunks_of(*(f"{path} {number}" for number in range(BATCH)))
    rows = random.normal(size=(BATCH, DIMENSIONS)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    vectors = {new.chunk.embedded_hash: row for new, row in zip(chunks, rows, strict=True)}
    store.put_document(document(path, source=source), chunks, vectors)


def expected(store, query, limit, scope=EVERYTHING):
    """The nearest by all rows."""
    with store.reading() as snapshot:
        chunks = snapshot.chunks(range(1, 100_000))
        inside = [key for key, chunk in chunks.items() if scope.sources is None or chunk.source in scope.sources]
        scores = snapshot.vector_scores(query, inside)
    return sorted(((-score, chunk_id) for chunk_id, score in scores.items()))[:limit]


def test_codes_find_what_the_rows_say_through_growth_and_removal(store):
    random = np.random.default_rng(7)
    query = random.normal(size=DIMENSIONS).astype(np.float32)
    for number in range(6):
        put(store, f"memory/{number}.md", random)
        store.optimize()
    put(store, "talk", random, source="sessions")  # newer than all segments
    store.remove_documents("memory", ["memory/1.md", "memory/4.md"])
    for _ in range(2):  # with codes of removed chunks, then without
        for scope in (EVERYTHING, Scope(sources=frozenset({"memory"})), Scope(sources=frozenset({"sessions"}))):
            with store.reading() as snapshot:
                found = snapshot.vector_matches(query, limit=24, scope=scope)
            assert [(-match.score, match.chunk_id) for match in found] == expected(store, query, 24, scope)
        assert store.verify() == []
        store.optimize()


def test_when_nearly_all_candidates_were_removed_more_are_read(store):
    random = np.random.default_rng(8)
    for number in range(4):
        put(store, f"memory/{number}.md", random)
    store.optimize()
    store.remove_documents("memory", ["memory/0.md", "memory/1.md"])
    query = random.normal(size=DIMENSIONS).astype(np.float32)
    with store.reading() as snapshot:
        found = snapshot.vector_matches(query, limit=200, scope=EVERYTHING)
    assert [(-match.score, match.chunk_id) for match in found] == expected(store, query, 200)


def test_a_tenant_that_shrinks_needs_no_codes(store):
    random = np.random.default_rng(9)
    for number in range(3):
        put(store, f"memory/{number}.md", random)
    store.optimize()
    store.remove_documents("memory", ["memory/0.md", "memory/1.md"])
    store.optimize()
    query = random.normal(size=DIMENSIONS).astype(np.float32)
    with store.reading() as snapshot:
        found = snapshot.vector_matches(query, limit=9, scope=EVERYTHING)
    assert [(-match.score, match.chunk_id) for match in found] == expected(store, query, 9)
    assert store.verify() == []
