"""Entries of notes: read as they were written, whatever their text says, and in the form of earlier releases."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notewell.text.entries import (
    CATEGORIES,
    Entry,
    changed_comments,
    closed_text,
    find_entries,
    open_code_block,
    without_comments,
)

WHEN = datetime(2026, 11, 18, 14, 30, 5, tzinfo=timezone(timedelta(hours=2)))
FACT = Entry("The guest wifi is heron-guest.", "k3f9a2qx", WHEN, "main", "command line", "fact", 7)
NOTED = "_Noted 2026-11-16 09:05 +0200 by main, from the command line._"


def written(*entries: Entry, above: str = "# Day\n\n") -> str:
    return above + "\n\n".join("\n".join(entry.lines) for entry in entries) + "\n"


def facts_of(entry: Entry) -> Entry:
    return replace(entry, first_line=0, last_line=0, comment_line=0)


def test_the_form_is_the_documented_one():
    text, comment = FACT.lines
    assert text == "The guest wifi is heron-guest."
    assert comment.startswith("<!-- notewell id=k3f9a2qx date=2026-11-18T14:30:05+02:00 author=main ")
    assert comment.endswith(' source="command line" category=fact importance=7 -->')


def test_an_entry_is_read_as_it_was_written():
    entry = replace(FACT, replaces=("aaaa2222", "bbbb3333"), replaced_by="cccc4444", replaced_at=WHEN)
    (found,) = find_entries(written(entry)).entries
    assert facts_of(found) == entry
    assert (found.first_line, found.last_line, found.comment_line) == (3, 3, 4)


def test_entries_of_earlier_releases_are_read():
    found = find_entries(f"# Day\n\nBy hand.\n\nThe door is green.\nAnd low.\n\n{NOTED}\n\nBy hand, too.\n")
    (entry,) = found.entries
    assert entry.text == "The door is green.\nAnd low."
    assert (entry.first_line, entry.last_line, entry.comment_line) == (5, 6, 8)
    assert (entry.author, entry.source) == ("main", "the command line")
    assert entry.date == datetime(2026, 11, 16, 9, 5, tzinfo=timezone(timedelta(hours=2)))
    assert (entry.category, entry.importance) == ("other", 5)
    assert found.comment_lines == {8}


def test_the_id_of_an_old_entry_stays_the_same_when_lines_are_added_above():
    note = f"The door is green.\n\n{NOTED}\n"
    (before,) = find_entries(note).entries
    (after,) = find_entries(f"# New\n\nLine.\n\n{note}").entries
    assert before.id == after.id
    assert len(before.id) == 8


def test_a_paragraph_may_be_labelled_by_hand():
    (entry,) = find_entries("We ship on Fridays.\n<!-- notewell category=decision importance=9 -->\n").entries
    assert (entry.text, entry.category, entry.importance) == ("We ship on Fridays.", "decision", 9)
    assert entry.id
    assert entry.date is None


@pytest.mark.parametrize(
    ("attributes", "category", "importance"),
    [
        ("category=idea importance=11", "other", 5),
        ("category= importance=0", "other", 5),
        ("importance=-3 date=tomorrow", "other", 5),
        ('category="fact" importance="8" colour=red', "fact", 8),
        ("importance=٣ blocks=many", "other", 5),
        ("", "other", 5),
    ],
)
def test_what_a_hand_wrote_wrong_has_the_default(attributes, category, importance):
    (entry,) = find_entries(f"Text.\n<!-- notewell {attributes} -->").entries
    assert (entry.category, entry.importance) == (category, importance)


@pytest.mark.parametrize(
    ("note", "texts"),
    [
        pytest.param("```\ncode\n<!-- notewell id=a -->\n```\n", [], id="in a code block"),
        pytest.param("~~~~\n```\nx\n<!-- notewell id=a -->\n~~~\n~~~~\n", [], id="in a longer block"),
        pytest.param("a\n<!-- notewell id=a -->\nb\n<!-- notewell id=b -->", ["a", "b"], id="without blank lines"),
        pytest.param("a\n\n<!-- notewell id=a -->\n", ["a"], id="a formatter put a blank line there"),
        pytest.param("a\n\n\n<!-- notewell id=a -->\n", [], id="its text was deleted"),
        pytest.param("a\n<!-- notewell id=a -->\n<!-- notewell id=b -->", ["a"], id="text of the second is gone"),
        pytest.param("<!-- notewell id=a -->\n", [], id="nothing above"),
        pytest.param("a\n<!-- another comment -->\n", [], id="another comment"),
        pytest.param("a\n<!-- notewellness -->\n", [], id="another word"),
        pytest.param("a <!-- notewell id=a -->\n", [], id="not a line of its own"),
        pytest.param("by hand\n\na\n\nb\n<!-- notewell id=a blocks=2 -->", ["a\n\nb"], id="two blocks"),
        pytest.param(
            "a\n<!-- notewell -->\n\nb\n<!-- notewell blocks=9 -->", ["a", "b"], id="more blocks than there are"
        ),
        pytest.param("- a\n  <!-- notewell id=a -->\n", ["- a"], id="in a list"),
    ],
)
def test_what_is_an_entry(note, texts):
    assert [entry.text for entry in find_entries(note).entries] == texts


def test_front_matter_is_no_text():
    note = "---\ntitle: x\n---\n<!-- notewell id=a -->\ntext\n<!-- notewell id=b -->\n"
    assert [entry.text for entry in find_entries(note, body_first_line=4).entries] == ["text"]


def test_comments_are_blanked_and_lines_keep_their_number():
    note = written(FACT, replace(FACT, text="Two.\n\nBlocks."))
    blank = without_comments(note)
    assert "notewell" not in blank
    assert blank.count("\n") == note.count("\n")
    assert without_comments(f"a\n\n{NOTED}\n") == "a\n\n\n"


def test_an_entry_that_loses_lines_loses_its_comment_with_the_last():
    note = "by hand\n\n" + "\n".join(replace(FACT, text="a\n\nb\nc").lines)
    assert [entry.text for entry in find_entries(note).entries] == ["a\n\nb\nc"]
    assert changed_comments(note, {1}) == {}
    assert changed_comments(note, {3, 5, 6}) == {7: None}
    ((line, comment),) = changed_comments(note, {3}).items()
    kept = [text for n, text in enumerate(note.split("\n"), start=1) if n not in {3, line}]
    assert [entry.text for entry in find_entries("\n".join([*kept, comment])).entries] == ["b\nc"]


# --- any text ------------------------------------------------------------------------------------

LOOKALIKES = [
    "<!-- notewell id=x -->",
    "\\<!-- notewell id=x -->",
    "    <!-- notewell -->",
    NOTED,
    f"\\\\{NOTED}",
    "<!--",
]
MARKDOWN = ["```", "````python", "~~~", "  ```", "# Heading", "---", "- item", "=====", '"quoted" & <b>', "", "", "-->"]
PIECES = st.sampled_from([*LOOKALIKES, *MARKDOWN, FACT.comment, "plain", "ends in -->", "a\x0bb\x85c\u2028d"])
CHARACTERS = "ab \t`~<!->\\#_=\"'&;:.,\x00\x0b\x1f\x85\xa0\u2028é漢🦆"
LINES = st.lists(PIECES | st.text(CHARACTERS, max_size=12), max_size=8)
VALUES = PIECES | st.text(CHARACTERS + "\r\n", max_size=12)
MOMENTS = st.integers(0, 10**6).map(lambda minutes: WHEN + timedelta(minutes=minutes))


@st.composite
def texts(draw):
    """Texts as they are written: `entry_text` leaves no blanks at line ends and no blank lines at the ends."""
    lines = [line.rstrip() for line in draw(LINES)]
    return closed_text("\n".join(lines).strip() or "x")


@st.composite
def entries(draw):
    return Entry(
        draw(texts()),
        date=draw(st.none() | MOMENTS),
        author=draw(VALUES),
        source=draw(VALUES),
        category=draw(st.sampled_from(CATEGORIES)),
        importance=draw(st.integers(1, 10)),
        replaces=draw(st.sampled_from([(), ("aaaa2222",), ("aaaa2222", "bbbb3333")])),
    )


def plain(value: str) -> str:
    return " ".join(value.replace("\0", "").split())


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])  # other tests may run beside it
@given(st.lists(entries(), max_size=4), LINES)
def test_any_text_comes_back(remembered, by_hand):
    above = closed_text("\n".join(by_hand).replace("notewell", "other").replace("_Noted", "Noted"))
    note = written(*remembered, above=f"{above}\n\n")
    found = find_entries(note).entries
    meant = [replace(entry, author=plain(entry.author), source=plain(entry.source)) for entry in remembered]
    assert [facts_of(entry) for entry in found] == meant
    lines = note.split("\n")
    assert [lines[entry.comment_line - 1] for entry in found] == [entry.comment for entry in remembered]
    assert find_entries(without_comments(note)).entries == ()


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(LINES)
def test_any_note_can_be_read(lines):
    note = "\n".join(lines)
    found = find_entries(note)
    assert without_comments(note).count("\n") == note.count("\n")
    before = 0
    for entry in found.entries:
        assert before < entry.first_line <= entry.last_line < entry.comment_line
        before = entry.comment_line
    for gone in range(1, len(lines) + 1):
        changed_comments(note, {gone})
    assert open_code_block(closed_text(note)) == ""


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param(
            "&#" + "9" * 5000 + ";", "&#" + "9" * 5000 + ";", id="a number with more digits than Python reads"
        ),
        pytest.param("a &amp; b &#45;", "a & b -", id="as it is written here"),
        pytest.param("&#xD800;", "\N{REPLACEMENT CHARACTER}", id="half of a pair"),
    ],
)
def test_references_in_a_comment(written, read):
    (entry,) = find_entries(f'The ferry leaves at four.\n<!-- notewell id=a author="{written}" -->\n').entries
    assert entry.author == read
