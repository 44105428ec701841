"""Words that mean about the same: the table, and what a search makes of it."""

from __future__ import annotations

import pytest

from recollect import Memory
from recollect.lexicon import stem
from recollect.lexicon.synonyms import synonyms


def test_words_of_a_group_lead_to_each_other():
    assert stem("doctor") in synonyms(stem("physician"))
    assert stem("physician") in synonyms(stem("doctor"))
    assert synonyms("qwertz") == ()


def test_no_word_is_its_own_synonym():
    from recollect.lexicon import synonyms as module

    for group in module._GROUPS.split(";"):
        stems = [stem(word) for word in group.split()]
        assert len(stems) != 1, group
        assert all(word not in synonyms(word) for word in stems)


@pytest.fixture
def memory(tmp_path):
    notes = tmp_path / "memory"
    notes.mkdir()
    (notes / "health.md").write_text("# Health\nThe doctor moved her practice to Mill Lane, second floor.\n")
    (notes / "garden.md").write_text("# Garden\nThe pears are ripe when the stalk lets go, mostly in September.\n")
    (notes / "paint.md").write_text("# Hall\nTwo coats of chalk white on the ceiling, one on the walls.\n")
    with Memory.open(tmp_path, provider="none") as opened:
        opened.index()
        yield opened


def test_a_word_that_no_note_holds_finds_what_means_the_same(memory):
    (hit,) = memory.search("where did the physician move", explain=True).hits
    assert hit.path == "memory/health.md"
    assert hit.explanation["related"] > 0


def test_the_word_itself_comes_before_its_synonyms(memory):
    (memory.workspace / "memory" / "work.md").write_text("# Work\nThe physician moved to another lane last year.\n")
    found = memory.search("physician", min_score=0)
    assert [hit.path for hit in found.hits] == ["memory/work.md", "memory/health.md"]


@pytest.mark.parametrize("query", ["ask Physician", 'the "physician"'])
def test_names_and_quotes_are_meant_as_they_are(memory, query):
    assert memory.search(query, min_score=0).hits == ()


def test_what_other_systems_use_knows_no_synonyms(memory):
    assert memory.search("physician", fusion="weighted", min_score=0).hits == ()
