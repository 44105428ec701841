"""Neighbouring chunks become one hit, as far as a snippet can show them."""

from __future__ import annotations

import pytest

from notewell.search.joining import joined_groups, lines_text
from notewell.types import StoredChunk


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
