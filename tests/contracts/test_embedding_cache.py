"""What every `EmbeddingCache` must do, and what the SQLite one does on bad days."""

from __future__ import annotations

import os
import subprocess
import sys

import apsw
import numpy as np
import pytest

from notewell.store.cache_use import CacheUse
from notewell.store.sqlite import SqliteEmbeddingCache, open_index
from notewell.testing import CacheContract
from notewell.testing.samples import DIMENSIONS, IDENTITY, chunks_of, document, vector_for
from notewell.types import EmbedderIdentity, hash_text
from tests.store.other_user import run_as_other_user

DAY_S = 86_400


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def named(*texts) -> dict[str, np.ndarray]:
    return {hash_text(text): vector_for(text) for text in texts}


class TestSqliteCache(CacheContract):
    """The cache that notewell keeps beside its index."""

    def open_cache(self, folder):
        return SqliteEmbeddingCache(folder / "cache.sqlite", max_entries=100)


@pytest.mark.slow
class TestPostgresCache(CacheContract):
    """The cache of a tenant in a PostgreSQL database."""

    def open_cache(self, folder):
        pytest.importorskip("psycopg", reason="psycopg is not installed")
        from notewell.store.postgres import Connections, FixedId, PostgresEmbeddingCache, Tenant
        from tests.postgres_server import shared_database

        tenant = Tenant(Connections(shared_database()), name=str(folder), agent="main", workspace_id=FixedId("test"))
        return PostgresEmbeddingCache(tenant, max_entries=100)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(tmp_path, clock):
    opened = SqliteEmbeddingCache(tmp_path / "cache.sqlite", max_entries=100, clock=clock)
    yield opened
    opened.close()


def test_how_many_vectors_did_not_have_to_be_made_is_remembered(tmp_path):
    path = tmp_path / "cache.sqlite"
    cache = SqliteEmbeddingCache(path, max_entries=10)
    assert cache.stats().hit_rate is None
    cache.put_many(IDENTITY, named("one"))
    cache.get_many(IDENTITY, [*named("one", "two")])
    cache.get_many(IDENTITY, [*named("one")])
    assert (cache.stats().hits, cache.stats().misses) == (2, 1)
    cache.close()
    again = SqliteEmbeddingCache(path, max_entries=10)
    again.get_many(IDENTITY, [*named("one")])
    assert (again.stats().hits, again.stats().misses, again.stats().hit_rate) == (3, 1, 0.75)
    again.close()
    third = SqliteEmbeddingCache(path, max_entries=10)
    assert (third.stats().hits, third.stats().misses) == (3, 1)
    third.clear()
    assert third.stats().hit_rate is None
    third.close()
    fourth = SqliteEmbeddingCache(path, max_entries=10)
    assert fourth.stats().hit_rate is None
    fourth.close()


def test_looking_is_no_use(tmp_path, clock):
    path = tmp_path / "cache.sqlite"
    cache = SqliteEmbeddingCache(path, max_entries=10, clock=clock)
    assert cache.known(IDENTITY, [*named("one")]) == set()
    assert not path.exists()
    cache.put_many(IDENTITY, named("one", "two"))
    clock.now += 40 * DAY_S
    assert cache.known(IDENTITY, [*named("one", "three")]) == {hash_text("one")}
    assert cache.known(EmbedderIdentity("else", "m", "k", DIMENSIONS), [*named("one")]) == set()
    assert cache.known(IDENTITY, []) == set()
    assert cache.stats().hits == 0
    assert cache.prune(older_than_days=30) == 2
    cache.close()


VERSION_1 = """
CREATE TABLE spaces (
  id INTEGER PRIMARY KEY, provider TEXT NOT NULL, model TEXT NOT NULL, key TEXT NOT NULL, dimensions INTEGER NOT NULL,
  UNIQUE (provider, model, key, dimensions)
);
CREATE TABLE entries (
  id INTEGER PRIMARY KEY, space_id INTEGER NOT NULL, text_hash BLOB NOT NULL, vector BLOB NOT NULL,
  used_at INTEGER NOT NULL, UNIQUE (space_id, text_hash)
);
CREATE INDEX entries_by_use ON entries (used_at);
PRAGMA application_id = 0x72636C63;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
"""


