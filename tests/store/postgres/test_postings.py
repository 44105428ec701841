"""Recent terms become posting blocks, blocks are merged, and of removed chunks nothing counts and nothing is left."""

from __future__ import annotations

import numpy as np
import pytest

from notewell import Memory
from notewell.store.postgres import open_store
from notewell.store.postings import POSTING, Bundle, Collection, chunk_terms, pack, phrase, ranked, unpack
from notewell.testing.samples import chunks_of, document, terms
from notewell.types import EVERYTHING, Term

pytestmark = pytest.mark.slow


@pytest.fixture
def store(url, name):
    opened = open_store(url, name)
    yield opened
    opened.close()


def rows(store, sql):
    """Run a query in the tenant of a store."""
    with store.reading() as snapshot:
        return snapshot._db.rows(sql)


def held_ids(store):
    """Every chunk id that a posting names."""
    found = [data for (data,) in rows(store, "SELECT data FROM notewell.postings")]
    for first, packed in rows(store, "SELECT first, packed FROM notewell.posting_batches WHERE packed IS NOT NULL"):
        found += [block.data for block in Bundle(first, packed).blocks()]
    return set(np.frombuffer(b"".join(found), POSTING)["id"].tolist())


def batches(store):
    """How many batches of blocks there are, and how many bundles."""
    ((blocks, recent),) = rows(
        store,
        "SELECT count(*) FILTER (WHERE packed IS NULL), count(*) FILTER (WHERE packed IS NOT NULL)"
        " FROM notewell.posting_batches",
    )
    return blocks, recent


def put(store, number, chunks=1):
    """Put a document of so many chunks."""
    texts = [f"common word{number} kept part{part}" for part in range(chunks)]
    store.put_document(document(f"memory/{number}.md"), chunks_of(*texts), {})


def terms_held(store):
    """Every term that a block or a bundle names."""
    found = {term for (term,) in rows(store, "SELECT term FROM notewell.postings")}
    for first, packed in rows(store, "SELECT first, packed FROM notewell.posting_batches WHERE packed IS NOT NULL"):
        found.update(Bundle(first, packed).terms)
    return sorted(found)


def scores(store):
    asked = [*terms("common", "word7", "kept"), Term(("common", "word7")), Term(("wor",), prefix=True)]
    with store.reading() as snapshot:
        found = snapshot.keyword_matches(asked, limit=999, scope=EVERYTHING)
        return [(match.chunk_id, round(match.score, 9)) for match in found], list(
            snapshot.document_frequencies(asked, at_most=9999)
        )


def test_recent_terms_become_blocks_once_there_are_many_and_nothing_changes(store, url, name):
    whole = open_store(url, f"{name}-whole")  # which writes all at once
    with whole.together():
        for number in range(6):
            put(whole, number, chunks=60)
    assert batches(whole) == (1, 0)
    for number in range(4):
        put(store, number, chunks=60)
    assert batches(store) == (0, 4)
    assert rows(store, "SELECT count(*) FROM notewell.postings") == [(0,)]
    assert store.verify() == []
    put(store, 4, chunks=60)
    assert batches(store) == (1, 0)
    put(store, 5, chunks=60)
    assert batches(store) == (1, 1)
    assert scores(store) == scores(whole)
    with store.reading() as one, whole.reading() as other:
        for prefix, limit in (("word", 3), ("part1", 99), ("", 9), ("nothing", 9)):
            asked = {"lengths": range(1, 99), "limit": limit}
            assert one.terms_beginning(prefix, **asked) == other.terms_beginning(prefix, **asked)
    assert store.verify() == whole.verify() == []
    whole.close()


def test_what_is_removed_while_it_is_recent_gets_into_no_block(store):
    put(store, 0, chunks=300)
    for number in range(1, 30):
        put(store, number)
    for number in range(1, 29):
        store.remove_documents("memory", [f"memory/{number}.md"])
    store.remove_documents("memory", ["memory/0.md"])
    put(store, 99, chunks=300)
    found = scores(store)
    assert held_ids(store) == {*range(1, 301), 329, *range(330, 630)}  # the first 300 are dead, and in their block
    assert rows(store, "SELECT dead FROM notewell.generations WHERE chunks > 0") == [(300,)]
    assert store.verify() == []
    store.optimize()
    assert held_ids(store) == {329, *range(330, 630)}
    assert scores(store) == found
    assert rows(store, "SELECT count(*) FROM notewell.dead_chunks") == [(0,)]
    assert store.verify() == []


