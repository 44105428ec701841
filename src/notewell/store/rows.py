"""Converts rows of documents and chunks, and plans how they change, for every storage engine."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from notewell.errors import IndexCorruptError
from notewell.text.entries import CATEGORIES, checked_category
from notewell.types import (
    Counts,
    EmbedderIdentity,
    EntryLabel,
    Match,
    PendingChunk,
    PreparedChunk,
    SpokenLine,
    StoredDocument,
    Term,
    embedded_text,
)

# First line, last line, turn, parts, and the id, category and importance of an entry.
Place = tuple[int, int, int, int, str | None, str | None, int | None]
_NO_ENTRY = (None, None, None)
STORED_ROW = "id, embedded_hash, context_length, first_line, last_line, turn, parts, entry, category, importance"
PENDING, EMBEDDED, SKIPPED = 0, 1, 2  # states of `chunks.has_vector`


@dataclass(frozen=True, slots=True)
class StoredRow:
    """The columns `STORED_ROW` of a stored chunk, by which a new one is compared."""

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
    """The changes from the stored chunks of a document to the new ones."""

    moved: tuple[tuple[int, PreparedChunk], ...]  # same content in another place, or labelled otherwise
    reworded: tuple[tuple[int, PreparedChunk], ...]  # same embedded text, divided otherwise into context and text
    added: tuple[PreparedChunk, ...]
    removed: tuple[int, ...]


def plan_chunks(old: Sequence[StoredRow], new: Sequence[PreparedChunk]) -> ChunkChanges:
    """Pair chunks by embedded hash, in order, each at most once; the rest was added or removed."""
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
    """Return the columns of a document that change: size, mtime, ctime, inode, content hash, day and privacy."""
    dated = None if document.dated is None else document.dated.toordinal()
    _, _, size, mtime_ns, ctime_ns, inode = document.stamp
    return size, mtime_ns, ctime_ns, inode, document.content_hash, dated, int(document.private)


# --- what was read -------------------------------------------------------------------------------

LEAST_TERMS = 200  # looked up for a group, because some may occur in hidden documents only
META_FOR_ALL = frozenset({"profile", "building", "workspace"})  # the rest may show how much is private


def day_of(number: int | None) -> date | None:
    """Return the day of a stored number; None is evergreen."""
    try:
        return None if number is None else date.fromordinal(number)
    except (OverflowError, TypeError, ValueError) as error:
        raise IndexCorruptError(f"a date in the index is corrupt: {number!r}") from error


def label_of(stored: Sequence[str | int | None]) -> EntryLabel | None:
    """Return the label of an entry from its id, category and importance; None for other text."""
    if stored[0] is None:
        return None
    entry, category, importance = stored
    if type(entry) is not str or category not in CATEGORIES or type(importance) is not int:
        raise IndexCorruptError(f"the label of an entry in the index is corrupt: {stored!r}")
    return EntryLabel(entry, checked_category(category), importance)


def embedder_of(recorded: str | None) -> EmbedderIdentity | None:
    """Return the identity that `set_embedder` recorded; raise TypeError or ValueError if it is invalid."""
    return None if recorded is None else EmbedderIdentity(**json.loads(recorded))


def best_first(match: Match) -> tuple[float, int]:
    """Sort matches by score, ties by chunk id."""
    return -match.score, match.chunk_id


def pending_chunk(chunk_id: int, digest: bytes, context: str, text: str) -> PendingChunk:
    """Return a chunk with the text that is embedded."""
    return PendingChunk(chunk_id, digest.hex(), embedded_text(context, text))


def without(whole: Counts, hidden: Sequence[int]) -> Counts:
    """Return the counts without the hidden files, chunks, vectors and pending chunks."""
    files, chunks, vectors, pending = hidden
    return Counts(
        files=whole.files - files,
        chunks=whole.chunks - chunks,
        pending=whole.pending - pending,
        embedded=whole.embedded - vectors,
    )


def first_of_turns(found: Iterable[tuple[int, str, int]]) -> list[SpokenLine]:
    """Return the first chunk of each message, given lines, texts and turns in order."""
    messages: dict[int, SpokenLine] = {}
    for line, text, turn in found:
        messages.setdefault(turn, SpokenLine(line, text, turn))
    return list(messages.values())


def seen_terms(
    find: Callable[[int], Sequence[str]], used: Callable[[Sequence[Term]], Sequence[int]], limit: int
) -> list[str]:
    """Return the terms that a group may see: those that `used` counts in visible documents."""
    found = find(max(limit, LEAST_TERMS))
    counts = used([Term((term,)) for term in found])
    return [term for term, count in zip(found, counts, strict=True) if count][:limit]
