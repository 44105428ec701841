"""Weights are what limits are measured in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.chunking.weight import fitting_end, fitting_start, weigh


@pytest.mark.parametrize(
    ("text", "quarters"),
    [
        pytest.param("", 0, id="nothing"),
        pytest.param("four", 4, id="ascii"),
        pytest.param("größe", 5, id="latin"),
        pytest.param("漢字", 8, id="han"),
        pytest.param("ひらカタ", 16, id="kana"),
        pytest.param("한국", 8, id="hangul"),
        pytest.param("ＡＢ", 8, id="full width"),
        pytest.param("𠮷", 4, id="han beyond the basic plane"),
        pytest.param("a漢b", 6, id="mixed"),
        pytest.param("🎉", 1, id="emoji"),
    ],
)
def test_weigh(text, quarters):
    assert weigh(text) == quarters


@given(st.text("ab 漢字ß", max_size=40), st.integers(0, 40), st.integers(1, 60))
def test_fitting_end_and_start_are_the_furthest_places_that_fit(text, place, limit):
    place = min(place, len(text))
    end = fitting_end(text, place, limit)
    assert weigh(text[place:end]) <= limit
    assert end == len(text) or weigh(text[place : end + 1]) > limit
    start = fitting_start(text, place, limit)
    assert weigh(text[start:place]) <= limit
    assert start == 0 or weigh(text[start - 1 : place]) > limit
