"""A message of a conversation is a chunk; one that is too long is several, each with the speaker."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.chunking import chunk_document
from notewell.chunking.lines import QUARTERS, chunk_dialogue, chunk_message, weigh
from notewell.types import Chunk, Document, FileStamp, SpokenLine


def conversation(*lines: str) -> Document:
    return Document(FileStamp("sessions", "sessions/a.jsonl", 0, 0), "".join(f"{line}\n" for line in lines), "")


def message(text: str) -> SpokenLine:
    return SpokenLine(7, text, 3)


def test_every_message_is_a_chunk_however_short():
    chunks = chunk_dialogue(conversation("User: Tea?", "Assistant: Yes.", "User: Thanks."))
    assert chunks == [
        Chunk(1, 1, "User: Tea?", turn=1),
        Chunk(2, 2, "Assistant: Yes.", turn=2),
        Chunk(3, 3, "User: Thanks.", turn=3),
    ]


def test_lines_without_a_message_count_as_lines_and_not_as_turns():
    chunks = chunk_dialogue(conversation("", "User: Tea?", "", "", "Assistant: Yes.", ""))
    assert [(chunk.first_line, chunk.last_line, chunk.turn) for chunk in chunks] == [(2, 2, 1), (5, 5, 2)]


def test_a_conversation_without_a_message_has_no_chunks():
    assert chunk_dialogue(conversation()) == []
    assert chunk_dialogue(conversation("", "")) == []


def test_a_message_that_just_fits_is_not_cut():
    text = "User: " + "a" * 34
    assert weigh(text) == 10 * QUARTERS
    assert chunk_message(message(text), tokens=10) == [Chunk(7, 7, text, turn=3)]
    assert len(chunk_message(message(text + "a"), tokens=10)) == 2


def test_a_long_message_is_cut_between_words_and_every_piece_names_the_speaker():
    words = [f"word{number}" for number in range(60)]
    chunks = chunk_message(message(f"Assistant: {' '.join(words)}"), tokens=20)
    assert len(chunks) > 3
    assert {(chunk.first_line, chunk.last_line, chunk.turn, chunk.context) for chunk in chunks} == {(7, 7, 3, "")}
    assert all(chunk.text.startswith("Assistant: word") for chunk in chunks)
    assert all(weigh(chunk.text) <= 20 * QUARTERS for chunk in chunks)
    assert " ".join(chunk.text.removeprefix("Assistant: ") for chunk in chunks).split() == words


@pytest.mark.parametrize("tokens", [1, 2])
def test_a_limit_without_room_for_the_speaker_cuts_the_text_alone(tokens):
    chunks = chunk_message(message("Assistant: tea"), tokens=tokens)
    assert "".join(chunk.text for chunk in chunks).replace(" ", "") == "Assistant:tea"
    assert all(weigh(chunk.text) <= tokens * QUARTERS for chunk in chunks)


@pytest.mark.parametrize("style", ["markdown", "lines"])
def test_the_style_and_the_overlap_of_notes_change_nothing(style):
    document = conversation("User: # Tea", *(f"Assistant: {number} cups" for number in range(30)))
    assert chunk_document(document, style=style, tokens=10, overlap=5) == chunk_dialogue(document, tokens=10)


@settings(max_examples=100)
@given(
    said=st.lists(st.text(alphabet="ab 数.:", min_size=1, max_size=80), max_size=12),
    later=st.lists(st.text(alphabet="ab 数.:", min_size=1, max_size=80), max_size=4),
    tokens=st.integers(1, 30),
)
def test_what_is_said_later_changes_no_earlier_chunk(said, later, tokens):
    lines = [f"User: {text}" for text in said]
    before = chunk_dialogue(conversation(*lines), tokens=tokens)
    after = chunk_dialogue(conversation(*lines, *(f"Assistant: {text}" for text in later)), tokens=tokens)
    assert after[: len(before)] == before
