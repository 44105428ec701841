"""The contract of stores, run against every vector driver, and what holds for any token and any history."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notewell.testing import StoreContract
from notewell.testing.samples import (
    IDENTITY,
    document,
    embed_pending,
    prepared,
    terms,
    vector_for,
    vectors_of,
    with_terms,
)
from notewell.testing.store_search import found
from notewell.types import EVERYTHING, Chunk

from .conftest import needs_sqlite_vec, postgres, postgres_segments, sqlite_segments, sqlite_vec


class TestSegments(StoreContract):
    """Our own vector index."""

    create_store = staticmethod(sqlite_segments)


@needs_sqlite_vec
class TestSqliteVec(StoreContract):
    """The extension sqlite-vec."""

    create_store = staticmethod(sqlite_vec)


@pytest.mark.slow
class TestPostgres(StoreContract):
    """One tenant of a PostgreSQL database."""

    create_store = staticmethod(postgres)


@pytest.mark.slow
class TestPostgresSegments(StoreContract):
    """A tenant of PostgreSQL with codes for its vectors, as large ones have."""

    create_store = staticmethod(postgres_segments)


# --- any token ---------------------------------------------------------------------------------

TOKENS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tokens=st.lists(TOKENS, min_size=1, max_size=12, unique=True))
def test_a_token_is_found_by_exactly_that_token(store, tokens):
    chunks = [with_terms(Chunk(1, 1, repr(token)), token) for token in tokens]
    store.put_document(document(), chunks, {})
    for token in tokens:
        assert found(store, token) == [repr(token)]


# --- any history gives the same answers as a fresh store ---------------------------------------

WORDS = ["tea", "milk", "kettle", "printer", "wifi"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), max_size=4)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "put", "remove", "embed", "optimize"]), st.sampled_from("abc"), TEXTS),
    max_size=14,
)


def messages(texts):
    return [
        prepared(text, line=10 * number + 1, turn=number + 1, parts=len(texts)) for number, text in enumerate(texts)
    ]


def answers(store):
    """Everything a reader can learn, without ids."""
    with store.reading() as snapshot:
        chunks = snapshot.chunks(range(1, 1000))
        keyword = snapshot.keyword_matches(terms(*WORDS), limit=99, scope=EVERYTHING)
        near = snapshot.vector_matches(vector_for("tea"), limit=99, scope=EVERYTHING)
        place = {
            key: (chunk.path, chunk.first_line, chunk.turn, chunk.parts, chunk.text) for key, chunk in chunks.items()
        }
        return {
            "documents": snapshot.documents(),
            "counts": snapshot.counts(),
            "chunks": sorted(place.values()),
            "keyword": sorted((place[match.chunk_id], round(match.score, 9)) for match in keyword),
            "near": sorted((place[match.chunk_id], match.score) for match in near),
            "frequencies": snapshot.document_frequencies(terms(*WORDS), at_most=99),
        }


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_history_equals_a_fresh_store(open_store, steps, tmp_path_factory):
    folder = tmp_path_factory.mktemp("history").resolve()
    worn, fresh = open_store(folder / "worn"), open_store(folder / "fresh")
    for store in (worn, fresh):
        store.set_embedder(IDENTITY, "bits")
    current = {}
    for action, name, texts in steps:
        path = f"memory/{name}.md"
        if action == "put":
            worn.put_document(document(path), messages(texts), {})
            current[path] = texts
        elif action == "remove":
            worn.remove_documents("memory", [path])
            current.pop(path, None)
        elif action == "embed":
            embed_pending(worn)
        else:
            worn.optimize()
    embed_pending(worn)
    for path, texts in current.items():
        chunks = messages(texts)
        fresh.put_document(document(path), chunks, vectors_of(chunks))
    assert worn.verify() == []
    assert answers(worn) == answers(fresh)
    worn.close()
    fresh.close()
