"""Words, identifiers and unspaced scripts become the terms that people would type."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.text.lexicon import LONGEST_TERM, fold, index_terms, pairs, words


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        pytest.param("Running libraries", "run librari", id="words are stemmed"),
        pytest.param("Went GONE goes going", "go go go go", id="irregular forms, too"),
        pytest.param("the children bought mice", "the child buy mous", id="irregular nouns"),
        pytest.param("LED ground data", "led ground data", id="forms that mostly are another word stay"),
        pytest.param("Maria's keys", "maria key", id="a possessive is its owner"),
        pytest.param("don't", "dont", id="a contraction is one word"),
        pytest.param("l'ordinateur de L’École", "ordinateur de ecol", id="French articles let go"),
        pytest.param("qu'elle aujourd'hui dell'azienda", "ell aujourdhui azienda", id="elisions only at the beginning"),
        pytest.param("s'il d'or", "sil dor", id="too little is left to stand alone"),
        pytest.param("JIRA-123", "jira 123 jira-123", id="a ticket counts whole and in parts"),
        pytest.param("snake_case", "snake case snake_case", id="snake case"),
        pytest.param("MemoryIndex HTTPServer", "memori index http server memoryindex httpserver", id="camel case"),
        pytest.param("memory/topics.md.", "memori topic md memory/topics.md", id="a path at the end of a sentence"),
        pytest.param("127.0.0.1:5432", "127 0 0 1 5432 127.0.0.1:5432", id="an address"),
        pytest.param("9b5b096411652ec1", "9b5b096411652ec1", id="a hash stays whole"),
        pytest.param("a JIRA-1 b", "a jira 1 b jira-1", id="wholes do not part neighbours"),
        pytest.param("café RÉSUMÉ naïve", "cafe resum naiv", id="Latin accents fold"),
        pytest.param("йод ёлка", "йод ёлка", id="Cyrillic letters are not accents"),
        pytest.param("数据库", "数据 据库 库", id="Chinese becomes pairs and the last character"),
        pytest.param("がぎ", "がぎ ぎ", id="Japanese voicing marks stay"),
        pytest.param("ﾊﾝｶｸ ＡＢＣ", "ハン ンカ カク ク abc", id="half and full width fold"),
        pytest.param("데이터", "데이 이터 터", id="Korean becomes pairs"),
        pytest.param("हिन्दी", "हिन्दी", id="Hindi words stay whole"),
        pytest.param("مَرْحَبًا", "مرحبا", id="Arabic vowel marks fold"),
        pytest.param("用Python写", "用 python 写", id="mixed writing"),
        pytest.param("", "", id="nothing"),
        pytest.param("-- ''' … 🎉 \x00\x01", "", id="no words"),
    ],
)
def test_index_terms(text, terms):
    assert index_terms(text) == terms


@given(st.text())
def test_any_text_has_terms_without_blanks_or_marks(text):
    for term in index_terms(text).split(" "):
        assert "\x01" not in term
        assert len(term) <= max(LONGEST_TERM, 2)


@given(st.text())
def test_words_and_index_terms_agree(text):
    listed = list(words(text))
    terms = [part for word in listed for part in word.parts] + [word.whole for word in listed if word.whole]
    assert " ".join(terms).split() == index_terms(text).split()


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_composed_and_decomposed_text_is_the_same(text):
    assert index_terms(unicodedata.normalize("NFC", text)) == index_terms(unicodedata.normalize("NFD", text))


@given(st.text(alphabet="数据库迁移かなカナ한국어", min_size=1, max_size=12))
def test_every_substring_of_unspaced_writing_begins_some_term(run):
    terms = pairs(run)
    assert all(any(term.startswith(character) for term in terms) for character in run)
    assert all(run[i : i + 2] in terms for i in range(len(run) - 1))


def test_folding_leaves_plain_text_alone():
    text = "plain ASCII text"
    assert fold(text) is text


def test_threads_share_the_lexicon():
    texts = [f"running libraries number{i} JIRA-{i}" for i in range(200)]
    expected = [index_terms(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(index_terms, texts * 5)) == expected * 5


@given(st.text())
def test_terms_stand_one_blank_apart(text):
    """The store counts the terms of a chunk by its blanks."""
    terms = index_terms(text)
    assert terms.split(" ") == (terms.split() or [""])


@given(
    st.text(alphabet="ab Zé—’…ﬁ①ά中가\u0301\u0308\u064bａ😀", max_size=12), st.sampled_from(["", "plain words " * 40])
)
def test_a_few_foreign_characters_are_folded_as_a_whole_text_is(text, around):
    assert fold(around + text + around) == fold(around + text + "中" * 200 + around).replace("中" * 200, "")