@pytest.fixture
def older_cache(tmp_path):
    """A cache as the first release wrote it."""
    path = tmp_path / "state" / "cache.sqlite"
    path.parent.mkdir()
    database = apsw.Connection(str(path))
    database.execute(VERSION_1)
    space = [1, IDENTITY.provider, IDENTITY.model, IDENTITY.key, DIMENSIONS]
    database.execute("INSERT INTO spaces VALUES (?, ?, ?, ?, ?)", space)
    entry = [1, bytes.fromhex(hash_text("one")), vector_for("one").astype("<f2").tobytes(), 1_800_000_000]
    database.execute("INSERT INTO entries (space_id, text_hash, vector, used_at) VALUES (?, ?, ?, ?)", entry)
    database.close()
    return path


def test_a_cache_of_the_first_release_is_used_on(older_cache):
    for expected in (1, 2):
        cache = SqliteEmbeddingCache(older_cache, max_entries=10)
        assert set(cache.get_many(IDENTITY, [*named("one", "two")])) == set(named("one"))
        assert (cache.stats().hits, cache.stats().misses, cache.notes) == (expected, 0, ())
        cache.close()


@pytest.mark.slow
def test_a_cache_of_the_first_release_that_cannot_be_written(older_cache):
    script = (
        "import sys; from pathlib import Path; from notewell.store.sqlite import SqliteEmbeddingCache as Cache;"
        "from notewell.types import EmbedderIdentity as Identity, hash_text;"
        "cache = Cache(Path(sys.argv[1]) / 'cache.sqlite', max_entries=5);"
        "print(len(cache.get_many(Identity('test', 'directions', 'k' * 64, 32), [hash_text('one')])));"
        "print(cache.stats().hits, cache.notes); cache.close()"
    )
    assert run_as_other_user(script, older_cache.parent).split("\n")[:2] == ["1", "1 ()"]


def test_nothing_asked_nothing_given(cache):
    assert cache.get_many(IDENTITY, []) == {}
    cache.put_many(IDENTITY, {})
    assert not cache.path.exists()
    assert cache.stats().entries == 0


def test_the_cache_gives_what_the_store_holds(cache, tmp_path):
    store = open_index(tmp_path / "index.sqlite", create=True, read_only=False)
    store.set_embedder(IDENTITY, "bits")
    chunks = chunks_of(*(f"text {number}" for number in range(40)))
    fresh = {item.chunk.embedded_hash: vector_for(item.chunk.text) * np.float32(1.0004) for item in chunks}
    cache.put_many(IDENTITY, fresh)
    cached = cache.get_many(IDENTITY, [*fresh])
    store.put_document(document("fresh.md"), chunks, fresh)
    with store.reading() as snapshot:
        stored = snapshot.known_vectors([*fresh])
    store.remove_documents("memory", ["fresh.md"])
    store.put_document(document("cached.md"), chunks, cached)
    with store.reading() as snapshot:
        restored = snapshot.known_vectors([*fresh])
    store.close()
    for digest in fresh:
        assert np.array_equal(cached[digest], stored[digest])
        assert np.array_equal(cached[digest], restored[digest])


def test_the_least_recently_used_go_first(tmp_path, clock):
    cache = SqliteEmbeddingCache(tmp_path / "cache.sqlite", max_entries=3, clock=clock)
    for text in ("old", "used", "new"):
        cache.put_many(IDENTITY, named(text))
        clock.now += 2 * DAY_S
    cache.get_many(IDENTITY, [*named("old")])
    cache.put_many(IDENTITY, named("newest"))
    assert set(cache.get_many(IDENTITY, [*named("old", "used", "new", "newest")])) == set(named("old", "new", "newest"))
    assert cache.stats().entries == 3
    cache.close()


def test_a_full_cache_is_not_counted_for_every_new_vector():
    use, entries, counted = CacheUse(max_entries=640, max_age_s=0, clock=Clock()), 0, []

    def count():
        counted.append(entries)
        return entries

    for _ in range(2_000):
        entries += 1
        entries -= use.excess(1, count)
        assert entries <= 640
    assert entries >= 630
    assert len(counted) < 2_000 / 8


