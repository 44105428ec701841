"""From a document to chunks with terms."""

from __future__ import annotations

import json

import pytest

from notewell import Memory
from notewell.indexing.preparation import SEARCHED_METADATA, Preparation
from notewell.sources.notes import NotesSource
from notewell.text.redaction import REDACTION_VERSION
from notewell.types import SpokenLine


@pytest.fixture
def prepared(tmp_path):
    """Write one note and return its chunks, cut by the given rules."""

    def write(text, *, name="memory/garden-plan.md", **rules):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        source = NotesSource(tmp_path, ())
        return Preparation(**rules).prepare(source.read(source.stamp_of(name)))

    return write


def test_every_chunk_is_found_by_its_text_its_headings_and_its_path(prepared):
    chunks = prepared("# Garden\n\n## Beds\n\nThe roses need pruning.\n")
    assert chunks
    whole = " ".join(chunk.terms()[0] for chunk in chunks).split()
    assert "rose" in whole
    for chunk in chunks:
        assert {"garden", "plan"} <= set(chunk.terms()[1].split())


def test_the_chunks_of_a_note_are_its_parts_and_of_no_message(prepared):
    (alone,) = prepared("# Garden\n\nThe roses need pruning.\n")
    assert (alone.chunk.turn, alone.parts) == (0, 1)
    several = prepared("\n".join(f"Line {number} speaks of roses." for number in range(200)), tokens=50)
    assert len(several) > 2
    assert {(each.chunk.turn, each.parts) for each in several} == {(0, len(several))}


def test_every_message_counts_its_own_parts():
    long = " ".join(f"word{number}" for number in range(100))
    said = [SpokenLine(2, "User: Hi", 1), SpokenLine(5, f"Assistant: {long}", 2), SpokenLine(6, "User: Thanks", 3)]
    first, *pieces, last = Preparation(tokens=50).prepare_messages(said, "sessions/garden-plan.jsonl")
    assert (first.chunk.first_line, first.chunk.turn, first.parts) == (2, 1, 1)
    assert len(pieces) > 2
    assert {(each.chunk.first_line, each.chunk.turn, each.parts) for each in pieces} == {(5, 2, len(pieces))}
    assert (last.chunk.first_line, last.chunk.turn, last.parts) == (6, 3, 1)
    assert "thank" in last.terms()[0].split()
    assert all({"garden", "plan"} <= set(each.terms()[1].split()) for each in (first, *pieces, last))


@pytest.mark.parametrize("key", SEARCHED_METADATA)
def test_front_matter_that_says_what_a_note_is_about_is_searched(prepared, key):
    chunks = prepared(f"---\n{key}: quokka\nmood: bilby\n---\n\nBody text.\n")
    terms = " ".join(chunk.terms()[1] for chunk in chunks).split()
    assert "quokka" in terms
    assert "bilby" not in terms


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param({}, {}, True, id="the same rules"),
        pytest.param({"tokens": 400}, {"tokens": 300}, False, id="another size"),
        pytest.param({"overlap": 80}, {"overlap": 0}, False, id="another overlap"),
        pytest.param({"style": "markdown"}, {"style": "lines"}, False, id="another style"),
    ],
)
def test_the_profile_tells_rules_apart(first, second, same):
    assert (Preparation(**first).profile == Preparation(**second).profile) is same


def test_the_profile_names_the_versions_of_what_cuts_splits_and_hides():
    assert {"chunking", "lexicon", "transcripts", "redaction"} <= set(json.loads(Preparation().profile))
    assert Preparation(redacted=True).profile != Preparation().profile


def test_an_index_from_before_more_secrets_were_known_is_built_anew(tmp_path, monkeypatch):
    (tmp_path / "MEMORY.md").write_text("# Notes\n\nThe harbour is calm.\n", encoding="utf-8")
    with Memory.open(tmp_path, provider="none") as memory:
        memory.index()
        assert not memory.index().rebuilt
    monkeypatch.setattr("notewell.indexing.preparation.REDACTION_VERSION", REDACTION_VERSION + 1)
    with Memory.open(tmp_path, provider="none") as memory:
        assert memory.index().rebuilt


@pytest.mark.parametrize("text", ["", "\n\n\n", "---\ntitle: x\n---\n"], ids=["empty", "blank", "front matter only"])
def test_a_note_without_text_has_no_chunks(prepared, text):
    assert prepared(text) == []


def test_smaller_chunks_cover_the_same_lines(prepared):
    text = "# Log\n\n" + "\n".join(f"Line {i} speaks of subject{i} at some length, as lines do." for i in range(200))
    for tokens in (50, 400):
        chunks = [each.chunk for each in prepared(text, tokens=tokens, overlap=0)]
        covered = {line for chunk in chunks for line in range(chunk.first_line, chunk.last_line + 1)}
        assert set(range(3, 203)) <= covered
