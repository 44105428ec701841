"""What a short text states: not its questions, not its small talk, half of what it says to the reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.indexing.preparation import Preparation
from recollect.lexicon.statements import HEADED, SHORT, stated_terms
from recollect.types import Chunk


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        pytest.param("Kettle descaled with vinegar.", 3, id="words that tell something"),
        pytest.param("Wow, that is so great! Thanks!", 0, id="small talk"),
        pytest.param("When did the kettle break?", 0, id="a question"),
        pytest.param("When did the kettle break? The heating coil burned.", 3, id="the answer to it"),
        pytest.param("水壶坏了吗？", 0, id="a question with a wide mark"),
        pytest.param("Your kettle needs vinegar.", 1, id="what is said to the reader counts half"),
        pytest.param("kettle\nvinegar", 2, id="lines"),
        pytest.param("# Kettle\nvinegar", 2 + HEADED, id="a heading of its own"),
        pytest.param("", 0, id="nothing"),
    ],
)
def test_stated_terms(text, stated):
    assert stated_terms(text, headed=False) == stated


def test_below_a_heading_a_remark_is_a_note():
    assert stated_terms("vinegar", headed=True) == 1 + HEADED


@given(st.text(), st.booleans())
def test_any_text_states_something_or_nothing(text, headed):
    assert stated_terms(text, headed=headed) >= (HEADED if headed else 0)


@pytest.mark.parametrize(
    ("words", "counted"),
    [pytest.param(SHORT, 0, id="short"), pytest.param(SHORT + 1, SHORT + 1, id="long: all terms count")],
)
def test_only_short_texts_are_looked_at_sentence_by_sentence(words, counted):
    (prepared,) = Preparation().with_terms([Chunk(1, 1, " ".join(["kettle"] * words) + "?")], "memory/a.md")
    assert prepared.text_terms.split() == ["kettl"] * words
    assert (prepared.stated if prepared.stated is not None else len(prepared.text_terms.split())) == counted
