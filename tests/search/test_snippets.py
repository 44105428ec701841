"""Snippets show the lines that matched, within 700 characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.search.snippets import SNIPPET_CHARS, make_snippet


def test_a_short_text_is_shown_whole():
    assert make_snippet("one\ntwo", {"two": 1.0}) == "one\ntwo"


def test_the_matching_lines_are_shown():
    lines = [f"line {i} about nothing in particular and then some more" for i in range(60)]
    lines[45] = "line 45 names the zebra protocol"
    snippet = make_snippet("\n".join(lines), {"zebra": 1.0, "protocol": 1.0})
    assert lines[45] in snippet
    assert snippet.startswith("…\n")
    assert snippet.endswith("\n…")


def test_without_a_match_the_beginning_is_shown():
    text = "\n".join(f"line {i} of a text that is too long for one snippet" for i in range(60))
    assert make_snippet(text, {}).startswith("line 0 of")


@pytest.mark.parametrize("position", [0, 5_000, 9_980], ids=["start", "middle", "end"])
def test_a_long_line_is_cut_around_the_match(position):
    line = "x" * position + " zebra " + "y" * (10_000 - position)
    snippet = make_snippet(line, {"zebra": 1.0})
    assert "zebra" in snippet
    assert len(snippet) <= SNIPPET_CHARS


@pytest.mark.slow
@given(st.text(), st.dictionaries(st.text(min_size=1), st.floats(0, 9)), st.integers(20, 100))
def test_the_limit_holds_for_any_text(text, weights, limit):
    assert len(make_snippet(text, weights, limit=limit)) <= limit


def test_a_rare_word_draws_the_snippet_more_than_common_ones():
    lines = [f"line {i} in which Caroline and Melanie talk about this and that" for i in range(40)]
    lines[30] = "line 30 names the zebra"
    snippet = make_snippet("\n".join(lines), {"carolin": 0.5, "melani": 0.5, "zebra": 9.0})
    assert lines[30] in snippet


def test_an_irregular_form_draws_the_snippet_to_its_line():
    filler = [f"line {number} about something else entirely, long enough to matter here" for number in range(40)]
    text = "\n".join([*filler, "she bought the kettle", *filler])
    assert "she bought the kettle" in make_snippet(text, {"buy": 2.0})
