"""Texts made to slow down or break what reads session files; they may be corrupt, so any text must be read in time."""

from __future__ import annotations

import pytest

from notewell.sources.transcripts import json5
from notewell.sources.transcripts.json5 import DEEPEST, Json5Error, container_at, parse_json5
from notewell.sources.transcripts.session_files import read_messages


@pytest.mark.parametrize("opening", ["[", "{a:", "[{a:", "[[{'b':", "[ /* c */", "\t[", "[1,"])
@pytest.mark.parametrize("levels", [DEEPEST * 2, 10_000, 300_000])
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_deep_nesting_is_refused_with_an_error(opening, levels, closed):
    closing = "".join({"[": "]", "{": "}"}[mark] for mark in reversed(opening) if mark in "[{")
    text = opening * levels + "1" + closing * levels * closed
    with pytest.raises(Json5Error):
        parse_json5(text)


def test_nesting_up_to_the_limit_is_read():
    value = parse_json5("[" * DEEPEST + "1" + "]" * DEEPEST)
    for _ in range(DEEPEST):
        (value,) = value
    assert value == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("]" * 100_000, id="closings alone"),
        pytest.param("[}" * 50_000, id="brackets crossed"),
        pytest.param("{" + "a:" * 100_000 + "1}", id="colons in a row"),
        pytest.param("[" + "," * 100_000 + "]", id="commas in a row"),
        pytest.param("/*" * 100_000, id="a comment that never ends"),
        pytest.param("'" + "\\\n" * 100_000, id="a string that never ends"),
        pytest.param("[" + "-" * 100_000 + "1]", id="signs in a row"),
        pytest.param("{" + '"\\u0061": ' * 50_000 + "}", id="escaped keys in a row"),
        pytest.param("\ufeff" * 100_000, id="byte order marks alone"),
        pytest.param("[\ud800]", id="a lone surrogate"),
        pytest.param("[" + "1" * 100_000 + "]", id="a number of 100,000 digits"),
    ],
)
def test_what_is_no_json5_is_refused_with_an_error(text):
    with pytest.raises(Json5Error):
        parse_json5(text)


@pytest.mark.parametrize(
    "line",
    ['{"a": [\n', "{ /* a\n", "{'a\n", '{"a": {\n', "{a: 1,\n"],
    ids=["list", "comment", "string", "object", "member"],
)
def test_objects_that_never_end_are_not_looked_through_again_and_again(line, monkeypatch):
    """Each line of a corrupt file began a search through all that follows: 4,000 lines took 14 seconds."""
    looked_at = 0
    match = json5._TOKEN.match

    class Counted:
        def match(self, text, position):
            nonlocal looked_at
            found = match(text, position)
            looked_at += 1 if found else len(text) - position if text.startswith("/*", position) else 1
            return found

    monkeypatch.setattr(json5, "_TOKEN", Counted())
    looks = []
    for count in (500, 1_000):
        looked_at = 0
        assert read_messages(("{\n  messages: [\n" + line * count).encode()).is_corrupt
        looks.append(looked_at)
    assert looks[1] < looks[0] * 2.5


def test_messages_after_objects_that_never_end_are_still_found():
    broken = '{"a": [\n' * 50
    text = "{\n  messages: [\n" + broken + '    {"role": "user", "content": "the ferry leaves at four"},\n'
    found = read_messages(text.encode())
    assert found.is_corrupt
    assert [message.content for _, message in found.messages] == ["the ferry leaves at four"]


def test_a_message_of_several_lines_is_found_in_a_corrupt_file():
    text = '{\n  messages: [\n    {"a": [\n    {\n      role: "user",\n      content: "at four",\n    },\n'
    found = read_messages(text.encode())
    assert [message.content for _, message in found.messages] == ["at four"]


def test_the_layout_of_a_deep_text_is_read_without_recursion():
    text = "{a: " + "[" * 50_000 + "]" * 50_000 + "}"
    (item,) = container_at(text).items
    assert (item.name, item.value_end) == ("a", len(text) - 1)


@pytest.mark.parametrize("line", ["\n", "\r\n", " \n"])
def test_many_blank_lines_are_read_once(line):
    """The list of messages was looked for from each blank line on: this took minutes."""
    assert read_messages((line * 300_000).encode()).is_corrupt
