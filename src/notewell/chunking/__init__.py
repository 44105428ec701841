"""Splits documents into chunks with exact line spans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from notewell.settings.workspace import TEMPLATE

if TYPE_CHECKING:
    from notewell.types import Chunk, Document

CHUNKING_VERSION = 5  # raised with every change of the chunks of a document: older indexes are rebuilt

ChunkingStyle = Literal["markdown", "lines"]


def chunk_document(document: Document, *, style: ChunkingStyle, tokens: int, overlap: int) -> list[Chunk]:
    """Return the chunks of a document in order, each of at most `tokens`.

    Transcripts are split by messages, whatever the style. A remembered entry shares no chunk with other text, and its
    comment is in none.
    """
    # 6 ms to import, unless the index is up to date.
    from notewell.chunking.lines import chunk_dialogue, chunk_lines
    from notewell.chunking.markdown import chunk_markdown
    from notewell.text.entries import find_entries, without_comments

    if document.stamp.source == "sessions":
        return chunk_dialogue(document, tokens=tokens)
    found = find_entries(document.text, body_first_line=document.body_first_line)
    if found.comment_lines:
        document = replace(document, text=without_comments(document.text, found))
    if document.text.startswith(TEMPLATE):  # the template of `init` is not searched
        document = replace(document, text="\n" * TEMPLATE.count("\n") + document.text[len(TEMPLATE) :])
    chunked = chunk_markdown if style == "markdown" else chunk_lines
    return chunked(document, tokens=tokens, overlap=overlap, entries=found.entries)
