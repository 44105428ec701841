"""What every vector driver must do, and that all of them agree."""

from __future__ import annotations

import numpy as np
import pytest

from notewell.store.sqlite import open_index
from notewell.store.sqlite.schema import VECTOR_DRIVERS
from notewell.store.sqlite.segments import EXACT_LIMIT
from notewell.testing.samples import document, with_terms
from notewell.types import EVERYTHING, Chunk, EmbedderIdentity, PreparedChunk, Scope

pytest.importorskip("sqlite_vec", reason="sqlite-vec is not installed, so there is nothing to compare")

DIMENSIONS = 96
SPACE = EmbedderIdentity("test", "topics", "k" * 64, DIMENSIONS)
MANY = EXACT_LIMIT + 1500  # enough for codes


def topic_vectors(count: int, seed: int = 0) -> np.ndarray:
    """Vectors like those of sentence encoders: topics, uneven spread, and a direction common to all."""
    random = np.random.default_rng(seed)
    spread = (1 + np.arange(DIMENSIONS)) ** -0.5
    topics = np.random.default_rng(99).normal(size=(60, DIMENSIONS)) * spread
    rows = topics[random.integers(0, 60, count)] + random.normal(size=(count, DIMENSIONS)) * spread + 0.3
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def chunks_named(names) -> list[PreparedChunk]:
    return [with_terms(Chunk(1, 1, name), name) for name in names]


