"""Splits documents into chunks with exact line spans."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from notewell.chunking.dialogue import chunk_dialogue, chunk_message
from notewell.chunking.lines import chunk_lines
from notewell.chunking.markdown import chunk_markdown
from notewell.settings.workspace import TEMPLATE
from notewell.text.entries import find_entries, without_comments
from notewell.types import Chunk, Document

__all__ = [
    "CHUNKING_VERSION",
    "ChunkingStyle",
    "chunk_dialogue",
    "chunk_document",
    "chunk_lines",
    "chunk_markdown",
    "chunk_message",
]

CHUNKING_VERSION = 5  # raised whenever a document could give other chunks: indexes of another version are rebuilt

ChunkingStyle = Literal["markdown", "lines"]
_STYLES = {"markdown": chunk_markdown, "lines": chunk_lines}


def chunk_document(document: Document, *, style: ChunkingStyle, tokens: int, overlap: int) -> list[Chunk]:
    """Return the chunks of a document in order, each of at most `tokens`; blank text gives none.

    Transcripts are cut by messages, whatever the style. A remembered entry of a note shares no chunk with other text,
    and the comment below it is in none.
    """
    if document.stamp.source == "sessions":
        return chunk_dialogue(document, tokens=tokens)
    found = find_entries(document.text, body_first_line=document.body_first_line)
    if found.comment_lines:
        document = replace(document, text=without_comments(document.text, found))
    if document.text.startswith(TEMPLATE):  # nobody has to find what `init` writes
        document = replace(document, text="\n" * TEMPLATE.count("\n") + document.text[len(TEMPLATE) :])
    return _STYLES[style](document, tokens=tokens, overlap=overlap, entries=found.entries)
