"""Plans how the stored chunks of a document become the new ones, for every storage engine."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from notewell.types import PreparedChunk


@dataclass(frozen=True, slots=True)
class StoredRow:
    """What is needed of a stored chunk to see whether a new one is the same."""

    id: int
    embedded_hash: str
    context_length: int
    first_line: int
    last_line: int
    turn: int
    parts: int


@dataclass(frozen=True, slots=True)
class ChunkChanges:
    """How the chunks of a document become the new ones."""

    moved: tuple[tuple[int, PreparedChunk], ...]  # same content in another place
    reworded: tuple[tuple[int, PreparedChunk], ...]  # same embedded text, split otherwise between context and text
    added: tuple[PreparedChunk, ...]
    removed: tuple[int, ...]


def plan_chunks(old: Sequence[StoredRow], new: Sequence[PreparedChunk]) -> ChunkChanges:
    """Pair chunks by embedded hash, in order, each at most once; what is left over was added or removed."""
    waiting: defaultdict[str, deque[StoredRow]] = defaultdict(deque)
    for row in old:
        waiting[row.embedded_hash].append(row)
    moved, reworded, added = [], [], []
    for prepared in new:
        chunk = prepared.chunk
        same = waiting[chunk.embedded_hash]
        if not same:
            added.append(prepared)
            continue
        row = same.popleft()
        if row.context_length != len(chunk.context):
            reworded.append((row.id, prepared))
        if (row.first_line, row.last_line, row.turn, row.parts) != place_of(prepared):
            moved.append((row.id, prepared))
    removed = [row.id for rows in waiting.values() for row in rows]
    return ChunkChanges(tuple(moved), tuple(reworded), tuple(added), tuple(removed))


def place_of(prepared: PreparedChunk) -> tuple[int, int, int, int]:
    """Return first line, last line, turn and parts: what changes when a chunk moves."""
    chunk = prepared.chunk
    return chunk.first_line, chunk.last_line, chunk.turn, prepared.parts