def fill(store, vectors, *, sources=("memory",), per_document=100) -> None:
    """Put the vectors in documents, the sources in turn; chunk n + 1 gets vector n."""
    store.set_embedder(SPACE, "bits")
    for start in range(0, len(vectors), per_document):
        numbers = range(start, min(start + per_document, len(vectors)))
        chunks = chunks_named(f"chunk {number}" for number in numbers)
        given = {item.chunk.embedded_hash: vectors[number] for item, number in zip(chunks, numbers, strict=True)}
        source = sources[start // per_document % len(sources)]
        dated = ("2026-01-01", "2026-06-01", "2026-06-01", None)[start // per_document % 4]
        store.put_document(document(f"{start}.md", source=source, dated=dated), chunks, given)


def exact(vectors, query, limit, among=None) -> list[int]:
    """Return the ids of the nearest, by brute force over what is stored."""
    scores = np.round(vectors.astype(np.float16).astype(np.float64) @ query.astype(np.float64), 6)
    ids = np.arange(1, len(vectors) + 1)
    order = [int(ids[row]) for row in np.lexsort((ids, -scores))]
    return [chunk_id for chunk_id in order if among is None or chunk_id in among][:limit]


def ids(matches) -> list[int]:
    return [match.chunk_id for match in matches]


@pytest.fixture(params=VECTOR_DRIVERS)
def store(request, tmp_path):
    with_driver = open_index(tmp_path / "index.sqlite", create=True, read_only=False, vector_driver=request.param)
    yield with_driver
    with_driver.close()


@pytest.mark.parametrize("count", [1, 50, EXACT_LIMIT], ids=lambda count: f"{count} vectors")
def test_small_indexes_are_exact(store, count):
    vectors = topic_vectors(count)
    fill(store, vectors)
    with store.reading() as snapshot:
        for query in topic_vectors(5, seed=1):
            assert ids(snapshot.vector_matches(query, limit=200, scope=EVERYTHING)) == exact(vectors, query, 200)
    assert store.verify() == []


@pytest.mark.slow
@pytest.mark.parametrize("quantization", ["bits", "int8"])
def test_large_indexes_miss_next_to_nothing(store, quantization):
    vectors = topic_vectors(MANY)
    store.set_embedder(SPACE, quantization)
    fill(store, vectors)
    store.set_embedder(SPACE, quantization)
    store.optimize()
    hits, asked = 0, topic_vectors(20, seed=1)
    with store.reading() as snapshot:
        for query in asked:
            found = snapshot.vector_matches(query, limit=24, scope=EVERYTHING)
            hits += len(set(ids(found)) & set(exact(vectors, query, 24)))
            longer = snapshot.vector_matches(query, limit=200, scope=EVERYTHING)
            assert longer[:24] == found
    assert hits / (24 * len(asked)) >= 0.99
    assert store.verify() == []


def test_a_scope_is_searched_as_if_the_rest_were_not_there(store):
    vectors = topic_vectors(MANY)
    fill(store, vectors, sources=("memory", "memory", "sessions"))
    with store.reading() as snapshot:
        chunks = snapshot.chunks(range(1, MANY + 1))
        query = topic_vectors(1, seed=5)[0]
        first, last = chunks[1].dated, chunks[101].dated
        for scope, fits in (
            (Scope(sources=frozenset({"sessions"})), lambda chunk: chunk.source == "sessions"),
            (Scope(since=last), lambda chunk: chunk.dated == last),
            (Scope(since=last, undated=True), lambda chunk: chunk.dated in {last, None}),
            (
                Scope(sources=frozenset({"memory"}), until=first),
                lambda chunk: chunk.source == "memory" and chunk.dated == first,
            ),
        ):
            inside = {chunk_id for chunk_id, chunk in chunks.items() if fits(chunk)}
            assert 0 < len(inside) < MANY
            found = ids(snapshot.vector_matches(query, limit=24, scope=scope))
            assert len(set(found) & set(exact(vectors, query, 24, inside))) >= 23
            assert set(found) <= inside


def test_edits_and_removals_reach_the_codes(store):
    vectors = topic_vectors(MANY)
    fill(store, vectors)
    query = vectors[150]
    with store.reading() as snapshot:
        assert ids(snapshot.vector_matches(query, limit=1, scope=EVERYTHING)) == [151]
    store.remove_documents("memory", ["100.md"])
    with store.reading() as snapshot:
        gone = set(range(101, 201))
        assert not gone & set(ids(snapshot.vector_matches(query, limit=200, scope=EVERYTHING)))
    chunks = chunks_named(["brought back"])
    store.put_document(document("again.md"), chunks, {chunks[0].chunk.embedded_hash: query})
    with store.reading() as snapshot:
        best = snapshot.vector_matches(query, limit=1, scope=EVERYTHING)[0]
        assert snapshot.chunks([best.chunk_id])[best.chunk_id].text == "brought back"
    assert store.verify() == []


def test_an_old_snapshot_keeps_its_own_codes(store):
    vectors = topic_vectors(MANY)
    fill(store, vectors)
    query = vectors[150]
    with store.reading() as old:
        before = ids(old.vector_matches(query, limit=50, scope=EVERYTHING))
        store.remove_documents("memory", ["100.md"])
        with store.reading() as new:
            assert 151 not in ids(new.vector_matches(query, limit=50, scope=EVERYTHING))
        assert ids(old.vector_matches(query, limit=50, scope=EVERYTHING)) == before


def test_removing_everything_leaves_an_index_that_works(store):
    vectors = topic_vectors(MANY)
    fill(store, vectors)
    store.remove_documents("memory", [f"{start}.md" for start in range(0, MANY, 100)])
    with store.reading() as snapshot:
        assert list(snapshot.vector_matches(vectors[0], limit=5, scope=EVERYTHING)) == []
    fill(store, vectors[:50])
    with store.reading() as snapshot:
        assert snapshot.vector_matches(vectors[7], limit=1, scope=EVERYTHING)[0].score > 0.999
    assert store.verify() == []


@pytest.mark.parametrize("count", [40, MANY], ids=lambda count: f"{count} vectors")
def test_a_file_can_change_its_driver_and_answers_the_same(tmp_path, count):
    vectors = topic_vectors(count)
    queries = topic_vectors(5, seed=2)
    answers = []
    for driver in ("segments", "sqlite-vec", "segments"):
        store = open_index(tmp_path / "index.sqlite", create=True, read_only=False, vector_driver=driver)
        if not answers:
            fill(store, vectors, sources=("memory", "sessions"))
        with store.reading() as snapshot:
            answers.append([snapshot.vector_matches(query, limit=10, scope=EVERYTHING) for query in queries])
        assert store.verify() == []
        store.close()
    assert answers[0] == answers[1] == answers[2]


def test_read_only_a_file_keeps_the_driver_it_has(tmp_path):
    path = tmp_path / "index.sqlite"
    store = open_index(path, create=True, read_only=False, vector_driver="sqlite-vec")
    fill(store, topic_vectors(20))
    store.close()
    reader = open_index(path, create=False, read_only=True, vector_driver="segments")
    assert reader.vector_driver == "sqlite-vec"
    with reader.reading() as snapshot:
        assert len(snapshot.vector_matches(topic_vectors(1)[0], limit=5, scope=EVERYTHING)) == 5
    reader.close()


def test_the_mean_is_fitted_anew_when_the_index_has_grown(tmp_path):
    store = open_index(tmp_path / "index.sqlite", create=True, read_only=False)
    fill(store, topic_vectors(EXACT_LIMIT + 52))
    for start in range(10_000, 10_000 + 4 * EXACT_LIMIT, 1000):
        chunks = chunks_named(f"more {number}" for number in range(start, start + 1000))
        rows = -topic_vectors(1000, seed=start)  # another half of the space: the first mean fits them badly
        store.put_document(
            document(f"more {start}.md"),
            chunks,
            {item.chunk.embedded_hash: row for item, row in zip(chunks, rows, strict=True)},
        )

    def fitted_on() -> int:
        with store.reading() as snapshot:
            count: int = snapshot._db.value("SELECT fitted_on FROM vector_codec")
            return count

    before = fitted_on()
    store.optimize()
    assert before < fitted_on()
    assert store.verify() == []
    query = -topic_vectors(1000, seed=10_000)[3]
    with store.reading() as snapshot:
        assert snapshot.vector_matches(query, limit=1, scope=EVERYTHING)[0].score > 0.999
    store.close()
