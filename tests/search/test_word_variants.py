"""A typo still finds the note, an acronym its long form; a word that some note contains is never doubted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell import Memory
from notewell.search.word_variants import (
    acronym_terms,
    edit_distance,
    explained_in,
    one_typo_away,
    within_two_typos,
)
from notewell.types import Term

# --- typos ---------------------------------------------------------------------------------------

NOTES = {
    "oscilloscope.md": "The oscilloscope was bought second-hand.",
    "calibration.md": "Calibration of the humidity chambers is due in spring.",
    "bread.md": "Soda bread needs a pint of buttermilk.",
    "mail.md": "The mail server moved to another rack.",
    "horse.md": "The horse is stabled in the village.",
    "ticket.md": "HARB-214 is about the configuration of gateways.",
}


@pytest.fixture
def memory(tmp_path):
    (tmp_path / "memory").mkdir()
    for name, text in NOTES.items():
        (tmp_path / "memory" / name).write_text(text + "\n", encoding="utf-8")
    with Memory.open(tmp_path, provider="none") as opened:
        opened.index()
        yield opened


def found(memory, query) -> list[str]:
    return [hit.path.removeprefix("memory/").removesuffix(".md") for hit in memory.search(query).hits]


@pytest.mark.parametrize(
    ("query", "note"),
    [
        pytest.param("oscilliscope", "oscilloscope", id="a letter wrong"),
        pytest.param("butermilk", "bread", id="a letter missing"),
        pytest.param("butttermilk", "bread", id="a letter added"),
        pytest.param("calibratoin", "calibration", id="letters swapped where the stem ends"),
        pytest.param("Oscilloscoep", "oscilloscope", id="a capital at the start"),
        pytest.param("socilloscope", "oscilloscope", id="the first two letters swapped"),
        pytest.param("mial", "mail", id="a short word with letters swapped"),
        pytest.param("osciloscoppe", "oscilloscope", id="two typos in a long word"),
        pytest.param("configuraton gateways", "ticket", id="beside a word that exists"),
    ],
)
def test_a_typo_still_finds_the_note(memory, query, note):
    assert found(memory, query) == [note]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("main", id="a wrong letter in a short word"),
        pytest.param("house", id="a wrong letter in a word of five"),
        pytest.param("HARV-214", id="an identifier"),
        pytest.param("HRAB", id="capitals"),
        pytest.param("oscilli_scope", id="a joint inside"),
        pytest.param("oscillOscoep", id="capitals inside"),
        pytest.param('"oscilliscope"', id="quoted"),
        pytest.param("xoscilloscope", id="the first letter is another"),
        pytest.param("asciloscoppe", id="more than two typos"),
        pytest.param("zzzzzzzz", id="nothing like it"),
    ],
)
def test_nothing_is_guessed(memory, query):
    assert "oscilloscope" not in found(memory, query)
    assert not {"mail", "horse"} & set(found(memory, query))


def test_a_word_that_exists_is_not_doubted(memory, tmp_path):
    (tmp_path / "memory" / "typo.md").write_text("We called it oscilliscope by mistake.\n", encoding="utf-8")
    memory.index()
    assert found(memory, "oscilliscope") == ["typo"]


def test_what_only_a_removed_note_held_is_not_guessed(memory, tmp_path):
    (tmp_path / "memory" / "oscilloscope.md").unlink()
    memory.index()
    assert found(memory, "oscilliscope") == []


def test_a_guess_counts_less_than_the_word_itself(memory):
    exact, guessed = memory.search("oscilloscope").hits[0], memory.search("oscilliscope").hits[0]
    assert guessed.score < exact.score


@pytest.mark.parametrize(
    ("one", "two", "distance"),
    [
        pytest.param("same", "same", 0, id="none"),
        pytest.param("abcd", "abdc", 1, id="a swap is one"),
        pytest.param("abcd", "abxd", 1, id="a change"),
        pytest.param("abcd", "abd", 1, id="missing"),
        pytest.param("abcd", "abccd", 1, id="added"),
        pytest.param("abcdef", "badcef", 2, id="two swaps"),
        pytest.param("abcdef", "uvwxyz", 3, id="more than asked for"),
    ],
)
def test_edit_distance(one, two, distance):
    assert edit_distance(one, two, at_most=2) == edit_distance(two, one, at_most=2) == distance


@pytest.mark.slow
@given(st.text("abcde", min_size=6, max_size=9))
def test_words_one_typo_away_are_one_typo_away(word):
    assert {edit_distance(word, other, at_most=2) for other in one_typo_away(word)} == {1}


@given(st.text("abcdefgh", min_size=7, max_size=10), st.data())
def test_two_typos_are_seen(word, data):
    once = data.draw(st.sampled_from(sorted(one_typo_away(word))))
    twice = data.draw(st.sampled_from(sorted(one_typo_away(once))))
    assert within_two_typos(word, [twice]) == ([twice] if edit_distance(word, twice, at_most=2) <= 2 else [])


def test_the_answer_says_which_words_were_not_found(memory):
    assert memory.search("calibratoin of chambers").notes == (
        "keyword search only: provider is none",
        'understood "calibratoin" as Calibration',
    )
    assert not any("understood" in note for note in memory.search("calibration").notes)
    assert not any("understood" in note for note in memory.search("zyxwvut").notes)


def test_a_guess_that_finds_nothing_is_no_news(memory):
    answer = memory.search("calibratoin", min_score=1.0)
    assert answer.hits == ()
    assert not any("understood" in note for note in answer.notes)


# --- acronyms ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "acronym", "forms"),
    [
        pytest.param("write-ahead logging (WAL)", "wal", {("write", "ahead", "log")}, id="in brackets"),
        pytest.param("WAL stands for write-ahead logging.", "wal", {("write", "ahead", "log")}, id="before"),
        pytest.param("WAL, or Write Ahead Logs", "wal", {("write", "ahead", "log")}, id="capitals and a plural"),
        pytest.param("wall: we all laugh", "wal", set(), id="a part of another word"),
        pytest.param("We always lose the wal.", "wal", set(), id="not written as an acronym"),
        pytest.param("WAL" + " and more" * 30 + " write-ahead logging", "wal", set(), id="too far away"),
    ],
)
def test_explanations(text, acronym, forms):
    assert explained_in(text, acronym) == forms


@pytest.fixture
def snapshot(tmp_path):
    notes = tmp_path / "memory"
    notes.mkdir()
    (notes / "glossary.md").write_text("WAL: write-ahead logging. SLO: service level objective.\n")
    (notes / "disk.md").write_text("The WAL grew.\n")
    with Memory.open(tmp_path, provider="none") as memory:
        memory.index()
        with memory._components.index.use() as store, store.reading() as opened:
            yield opened


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("size of the WAL", {"WAL": [Term(("write", "ahead", "log"))]}, id="the short form"),
        pytest.param("write-ahead logging", {"write ahead log": [Term(("wal",))]}, id="the long form"),
        pytest.param("WHERE IS THE WAL", {}, id="all in capitals"),
        pytest.param("IBM and the wal", {}, id="not explained, not an acronym"),
        pytest.param("", {}, id="nothing"),
    ],
)
def test_acronyms_of_a_question(snapshot, query, expected):
    assert acronym_terms(snapshot, query) == expected
