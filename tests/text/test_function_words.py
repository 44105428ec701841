"""Function words go, in the language that the query is in; what means something in that language stays."""

from __future__ import annotations

import pytest

from notewell.text.function_words import function_words
from notewell.text.lexicon import words


def dropped(query) -> set[str]:
    return {word.whole or word.parts[0] for word in function_words(list(words(query)), query)}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("what did we do about the die", {"what", "did", "we", "do", "about", "the"}, id="die is English"),
        pytest.param("wo sind die Karten", {"wo", "sind", "die"}, id="die is German"),
        pytest.param("son in war", {"in"}, id="English words that are German ones"),
        pytest.param("wo war der Termin mit Anna", {"wo", "war", "der", "mit"}, id="war is German"),
        pytest.param("my son has a hat", {"my", "has", "a"}, id="son and hat are English"),
        pytest.param("quiénes son los vecinos", {"quien", "son", "los"}, id="son is Spanish"),
        pytest.param("el niño weather", set(), id="one foreign word is no evidence"),
        pytest.param("Warum deployt nachmittags niemand?", {"warum"}, id="one in a sentence of its language"),
        pytest.param("cell state comment", set(), id="English nouns that look French and Italian"),
        pytest.param("guest wifi password", set(), id="none"),
        pytest.param("how is the WHO funded", {"how", "is", "the"}, id="an acronym stays"),
        pytest.param("tickets for IT and US travel", {"for", "and"}, id="two acronyms"),
        pytest.param("tea AND coffee", {"and"}, id="an operator is no acronym"),
        pytest.param("WHERE IS THE KEY", {"where", "is", "the"}, id="all capitals say nothing"),
        pytest.param("budget in May", {"in"}, id="a month stays"),
        pytest.param("qu'est-ce que le chat mange", {"est-ce", "que", "le"}, id="elision and hyphen"),
        pytest.param("что мы решили про базу", {"что", "мы", "про"}, id="the script tells"),
        pytest.param("هل إلى", {"هل", "الى"}, id="Arabic is folded first"),
        pytest.param("", set(), id="nothing"),
    ],
)
def test_function_words(query, expected):
    assert dropped(query) == expected


@pytest.mark.parametrize("word", "home system computer order group work name help value number order change".split())
def test_what_people_search_for_is_no_function_word(word):
    assert dropped(f"what is the {word}") == {"what", "is", "the"}


def test_unspaced_writing_is_left_to_others():
    assert dropped("是谁 where") == {"where"}
