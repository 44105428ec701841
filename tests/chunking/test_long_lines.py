"""Text is weighed in quarter tokens, and a heavy line is cut, but never inside what a reader sees as one character."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.chunking.lines import (
    cut_at_or_after,
    cut_at_or_before,
    cut_line,
    fitting_end,
    fitting_start,
    may_cut,
    weigh,
)

CHARACTERS = {
    "letter": "a",
    "accent": "e\u0301",
    "many marks": "o\u0308\u0304\u0323",
    "emoji with variation selector": "❤\ufe0f",
    "family": "👩\u200d👩\u200d👧\u200d👦",
    "skin tone": "👍\U0001f3fd",
    "joined with skin tone": "👩\U0001f3fd\u200d🚀",
    "flag": "🇩🇪",
    "flag of Scotland": "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "keycap": "1\ufe0f\u20e3",
    "jamo": "\u1112\u1161\u11ab",
    "syllable and jamo": "\uac00\u11a8",
    "devanagari": "क्षि",
    "thai": "กำ",
    "half-width voicing": "ｶﾞ",
    "line end": "\r\n",
    "han with variation": "葛\U000e0100",
}


@pytest.mark.parametrize("character", CHARACTERS.values(), ids=CHARACTERS)
def test_a_character_is_cut_nowhere_but_at_its_ends(character):
    text = f"{character}{character}x"
    places = [place for place in range(1, len(text)) if may_cut(text, place)]
    assert places == [len(character), 2 * len(character)]


def test_flags_are_counted_from_the_floor():
    flags = "🇩🇪🇫🇷🇮🇹"
    assert [place for place in range(7) if may_cut(flags, place)] == [0, 2, 4, 6]
    assert cut_at_or_before(flags, 3, 0) == 2
    assert cut_at_or_after(flags, 3, 6, 0) == 4


def test_a_character_larger_than_the_room_is_cut_after_all():
    assert cut_at_or_before("a" + "\u0301" * 50, 10, 0) == 10


@pytest.mark.parametrize("character", CHARACTERS.values(), ids=CHARACTERS)
@pytest.mark.parametrize("overlap", [0, 12])
def test_long_lines_are_cut_between_characters(character, overlap):
    line = "x" + character * 100
    pieces = list(cut_line(line, limit=40, overlap=overlap))
    ends = {1 + len(character) * n for n in range(101)} | {0}
    assert len(pieces) > 1
    assert {place for piece in pieces for place in piece} <= ends


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            "One sentence stands here. Another is here.",
            ["One sentence stands here. ", "Another is here."],
            id="after a sentence",
        ),
        pytest.param("word " * 12, ["word " * 6, "word " * 6], id="after a blank"),
        pytest.param("第一句话很短。第二句话。", ["第一句话很短。", "第二句话。"], id="after a Chinese sentence"),
        pytest.param("x" * 64, ["x" * 32, "x" * 32], id="anywhere when there is no better place"),
        pytest.param("x" * 33, ["x" * 17, "x" * 16], id="a scrap is evened out"),
    ],
)
def test_where_a_line_is_cut(line, expected):
    assert [line[start:end] for start, end in cut_line(line, limit=32, overlap=0)] == expected


@given(
    st.text("ab .。漢🇩🇪\u0301\u200d👍\U0001f3fd한\u1161", min_size=1, max_size=120),
    st.integers(1, 12),
    st.integers(0, 12),
    st.integers(1, 12),
)
def test_pieces_fit_join_and_advance(line, tokens, overlap, first_tokens):
    limit, shared = tokens * 4, min(overlap, tokens // 2) * 4
    pieces = list(cut_line(line, limit=limit, overlap=shared, first_limit=min(first_tokens * 4, limit)))
    assert pieces[0][0] == 0
    assert pieces[-1][1] == len(line)
    for start, end in pieces:
        assert 0 < weigh(line[start:end]) <= limit
    for (start, end), (next_start, next_end) in pairwise(pieces):
        assert start < next_start <= end < next_end
        assert weigh(line[next_start:end]) <= shared


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
