"""Ranked chunks in, the same with neighbours joined out: an answer that runs on in the next chunk is one hit; pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.types import StoredChunk

LONGEST_JOINED = 700  # characters: what a snippet shows; a longer whole would hide more than it joins
JOIN_POOL = 24  # the best so many are looked at; the limit does not matter, so that any k is a prefix of k+n


def joined_groups(chunks: Sequence[StoredChunk]) -> list[tuple[list[int], StoredChunk]]:
    """Return groups of positions in rank order of their best member, each with the chunk that covers it.

    Chunks of one file whose lines touch or overlap become one. Pieces of a single long line stay apart: their lines do
    not say what lies between them.
    """
    groups: list[tuple[list[int], StoredChunk]] = []
    files = Counter((chunk.source, chunk.path) for chunk in chunks)
    for position, chunk in enumerate(chunks):
        members, whole = [position], chunk
        if files[chunk.source, chunk.path] == 1:  # most are alone in their file
            groups.append((members, whole))
            continue
        while True:
            touching = next((at for at, (_, other) in enumerate(groups) if _joined(whole, other)), None)
            if touching is None:
                break
            others, other = groups.pop(touching)
            members, whole = sorted(others + members), _joined(whole, other) or whole
        place = next((at for at, (others, _) in enumerate(groups) if others[0] > members[0]), len(groups))
        groups.insert(place, (members, whole))
    return groups


def _joined(one: StoredChunk, other: StoredChunk) -> StoredChunk | None:
    """Return the chunk that covers both, or None if they do not touch or cannot be put together line by line."""
    if one.path != other.path or one.source != other.source:
        return None
    first, second = sorted((one, other), key=lambda chunk: (chunk.first_line, chunk.last_line))
    shared = first.last_line - second.first_line + 1  # lines that both hold
    if shared < 0:
        return None
    lines, more = first.text.split("\n"), second.text.split("\n")
    if len(lines) != _span(first) or len(more) != _span(second) or len(more) <= shared:
        return None
    text = "\n".join(lines + more[shared:])
    if lines[len(lines) - shared :] != more[:shared] or len(text) > LONGEST_JOINED:
        return None
    return replace(first, last_line=second.last_line, text=text)


def _span(chunk: StoredChunk) -> int:
    return chunk.last_line - chunk.first_line + 1
