"""Hits in, their documents with fenced snippets that fit the injection budget out; also who gets citations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from notewell.agents.documents import hit_document
from notewell.sources.privacy import Chat
from notewell.text.fences import fence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notewell.agents.documents import Json
    from notewell.types import Hit, NoteText

__all__ = ["Chat", "Citations", "fenced_file", "fenced_note", "injected_hits", "with_citations"]

Citations = Literal["auto", "on", "off"]

LEAST_PIECE = 80  # characters; less of a cut snippet tells nothing
CUT = " […]"


def with_citations(citations: Citations, chat: Chat) -> bool:
    """Say whether results carry citations: `auto` means in direct chats, where paths are the reader's own."""
    return citations == "on" or (citations == "auto" and chat == "direct")


def injected_hits(hits: Sequence[Hit], *, budget: int, cited: bool) -> list[Json]:
    """Return the first hits whose fenced snippets fit into `budget` characters together; the last may be cut short."""
    shown: list[Json] = []
    room = budget
    for hit in hits:
        snippet = _fenced_within(hit.snippet, hit.citation if cited else hit.path, room)
        if not snippet:
            break
        room -= len(snippet)
        document = hit_document(hit) | {"snippet": snippet}
        if not cited:
            del document["citation"]
        shown.append(document)
    return shown


def fenced_note(note: NoteText, *, cited: bool) -> str:
    """Return the text of a piece of a note, fenced with where it stands."""
    if not note.text:
        return ""
    last = note.first_line + note.line_count - 1
    return fence(note.text, f"{note.path}#L{note.first_line}-L{last}" if cited else note.path)


def fenced_file(text: str, path: str) -> str:
    """Return the whole text of a file, fenced with its path."""
    return fence(text, path)


def _fenced_within(text: str, origin: str, room: int) -> str:
    """Return the fenced text if it fits into `room`, cut if need be; empty when what is left would tell nothing."""
    fenced = fence(text, origin)
    while len(fenced) > room:
        text = text.removesuffix(CUT)
        text = text[: len(text) - max(len(fenced) - room, 0) - len(CUT)]
        if len(text) < LEAST_PIECE:
            return ""
        text += CUT
        fenced = fence(text, origin)
    return fenced
