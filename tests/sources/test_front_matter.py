"""Front matter is read tolerantly, and text that only looks like it is left in the note."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.sources.front_matter import MAX_LINES, split_front_matter


@pytest.mark.parametrize(
    ("text", "metadata", "body_first_line"),
    [
        pytest.param("---\ntitle: Router\n---\nbody", {"title": "Router"}, 4, id="one key"),
        pytest.param("---\ntitle: Router\n...\nbody", {"title": "Router"}, 4, id="closed by dots"),
        pytest.param("--- \ntitle: Router\n---\t\nbody", {"title": "Router"}, 4, id="blanks behind the marks"),
        pytest.param("---\ntitle: Router\n---", {"title": "Router"}, 4, id="no body"),
        pytest.param("---\n---\nbody", {}, 3, id="empty block"),
        pytest.param("---\n\n---\nbody", {}, 4, id="blank block"),
        pytest.param('---\ntitle: "A: \\"b\\" # c"\n---\n', {"title": 'A: "b" # c'}, 4, id="double quotes"),
        pytest.param("---\ntitle: 'it''s'\n---\n", {"title": "it's"}, 4, id="single quotes"),
        pytest.param("---\ntitle: A # note to self\n---\n", {"title": "A"}, 4, id="comment behind a value"),
        pytest.param("---\ntitle: C#\n---\n", {"title": "C#"}, 4, id="a hash in a word is no comment"),
        pytest.param("---\nurl: http://a.example/x\n---\n", {"url": "http://a.example/x"}, 4, id="colon in a value"),
        pytest.param("---\n# draft\ntitle: A\n---\n", {"title": "A"}, 5, id="comment line"),
        pytest.param("---\ntags: [a, 'b, c', \"d\"]\n---\n", {"tags": "a, b, c, d"}, 4, id="inline list"),
        pytest.param("---\ntags: []\n---\n", {"tags": ""}, 4, id="empty list"),
        pytest.param("---\ntags:\n  - a\n  - 'b'\n---\n", {"tags": "a, b"}, 6, id="block list"),
        pytest.param("---\ntags:\n- a\n- b\n---\n", {"tags": "a, b"}, 6, id="block list at the margin"),
        pytest.param("---\ntags: [a,\n  b]\n---\n", {"tags": "a, b"}, 5, id="list over two lines"),
        pytest.param("---\nabout: >-\n  one\n  two\n---\n", {"about": "one two"}, 6, id="folded text"),
        pytest.param("---\nTitle: A\nempty:\n---\n", {"title": "A", "empty": ""}, 5, id="lower case, empty value"),
        pytest.param("---\n标题: 笔记\n---\n", {"标题": "笔记"}, 4, id="keys in any script"),
        pytest.param("title: A\n---\n", {}, 1, id="no opening mark"),
        pytest.param("\n---\ntitle: A\n---\n", {}, 1, id="not on the first line"),
        pytest.param("---\ntitle: A\nbody", {}, 1, id="never closed"),
        pytest.param("----\ntitle: A\n---\n", {}, 1, id="four dashes are a rule"),
        pytest.param("---\nSome text between rules.\n---\nmore", {}, 1, id="prose between two rules"),
        pytest.param("---\ntitle: A\nand then prose\n---\n", {}, 1, id="prose below a key"),
        pytest.param("---\n# Heading\n---\n", {}, 1, id="a heading between two rules"),
        pytest.param("---\n- item\n---\n", {}, 1, id="a list between two rules"),
        pytest.param("", {}, 1, id="empty text"),
    ],
)
def test_split_front_matter(text, metadata, body_first_line):
    assert split_front_matter(text) == (metadata, body_first_line)


@pytest.mark.parametrize(("lines", "is_front_matter"), [(MAX_LINES, True), (MAX_LINES + 1, False)])
def test_a_very_long_block_is_not_front_matter(lines, is_front_matter):
    text = "---\n" + "key: value\n" * lines + "---\nbody"
    assert split_front_matter(text) == (({"key": "value"}, lines + 3) if is_front_matter else ({}, 1))


@given(st.lists(st.text("ab:-#[]'\"|>{}, \\\t", max_size=12), max_size=8))
def test_any_block_is_read_or_left_alone(lines):
    text = "\n".join(["---", *lines, "---", "body"])
    metadata, body_first_line = split_front_matter(text)
    assert body_first_line == 1 or text.split("\n")[body_first_line - 2].rstrip() == "---"
    assert all(isinstance(value, str) for value in metadata.values())
