"""A remembered entry has its chunks to itself, with its label, and its comment is in no chunk."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.chunking import chunk_document
from notewell.text.entries import Entry, closed_text, find_entries, without_comments

from .documents import assert_covers_body, assert_in_order, assert_light_enough, assert_spans_exact, read_document
from .test_properties import MARKDOWN, OVERLAPS, TOKENS

WIFI = Entry("The guest wifi is heron-guest.", "aaaa2222", category="fact", importance=7)
SHIP = Entry("We ship on Fridays.\n\n- never before noon", "bbbb3333", category="decision")


def chunks_of(text, *, style="markdown", tokens=400, overlap=80):
    return chunk_document(read_document(text), style=style, tokens=tokens, overlap=overlap)


def note_of(*parts: Entry | str) -> str:
    return "\n\n".join(part if isinstance(part, str) else "\n".join(part.lines) for part in parts) + "\n"


@pytest.mark.parametrize("style", ["markdown", "lines"])
def test_each_entry_is_a_chunk_and_so_is_what_lies_between(style):
    note = note_of("# Day", WIFI, "By hand.", SHIP, "More by hand.")
    chunks = chunks_of(note, style=style)
    assert [(chunk.text.strip(), chunk.label) for chunk in chunks] == [
        ("# Day\n\nThe guest wifi is heron-guest.", WIFI.label),
        ("By hand.", None),
        ("We ship on Fridays.\n\n- never before noon", SHIP.label),
        ("More by hand.", None),
    ]
    lines = note.split("\n")
    assert lines[chunks[2].first_line - 1] == "We ship on Fridays."
    assert lines[chunks[2].last_line - 1] == "- never before noon"


def test_headings_stand_over_the_entries_below_them():
    chunks = chunks_of(note_of("# Day\n\nBy hand.\n\n## Network", WIFI, SHIP))
    assert [(chunk.context, chunk.text.split("\n")[0]) for chunk in chunks] == [
        ("", "# Day"),
        ("Day", "## Network"),
        ("Day > Network", "We ship on Fridays."),
    ]


def test_a_long_entry_has_several_chunks_with_one_label():
    long = replace(WIFI, text="\n".join(f"line {number} of a long entry" for number in range(200)))
    chunks = chunks_of(note_of(SHIP, long, SHIP), tokens=100, overlap=20)
    assert [chunk.label for chunk in chunks] == [SHIP.label, *[WIFI.label] * (len(chunks) - 2), SHIP.label]
    assert len(chunks) > 6
    assert all("Fridays" not in chunk.text for chunk in chunks[1:-1])


def test_an_entry_of_an_earlier_release_has_its_own_chunk():
    note = "# Day\n\nBy hand.\n\nThe door is green.\n\n_Noted 2026-11-16 09:05 +0200 by main, from x._\n\nLater.\n"
    assert [(chunk.text, chunk.label is not None) for chunk in chunks_of(note)] == [
        ("# Day\n\nBy hand.", False),
        ("The door is green.", True),
        ("Later.", False),
    ]


def test_a_comment_in_a_code_block_is_code():
    note = f"```\n{WIFI.comment}\n```\n"
    assert [(chunk.text, chunk.label) for chunk in chunks_of(note)] == [(note.strip(), None)]


@st.composite
def notes(draw):
    parts = draw(st.lists(st.tuples(MARKDOWN, st.booleans()), max_size=6))
    texts = (
        (closed_text("\n".join(line.rstrip() for line in text.split("\n")).strip() or "x"), is_entry)
        for text, is_entry in parts
    )
    return note_of(*(Entry(text, f"entry{n:03}") if is_entry else text for n, (text, is_entry) in enumerate(texts)))


@pytest.mark.slow
@settings(max_examples=150)
@given(note=notes(), tokens=TOKENS, overlap=OVERLAPS, style=st.sampled_from(["markdown", "lines"]))
def test_no_chunk_holds_lines_of_two_entries(note, tokens, overlap, style):
    document = read_document(note)
    found = find_entries(note, body_first_line=document.body_first_line)
    blanked = replace(document, text=without_comments(note, found))
    chunks = chunk_document(document, style=style, tokens=tokens, overlap=overlap)
    if style == "markdown":
        assert_light_enough(chunks, tokens)
        assert_spans_exact(blanked, chunks)
        assert_in_order(chunks)
        assert_covers_body(blanked, chunks)
    owners = {line: entry.label for entry in found.entries for line in range(entry.first_line, entry.last_line + 1)}
    for chunk in chunks:
        touched = {owners.get(line) for line in range(chunk.first_line, chunk.last_line + 1)}
        assert touched <= {chunk.label, None}
    assert {chunk.label for chunk in chunks if chunk.label} == {entry.label for entry in found.entries}
