"""Splits a conversation into chunks: one for each message, several for a long one."""

from __future__ import annotations

from collections.abc import Iterator

from notewell.chunking.fitting import QUARTERS, cut_line, weigh
from notewell.types import Chunk, Document, SpokenLine


def chunk_message(message: SpokenLine, *, tokens: int = 400) -> list[Chunk]:
    """Return the message as one chunk, or in pieces of at most `tokens`, each beginning with the speaker."""
    return [Chunk(message.line, message.line, text, turn=message.turn) for text in _pieces(message.text, tokens)]


def chunk_dialogue(document: Document, *, tokens: int = 400) -> list[Chunk]:
    """Return the chunks of a whole conversation, one message a line; blank lines stand for what was left out."""
    return [chunk for message in _messages(document.text) for chunk in chunk_message(message, tokens=tokens)]


def _messages(text: str) -> Iterator[SpokenLine]:
    turn = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if line:
            turn += 1
            yield SpokenLine(number, line, turn)


def _pieces(text: str, tokens: int) -> list[str]:
    limit = max(1, tokens) * QUARTERS
    if len(text) * QUARTERS <= limit or weigh(text) <= limit:
        return [text]
    speaker, _, said = text.partition(": ")
    lead = f"{speaker}: "
    room = limit - weigh(lead)
    if room < QUARTERS:  # the limit is too small for a name: cut the text alone
        said, lead, room = text, "", limit
    pieces = (said[start:end].strip() for start, end in cut_line(said, limit=room, overlap=0))
    return [lead + piece for piece in pieces if piece]
