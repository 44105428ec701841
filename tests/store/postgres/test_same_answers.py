"""A search gives the same hits in the same order, with the same scores, whichever engine holds the index."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from notewell import Memory
from notewell.types import EVERYTHING, Term
from tests.postgres_server import store_settings

pytestmark = pytest.mark.slow

QUERIES = [
    "printer paper jam",
    "guest wifi",
    '"guest network"',
    '"the printer has the address"',
    "wiregu",
    "harbor-que",
    "数据库",
    "数",
    "データベースのバックアップ",
    "데이터베이스",
    "HARB-214",
    "postgresqll",
    "the",
    "what did we decide in november",
    "",
    "\ud800 wifi \0 guest",
]


def both(folder, **options):
    """Return two memories of one workspace, one in each engine, indexed: a search has no time for it under load."""
    memories = [
        Memory.open(folder, provider="hashing", **store_settings(engine), **options)
        for engine in ("sqlite", "postgres")
    ]
    for memory in memories:
        memory.index()
    return memories


def told(answer):
    """What an answer says, without what differs by nature."""
    hits = [(hit.citation, hit.found_by, hit.snippet, hit.category) for hit in answer.hits]
    scores = [(hit.score, hit.vector_score or 0.0, hit.text_score or 0.0) for hit in answer.hits]
    return (hits, answer.mode, answer.notes, answer.index), scores


def assert_same(sqlite, postgres, query, **options):
    one, scores = told(sqlite.search(query, **options))
    other, other_scores = told(postgres.search(query, **options))
    assert other == one, query
    assert [score for several in other_scores for score in several] == pytest.approx(
        [score for several in scores for score in several], abs=1e-4
    ), query


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_a_small_workspace(workspace, mode):
    sqlite, postgres = both(workspace)
    with sqlite, postgres:
        for query in QUERIES:
            assert_same(sqlite, postgres, query, mode=mode, min_score=0, limit=20)


def test_the_golden_workspace(golden, tmp_path):
    folder = shutil.copytree(golden / "workspace", tmp_path / "golden")
    queries = json.loads((golden / "queries.json").read_text(encoding="utf-8"))
    texts = [query if isinstance(query, str) else query["query"] for query in queries]
    assert len(texts) == 25
    sqlite, postgres = both(folder)
    with sqlite, postgres:
        for query in texts:
            for options in ({}, {"min_score": 0, "limit": 60}, {"mode": "keyword"}, {"chat": "group"}):
                assert_same(sqlite, postgres, query, **options)


def test_a_group_and_an_edited_workspace(example):
    sqlite, postgres = both(example)
    with sqlite, postgres:
        gone = sorted((example / "memory").glob("2026-0[67]*.md"))
        for note in gone:
            note.unlink()
        house = example / "memory" / "house.md"
        house.write_text(house.read_text(encoding="utf-8").replace("heat", "warm") + "\n\nThe boiler hums.\n", "utf-8")
        os.utime(house, (1_780_000_000, 1_780_000_000))
        for query in ("boiler", "roof repair quote", "allergies", "what does lena want", '"write down"', "deci"):
            for options in ({}, {"chat": "group"}, {"since": "2026-08-01"}, {"mode": "keyword", "chat": "group"}):
                assert_same(sqlite, postgres, query, **options)
        assert postgres.verify().findings == ()


def test_scores_of_every_kind_of_term(example):
    """Single words, phrases, beginnings and function words, found and scored by the store itself."""
    sqlite, postgres = both(example)
    asked = [
        [Term(("the",)), Term(("decis",)), Term(("a",))],
        [Term(("write", "down"))],
        [Term(("re",), prefix=True), Term(("of", "th"), prefix=True)],
        [Term(("and", "the")), Term(("in", "the")), Term(("lena",))],
    ]
    with sqlite, postgres:
        found = []
        for memory in (sqlite, postgres):
            with memory._components.index.use() as store, store.reading() as snapshot:
                answers = []
                for terms in asked:
                    matches = snapshot.keyword_matches(terms, limit=500, scope=EVERYTHING)
                    places = snapshot.chunks([match.chunk_id for match in matches])
                    answers.append(
                        [(places[m.chunk_id].path, places[m.chunk_id].first_line, round(m.score, 9)) for m in matches]
                    )
                    answers.append(list(snapshot.document_frequencies(terms, at_most=10_000)))
                found.append(answers)
    assert found[0] == found[1]
    assert all(found[0])
