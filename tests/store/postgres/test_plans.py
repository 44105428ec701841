"""A search or an edit reads about what it needs, also where the server has not counted the rows of the tenant."""

from __future__ import annotations

import random
import time

import pytest

from notewell import Memory
from notewell.store.postgres import open_store
from notewell.store.postgres.store import _ROW_BYTES
from notewell.testing.samples import chunks_of, document
from tests.postgres_server import own_server

pytestmark = pytest.mark.slow

NOTES, SECTIONS = 120, 10
SEARCHES = EDITS = 20  # so many that what is read once does not count
_READ = (
    "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = ANY(%(tables)s))"
    " + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = ANY(%(tables)s))"
)
# All vectors are compared, and all documents looked at for what a scope excludes.
TABLES = ["chunks", "postings", "cache_entries", "posting_batches", "dead_chunks"]


def note(number, seed):
    chance = random.Random(f"{number} {seed}")
    words = [f"w{chance.randrange(3000)}" for _ in range(60 * SECTIONS)]
    parts = [" ".join(words[start : start + 60]) for start in range(0, len(words), 60)]
    return "\n".join(f"## Section {place} of note{number}\n\n{part}\n" for place, part in enumerate(parts))


def rows_read(server):
    """How many rows and entries were read, once all connections of the role have said so."""
    end = time.monotonic() + 20
    while server.execute("SELECT count(*) FROM pg_stat_activity WHERE usename IN ('keeper', 'writer')") != [(0,)]:
        assert time.monotonic() < end
        time.sleep(0.05)
    import psycopg

    with psycopg.connect(server.url("memory"), autocommit=True) as connection:
        return int(connection.execute(_READ, {"tables": TABLES}).fetchone()[0])


def rolled_back(server):
    """How many transactions were undone."""
    ((count,),) = server.execute("SELECT xact_rollback FROM pg_stat_database WHERE datname = 'memory'")
    return count


def test_the_size_is_estimated_by_a_few_rows(url, server, name):
    store = open_store(url, name)
    chance = random.Random(1)
    for number in range(20):
        texts = (" ".join(f"w{chance.randrange(2000)}" for _ in range(chance.randrange(40, 160))) for _ in range(40))
        store.put_document(document(f"memory/{number}.md"), chunks_of(*texts), {})
    of_one = f"FROM notewell.{{}} t WHERE tenant = {store._tenant.number()}"
    tables = ("documents", "chunks", "postings", "posting_batches")
    sums = " + ".join(f"(SELECT sum(pg_column_size(t.*)) {of_one.format(table)})" for table in tables)
    ((really,),) = server.execute(f"SELECT {sums}", database="memory")
    assert 0.6 * float(really) < store.size_bytes() < 1.6 * float(really)
    with store.reading() as snapshot:
        for table, read in (("chunks", 200), ("documents", 20)):
            explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {_ROW_BYTES.format(table)}"
            ((plan,),) = snapshot._db.rows(explained, snapshot._totals.key)
            assert most_rows(plan[0]["Plan"]) == read, plan
    store.close()


def most_rows(plan):
    """The most rows that any step of a plan gave."""
    return max([plan["Actual Rows"], *(most_rows(part) for part in plan.get("Plans", ()))])


@pytest.mark.parametrize("others", [0, 30])
def test_few_rows_are_read(tmp_path, others):
    with own_server(settings=("autovacuum=off",)) as server:
        url = server.create_database("memory")
        for number in range(max(1, others)):
            store = open_store(url, f"other{number}")
            store.put_document(document(), chunks_of(*(f"common word{n} kept" for n in range(200))), {})
            store.close()
        if others:
            server.execute("VACUUM ANALYZE", database="memory")
        server.execute("CREATE ROLE writer LOGIN")  # who may not count the rows of tables that are not its own
        server.execute("SELECT notewell.bind_role('writer', 'mine')", database="memory")
        options = {"provider": "hashing", "store__url": server.url("memory", "writer"), "store__tenant": "mine"}
        (tmp_path / "memory").mkdir()
        for number in range(NOTES):
            (tmp_path / "memory" / f"n{number}.md").write_text(note(number, seed=0))
        with Memory.open(tmp_path, **options) as memory:
            memory.index()
            assert memory.status().chunks >= NOTES * SECTIONS
        before = rows_read(server)
        with Memory.open(tmp_path, **options) as memory:
            for number in range(SEARCHES):
                assert memory.search(f"note{number} w17 w203", sync=False, min_score=0).hits
        searched, undone = rows_read(server), rolled_back(server)
        assert (searched - before) / SEARCHES < 600
        with Memory.open(tmp_path, **options) as memory:
            for number in range(EDITS):
                (tmp_path / "memory" / "n3.md").write_text(note(3, seed=number + 1))
                assert memory.index(paths=["memory/n3.md"]).changed == 1
        assert (rows_read(server) - searched) / EDITS < 2500  # with blocks that are rewritten now and then
        assert rolled_back(server) == undone  # after a rollback, psycopg lets the server plan every statement again
