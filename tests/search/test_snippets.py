"""A hit joins neighbouring chunks and shows the lines that match, within 700 characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.search.snippets import SNIPPET_CHARS, joined_groups, lines_text, make_snippet
from notewell.types import Citation, StoredChunk


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


def test_two_words_draw_the_snippet_more_than_one_of_them_many_times():
    lines = [f"line {number} about something else entirely, long enough to matter here" for number in range(40)]
    lines[3:6] = [f"{line} kettle" for line in lines[3:6]]
    lines[30] += " kettle"
    lines[31] += " gasket"
    snippet = make_snippet("\n".join(lines), {"kettl": 4.0, "gasket": 4.0})
    assert lines[30] in snippet
    assert lines[31] in snippet


def test_an_irregular_form_draws_the_snippet_to_its_line():
    filler = [f"line {number} about something else entirely, long enough to matter here" for number in range(40)]
    text = "\n".join([*filler, "she bought the kettle", *filler])
    assert "she bought the kettle" in make_snippet(text, {"buy": 2.0})


# --- neighbouring chunks -----------------------------------------------------------------------


def note(first, text, path="memory/a.md"):
    last = first + text.count("\n")
    return StoredChunk(first, "memory", path, None, first, last, text, "")


def message(turn, text="User: hello", parts=1, path="sessions/a.jsonl"):
    return StoredChunk(turn, "sessions", path, None, turn, turn, text, "", turn, parts)


@pytest.mark.parametrize(
    ("chunks", "groups"),
    [
        pytest.param([note(1, "a\nb"), note(3, "c")], [[0, 1]], id="lines that touch"),
        pytest.param([note(1, "a\nb"), note(2, "b\nc")], [[0, 1]], id="lines that overlap"),
        pytest.param([note(1, "a"), note(3, "c")], [[0], [1]], id="a line between them"),
        pytest.param([note(1, "a"), note(2, "b", "memory/b.md")], [[0], [1]], id="other files"),
        pytest.param([note(1, "a" * 400), note(2, "b" * 400)], [[0], [1]], id="too long for a snippet"),
        pytest.param([note(5, "e"), note(1, "a"), note(4, "d")], [[0, 2], [1]], id="in the place of the better"),
        pytest.param([message(4), message(5)], [[0, 1]], id="messages that follow one another"),
        pytest.param([message(4), message(6)], [[0], [1]], id="a message between them"),
        pytest.param([message(4), message(5, path="sessions/b.jsonl")], [[0], [1]], id="other conversations"),
        pytest.param([message(4, parts=3), message(4, parts=3)], [[0, 1]], id="pieces of one message"),
        pytest.param([message(4, parts=3), message(5, parts=3)], [[0, 1]], id="half a snippet for each of two"),
        pytest.param(
            [message(4, parts=3), message(5, parts=3), message(6, "User: " + "x" * 100)],
            [[0, 1], [2]],
            id="no room for a third",
        ),
        pytest.param([], [], id="nothing"),
    ],
)
def test_groups(chunks, groups):
    assert joined_groups(chunks) == groups


def test_the_lines_of_a_group_are_shown_once_and_in_order():
    assert lines_text([note(3, "c\nd"), note(1, "a\nb\nc")]) == "a\nb\nc\nd"


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([note(1, "a"), note(3, "c")], id="a gap"),
        pytest.param([note(1, "a\nb"), note(2, "x")], id="lines that contradict"),
        pytest.param([StoredChunk(1, "memory", "a", None, 1, 1, "half\nof", "")], id="pieces of one long line"),
    ],
)
def test_what_does_not_fit_together_has_no_common_text(chunks):
    assert lines_text(chunks) is None


@pytest.mark.parametrize(("last_line", "citation"), [(9, "memory/x.md#L5-L9"), (5, "memory/x.md#L5")])
def test_citations(last_line, citation):
    assert str(Citation("memory/x.md", 5, last_line)) == citation
    assert Citation.parse(citation) == ("memory/x.md", 5, last_line)


@pytest.mark.parametrize("path", ["memory/x.md", "memory/c#L.md", "memory/x.md#L0", "memory/x.md#L5-", "#L5", "x#l5"])
def test_what_is_no_citation_is_a_path(path):
    assert Citation.parse(path) == (path, None, None)