def test_pruning_forgets_what_was_not_used(cache, clock):
    cache.put_many(IDENTITY, named("old", "used"))
    clock.now += 20 * DAY_S
    cache.get_many(IDENTITY, [*named("used")])
    clock.now += 20 * DAY_S
    assert cache.prune(older_than_days=30) == 1
    assert set(cache.get_many(IDENTITY, [*named("old", "used")])) == set(named("used"))


def test_clearing_forgets_everything(cache):
    cache.put_many(IDENTITY, named("one", "two"))
    assert cache.clear() == 2
    assert cache.get_many(IDENTITY, [*named("one")]) == {}
    assert cache.stats().entries == 0
    assert cache.stats().oldest_use is None


def test_statistics(cache, clock):
    cache.put_many(IDENTITY, named("one", "two"))
    stats = cache.stats()
    assert (stats.entries, stats.max_entries) == (2, 100)
    assert stats.bytes > 2 * DIMENSIONS * 2
    assert stats.oldest_use is not None
    assert stats.oldest_use.timestamp() == clock.now


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"this is not a database at all, but long enough to look at" * 100, id="not a database"),
        pytest.param(b"SQLite format 3\0" + b"\xff" * 5000, id="a corrupt header"),
    ],
)
def test_a_corrupt_cache_is_set_aside_and_a_new_one_begun(tmp_path, content):
    path = tmp_path / "cache.sqlite"
    path.write_bytes(content)
    cache = SqliteEmbeddingCache(path, max_entries=10)
    assert cache.get_many(IDENTITY, [*named("one")]) == {}
    cache.put_many(IDENTITY, named("one"))
    assert set(cache.get_many(IDENTITY, [*named("one")])) == set(named("one"))
    assert len(cache.notes) == 1
    (kept,) = tmp_path.glob("cache.sqlite.corrupt-*")
    assert kept.read_bytes() == content
    assert kept.name in cache.notes[0]
    cache.close()


def test_someone_elses_database_is_not_written_into(tmp_path):
    index = open_index(tmp_path / "cache.sqlite", create=True, read_only=False)
    index.close()
    cache = SqliteEmbeddingCache(tmp_path / "cache.sqlite", max_entries=10)
    cache.put_many(IDENTITY, named("one"))
    assert len(cache.notes) == 1
    (kept,) = tmp_path.glob("cache.sqlite.corrupt-*")
    again = open_index(kept, create=False, read_only=False)
    assert again.verify() == []
    again.close()
    cache.close()


READ_ONLY_USE = """
import sys
from pathlib import Path
from notewell.store.sqlite import SqliteEmbeddingCache
from notewell.types import EmbedderIdentity, hash_text
import numpy as np
folder = Path(sys.argv[1])
identity = EmbedderIdentity("test", "directions", "k" * 64, 32)
cache = SqliteEmbeddingCache(folder / "cache.sqlite", max_entries=10)
found = cache.get_many(identity, [hash_text("one")])
cache.put_many(identity, {hash_text("two"): np.ones(32, np.float32)})
print(len(found), len(cache.notes), "read-only" in cache.notes[0], len(cache.get_many(identity, [hash_text("two")])))
missing = SqliteEmbeddingCache(folder / "none.sqlite", max_entries=10)
missing.put_many(identity, {hash_text("two"): np.ones(32, np.float32)})
print(len(missing.get_many(identity, [hash_text("two")])), len(missing.notes))
"""


@pytest.mark.slow
def test_a_read_only_cache_gives_and_does_not_take(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    cache = SqliteEmbeddingCache(folder / "cache.sqlite", max_entries=10)
    cache.put_many(IDENTITY, named("one"))
    cache.close()
    output = run_as_other_user(READ_ONLY_USE, folder)
    assert output.split() == ["1", "1", "True", "0", "0", "1"]


@pytest.mark.slow
def test_looking_costs_no_numpy_when_nothing_is_there(tmp_path):
    script = (
        "import sys; from pathlib import Path; from notewell.store.sqlite import SqliteEmbeddingCache as Cache;"
        "from notewell.types import EmbedderIdentity as Identity;"
        f"cache = Cache(Path({os.fspath(tmp_path)!r}) / 'c.sqlite', max_entries=5); cache.stats();"
        "cache.get_many(Identity('a', 'b', 'c', 4), ['ab' * 32]); print('numpy' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
