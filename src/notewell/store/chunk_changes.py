"""Plans how the stored chunks of a document become the new ones, for every storage engine."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from notewell.types import PreparedChunk, StoredDocument

# First line, last line, turn, parts, and the id, category and importance of an entry.
Place = tuple[int, int, int, int, str | None, str | None, int | None]
_NO_ENTRY = (None, None, None)
STORED_ROW = "id, embedded_hash, context_length, first_line, last_line, turn, parts, entry, category, importance"
PENDING, EMBEDDED, SKIPPED = 0, 1, 2  # states of `chunks.has_vector`


@dataclass(frozen=True, slots=True)
class StoredRow:
    """What is needed of a stored chunk to see whether a new one is the same; the columns are `STORED_ROW`."""

    id: int
    embedded_hash: str
    context_length: int
    first_line: int
    last_line: int
    turn: int
    parts: int
    entry: str | None = None
    category: str | None = None
    importance: int | None = None

    @property
    def place(self) -> Place:
        """What changes when the chunk moves."""
        entry = (self.entry, self.category, self.importance)
        return self.first_line, self.last_line, self.turn, self.parts, *entry


@dataclass(frozen=True, slots=True)
class ChunkChanges:
    """How the chunks of a document become the new ones."""

    moved: tuple[tuple[int, PreparedChunk], ...]  # same content in another place, or labelled otherwise
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
        if row.place != place_of(prepared):
            moved.append((row.id, prepared))
    removed = [row.id for rows in waiting.values() for row in rows]
    return ChunkChanges(tuple(moved), tuple(reworded), tuple(added), tuple(removed))


def place_of(prepared: PreparedChunk) -> Place:
    """Return what changes when a chunk moves."""
    chunk = prepared.chunk
    return chunk.first_line, chunk.last_line, chunk.turn, prepared.parts, *(chunk.label or _NO_ENTRY)


def changeable(document: StoredDocument) -> tuple[int | str | None, ...]:
    """Return what changes of a document: size, mtime, ctime, inode, content hash, day and whether it is private."""
    dated = None if document.dated is None else document.dated.toordinal()
    _, _, size, mtime_ns, ctime_ns, inode = document.stamp
    return size, mtime_ns, ctime_ns, inode, document.content_hash, dated, int(document.private)
