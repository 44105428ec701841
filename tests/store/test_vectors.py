"""The cache of exact vectors: what it returns is what the file holds, whatever was asked before."""

import apsw
import numpy as np
import pytest

from notewell.store import vectors
from notewell.store.sqlite.connection import connect
from notewell.store.sqlite.vector_search import read_rows
from notewell.store.vectors import RowCache, pack

DIMENSIONS = 8


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "vectors.sqlite"
    apsw.Connection(str(path)).execute(
        "CREATE TABLE totals (vector_generation INTEGER); INSERT INTO totals VALUES (1);"
        "CREATE TABLE vectors (chunk_id INTEGER PRIMARY KEY, embedding BLOB NOT NULL)"
    )
    database = connect(path, read_only=False)
    yield database
    database.close()


def put(db, *chunk_ids, seed=0):
    rows = np.random.default_rng(seed).normal(size=(len(chunk_ids), DIMENSIONS)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    db.run_many("INSERT OR REPLACE INTO vectors VALUES (?, ?)", zip(chunk_ids, pack(rows), strict=True))
    db.rows("UPDATE totals SET vector_generation = vector_generation + 1")


def by_id(cache, db, chunk_ids):
    ids, rows = cache.rows(
        chunk_ids,
        DIMENSIONS,
        generation=db.value("SELECT vector_generation FROM totals"),
        read=lambda missing: read_rows(db, missing, DIMENSIONS),
    )
    return {int(chunk_id): row.tolist() for chunk_id, row in zip(ids, rows, strict=True)}


def test_it_gives_what_the_file_holds_also_the_second_time(db):
    put(db, 1, 2, 3, 4)
    fresh = by_id(RowCache(), db, [1, 2, 3, 4])
    cache = RowCache()
    assert by_id(cache, db, [2, 4]) == {key: fresh[key] for key in (2, 4)}
    assert by_id(cache, db, [4, 3, 2, 99]) == {key: fresh[key] for key in (2, 3, 4)}
    assert by_id(cache, db, []) == {}


def test_a_change_of_vectors_is_seen(db):
    put(db, 1, 2)
    cache = RowCache()
    before = by_id(cache, db, [1, 2])
    put(db, 2, seed=7)
    after = by_id(cache, db, [1, 2])
    assert after[1] == before[1]
    assert after[2] != before[2]
    db.rows("DELETE FROM vectors WHERE chunk_id = 1")
    db.rows("UPDATE totals SET vector_generation = vector_generation + 1")
    assert by_id(cache, db, [1, 2]) == {2: after[2]}


def test_an_older_snapshot_reads_its_own_rows(db):
    put(db, 1)
    reader = connect(db.path, read_only=True)
    db.rows("PRAGMA journal_mode = WAL")
    reader.rows("BEGIN")
    cache = RowCache()
    before = by_id(cache, reader, [1])
    put(db, 1, seed=7)
    assert by_id(cache, db, [1]) != before
    assert by_id(cache, reader, [1]) == before
    reader.rows("ROLLBACK")
    reader.close()


def test_when_it_is_full_it_starts_over(db, monkeypatch):
    monkeypatch.setattr(vectors, "_CACHE_BYTES", 4 * DIMENSIONS * 3)  # three rows
    put(db, *range(1, 9))
    fresh = by_id(RowCache(), db, range(1, 9))
    cache = RowCache()
    for asked in ([1, 2], [3, 4], [4, 1], [5, 6, 7, 8], [2, 8]):
        assert by_id(cache, db, asked) == {key: fresh[key] for key in asked}
