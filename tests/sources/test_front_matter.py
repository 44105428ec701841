"""Front matter is read tolerantly, and text that only looks like it is left in the note."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.sources.notes import (
    LONGEST_FRONT_MATTER,
    date_in_front_matter,
    date_in_name,
    note_date,
    split_front_matter,
)


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


@pytest.mark.parametrize(
    ("lines", "is_front_matter"), [(LONGEST_FRONT_MATTER, True), (LONGEST_FRONT_MATTER + 1, False)]
)
def test_a_very_long_block_is_not_front_matter(lines, is_front_matter):
    text = "---\n" + "key: value\n" * lines + "---\nbody"
    assert split_front_matter(text) == (({"key": "value"}, lines + 3) if is_front_matter else ({}, 1))


@given(st.lists(st.text("ab:-#[]'\"|>{}, \\\t", max_size=12), max_size=8))
def test_any_block_is_read_or_left_alone(lines):
    text = "\n".join(["---", *lines, "---", "body"])
    metadata, body_first_line = split_front_matter(text)
    assert body_first_line == 1 or text.split("\n")[body_first_line - 2].rstrip() == "---"
    assert all(isinstance(value, str) for value in metadata.values())


# --- dates -------------------------------------------------------------------------------------

DAY = date(2026, 11, 15)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("memory/2026-11-15.md", DAY),
        ("2026-11-15.md", DAY),
        ("memory/2026-11-15-standup.md", DAY),
        ("memory/2026-11-15_standup.md", DAY),
        ("memory/2026-11-15 standup v1.2.md", DAY),
        ("memory/2026-11-15-1430.md", DAY),
        ("memory/projects/billing/2026-11-15-incident.md", DAY),
        ("@vault/daily/2026-11-15.MD", DAY),
        ("memory/2024-02-29.md", date(2024, 2, 29)),
        ("memory/2026-02-29.md", None),
        ("memory/2026-02-30.md", None),
        ("memory/2026-13-01.md", None),
        ("memory/2026-00-10.md", None),
        ("memory/0000-01-01.md", None),
        ("memory/2026-11-150.md", None),
        ("memory/2026-11-15b.md", None),
        ("memory/2026-11-15.draft.md", None),
        ("memory/12026-11-15.md", None),
        ("memory/2026-1-5.md", None),
        ("memory/20261115.md", None),
        ("memory/2026-11.md", None),
        ("memory/notes-2026-11-15.md", None),
        ("memory/2026-11-15/notes.md", None),
        ("memory/٢٠٢٦-١١-١٥.md", None),
        ("MEMORY.md", None),
        ("memory.md", None),
        ("", None),
    ],
)
def test_date_in_name(path, expected):
    assert date_in_name(path) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("date: 2026-11-15", DAY),
        ('date: "2026-11-15"', DAY),
        ("date: '2026-11-15'", DAY),
        ("Date: 2026-11-15", DAY),
        ("date:   2026-11-15   # the day of the call", DAY),
        ("date: 2026/11/15", DAY),
        ("date: 2026/11/15 09:30", DAY),
        ("date: 2026-11-15T10:00:00Z", DAY),
        ("date: 2026-11-15t10:00:00z", DAY),
        ("date: 2026-11-15T23:59:59.123+09:00", DAY),
        ("date: 2026-11-15 10:00", DAY),
        ("date: 2026-11-15 10:00:00 -0700", DAY),
        ("date: 2024-02-29", date(2024, 2, 29)),
        ("date: 2026-02-29", None),
        ("date: 2026-13-01", None),
        ("date: 0000-01-01", None),
        ("date: 2026-11/15", None),
        ("date: 2026-1-5", None),
        ("date: 20261115", None),
        ("date: 15.11.2026", None),
        ("date: 11/15/2026", None),
        ("date: 2026-11", None),
        ("date: 2026-11-15 to 2026-11-17", None),
        ("date: 2026-11-15T", None),
        ("date: 15 November 2026", None),
        ("date: ٢٠٢٦-١١-١٥", None),
        ("date: today", None),
        ("date:", None),
        ("created: 2026-11-15", None),
        ("update: 2026-11-15", None),
    ],
)
def test_date_in_front_matter(line, expected):
    metadata, _ = split_front_matter(f"---\n{line}\n---\nMet Ana.\n")
    assert date_in_front_matter(metadata) == expected


@pytest.mark.parametrize(
    ("path", "metadata", "expected"),
    [
        pytest.param("memory/call.md", {"date": "2026-11-15"}, DAY, id="from the front matter"),
        pytest.param("memory/2026-11-15.md", {"date": "2026-03-14"}, DAY, id="the file name comes first"),
        pytest.param("memory/2026-02-30.md", {"date": "2026-11-15"}, DAY, id="a name that only looks like a date"),
        pytest.param("memory/call.md", {"title": "2026-11-15"}, None, id="neither"),
    ],
)
def test_note_date(path, metadata, expected):
    assert note_date(path, metadata) == expected