def test_another_store_sees_recent_terms_at_once(store, url, name):
    other = open_store(url, name)
    for number in range(5):
        put(store, number)
        assert scores(other) == scores(store)
        assert len(scores(other)[0]) == number + 1
    store.remove_documents("memory", ["memory/2.md"])
    assert scores(other) == scores(store)
    other.close()


def test_small_batches_are_merged_and_nothing_changes(store):
    for number in range(10):
        put(store, number, chunks=260)
    before = scores(store)
    assert batches(store) == (10, 0)
    store.optimize()
    assert batches(store)[0] <= 3
    assert scores(store) == before
    assert store.verify() == []


def test_dead_chunks_count_for_nothing_and_are_rewritten_when_there_are_many(store, url, name):
    with store.together():
        for number in range(30):
            put(store, number, chunks=10)
    assert batches(store) == (1, 0)
    store.remove_documents("memory", ["memory/3.md", "memory/7.md"])
    fresh = open_store(url, f"{name}-fresh")
    for number in range(30):
        if number not in {3, 7}:
            put(fresh, number, chunks=10)
    assert {31, 80} <= held_ids(store)
    assert [score for _, score in scores(store)[0]] == [score for _, score in scores(fresh)[0]]
    assert scores(store)[1] == scores(fresh)[1]
    fresh.close()
    store.optimize()
    assert {31, 80} <= held_ids(store)  # two of thirty are not worth it
    store.remove_documents("memory", [f"memory/{number}.md" for number in range(10, 20)])
    before = scores(store)
    store.optimize()
    assert len(held_ids(store)) == 180
    assert scores(store) == before
    assert rows(store, "SELECT count(*) FROM notewell.dead_chunks") == [(0,)]
    assert store.verify() == []


def test_erasing_leaves_no_row_that_names_what_was_removed(store):
    store.put_document(document("memory/a.md"), chunks_of("kept harbour"), {})
    store.put_document(document("memory/b.md"), chunks_of("zanzibarquux harbour"), {})
    store.remove_documents("memory", ["memory/b.md"])
    store.erase_deleted()
    assert terms_held(store) == ["harbour", "kept"]
    assert held_ids(store) == {1}
    assert store.verify() == []


def test_forgetting_erases_the_rows_and_says_what_an_administrator_has_to_do(workspace, url, server):
    with Memory.open(workspace, provider="hashing", store__url=url) as memory:
        memory.index()
        memory.index(force=True)
        report = memory.forget(match="heron-guest", for_good=True)
        assert report.chunks
        (note,) = [note for note in report.notes if "administrator" in note]
        for place in ("dead rows", "write-ahead log", "replicas", "base backups"):
            assert place in note
        number = memory._components.indexes.number()
    for table, column in (("chunks", "text"), ("postings", "term"), ("meta", "value")):
        found = server.execute(
            f"SELECT count(*) FROM notewell.{table} WHERE tenant = %s AND {column} LIKE %s",
            number, "%heron%", database="memory",
        )  # fmt: skip
        assert found == [(0,)], table


def test_a_phrase_does_not_cross_from_text_to_heading():
    blocks = {
        block.term: [block] for block in pack([chunk_terms(5, "guest", "wifi guest"), chunk_terms(6, "wifi guest", "")])
    }
    found = phrase([unpack(blocks["guest"]), unpack(blocks["wifi"])])
    assert found.ids.tolist() == []
    found = phrase([unpack(blocks["wifi"]), unpack(blocks["guest"])])
    assert (found.ids.tolist(), found.frequencies.tolist()) == ([5, 6], [0.5, 1.0])
    ids, values = ranked([unpack(blocks["wifi"])], Collection(10, 3.0))
    assert ids.tolist() == [5, 6]
    assert values[1] > values[0]


def test_erasing_leaves_nothing_in_what_the_server_knows_of_its_rows(server, name):
    store = open_store(server.create_database(name), "a")
    put(store, 0, chunks=300)
    store.put_document(document("memory/b.md"), chunks_of("zanzibarquux harbour", *("harbour" for _ in range(299))), {})
    known = "SELECT string_agg(concat(most_common_vals::text, histogram_bounds::text), ' ') FROM pg_stats"
    server.execute("ANALYZE", database=name)
    assert "zanzibarquux" in server.execute(known, database=name)[0][0]
    store.remove_documents("memory", ["memory/b.md"])
    store.erase_deleted()
    assert "zanzibarquux" not in server.execute(known, database=name)[0][0]
    store.close()
