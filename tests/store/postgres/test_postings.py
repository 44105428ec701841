"""Posting blocks: batches are merged, removed chunks are dead until they are rewritten, and nothing of them is left."""

from __future__ import annotations

import numpy as np
import pytest

from notewell import Memory
from notewell.store.postgres import open_store
from notewell.store.postings import POSTING, Collection, chunk_terms, pack, phrase, ranked, unpack
from notewell.testing.samples import chunks_of, document, terms
from notewell.types import EVERYTHING, Term


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
    found = rows(store, "SELECT data FROM notewell.postings")
    return set(np.frombuffer(b"".join(data for (data,) in found), POSTING)["id"].tolist())


def scores(store):
    asked = [*terms("common", "word7", "kept"), Term(("common", "word7")), Term(("wor",), prefix=True)]
    with store.reading() as snapshot:
        found = snapshot.keyword_matches(asked, limit=999, scope=EVERYTHING)
        return [(match.chunk_id, round(match.score, 9)) for match in found], list(
            snapshot.document_frequencies(asked, at_most=9999)
        )


def test_small_batches_are_merged_and_nothing_changes(store):
    for number in range(40):
        store.put_document(document(f"memory/{number}.md"), chunks_of(f"common word{number} kept"), {})
    before = scores(store)
    assert rows(store, "SELECT count(*) FROM notewell.posting_batches") == [(40,)]
    store.optimize()
    ((batches,),) = rows(store, "SELECT count(*) FROM notewell.posting_batches")
    assert batches <= 3
    assert scores(store) == before
    assert store.verify() == []


def test_dead_chunks_count_for_nothing_and_are_rewritten_when_there_are_many(store, url, name):
    for number in range(30):
        store.put_document(document(f"memory/{number}.md"), chunks_of(f"common word{number} kept"), {})
    store.optimize()
    store.remove_documents("memory", ["memory/3.md", "memory/7.md"])
    fresh = open_store(url, f"{name}-fresh")
    for number in range(30):
        if number not in {3, 7}:
            fresh.put_document(document(f"memory/{number}.md"), chunks_of(f"common word{number} kept"), {})
    assert {4, 8} <= held_ids(store)
    assert [score for _, score in scores(store)[0]] == [score for _, score in scores(fresh)[0]]
    assert scores(store)[1] == scores(fresh)[1]
    fresh.close()
    store.optimize()
    assert {4, 8} <= held_ids(store)  # two of thirty are not worth it
    store.remove_documents("memory", [f"memory/{number}.md" for number in range(10, 20)])
    before = scores(store)
    store.optimize()
    assert len(held_ids(store)) == 18
    assert scores(store) == before
    assert rows(store, "SELECT count(*) FROM notewell.dead_chunks") == [(0,)]
    assert store.verify() == []


def test_erasing_leaves_no_row_that_names_what_was_removed(store):
    store.put_document(document("memory/a.md"), chunks_of("kept harbour"), {})
    store.put_document(document("memory/b.md"), chunks_of("zanzibarquux harbour"), {})
    store.remove_documents("memory", ["memory/b.md"])
    store.erase_deleted()
    assert rows(store, "SELECT DISTINCT term FROM notewell.postings ORDER BY term") == [("harbour",), ("kept",)]
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
