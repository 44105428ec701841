"""Turns what a database holds into the values of the memory, for the snapshots of every storage engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import date

from notewell.errors import IndexCorruptError
from notewell.text.entries import CATEGORIES, checked_category
from notewell.types import Counts, EmbedderIdentity, EntryLabel, Match, PendingChunk, SpokenLine, Term

LEAST_TERMS = 200  # looked at for a group, because some may be of hidden documents only
META_FOR_ALL = frozenset({"profile", "building", "workspace"})  # the rest may say how much is private


def day_of(number: int | None) -> date | None:
    """Return the day of a stored number; None is evergreen."""
    try:
        return None if number is None else date.fromordinal(number)
    except (OverflowError, TypeError, ValueError) as error:
        raise IndexCorruptError(f"a date in the index is corrupt: {number!r}") from error


def label_of(stored: Sequence[str | int | None]) -> EntryLabel | None:
    """Return the label of an entry from its id, category and importance; None where the chunk is none."""
    if stored[0] is None:
        return None
    entry, category, importance = stored
    if type(entry) is not str or category not in CATEGORIES or type(importance) is not int:
        raise IndexCorruptError(f"the label of an entry in the index is corrupt: {stored!r}")
    return EntryLabel(entry, checked_category(category), importance)


def embedder_of(recorded: str | None) -> EmbedderIdentity | None:
    """Return the identity that `set_embedder` recorded; raises TypeError or ValueError when it is none."""
    return None if recorded is None else EmbedderIdentity(**json.loads(recorded))


def best_first(match: Match) -> tuple[float, int]:
    """Sort matches by score, ties by chunk id."""
    return -match.score, match.chunk_id


def pending_chunk(chunk_id: int, digest: bytes, context: str, text: str) -> PendingChunk:
    """Return a chunk with the text that is embedded."""
    return PendingChunk(chunk_id, digest.hex(), f"{context}\n{text}" if context else text)


def without(whole: Counts, hidden: Sequence[int]) -> Counts:
    """Return the counts less the files, chunks, vectors and pending chunks that are hidden."""
    files, chunks, vectors, pending = hidden
    return Counts(
        files=whole.files - files,
        chunks=whole.chunks - chunks,
        pending=whole.pending - pending,
        embedded=whole.embedded - vectors,
    )


def first_of_turns(found: Iterable[tuple[int, str, int]]) -> list[SpokenLine]:
    """Return the first chunk of each message, from lines, texts and turns in order."""
    messages: dict[int, SpokenLine] = {}
    for line, text, turn in found:
        messages.setdefault(turn, SpokenLine(line, text, turn))
    return list(messages.values())


def seen_terms(
    find: Callable[[int], Sequence[str]], used: Callable[[Sequence[Term]], Sequence[int]], limit: int
) -> list[str]:
    """Return the terms that a group may see: those that `used` counts in a document of theirs."""
    found = find(max(limit, LEAST_TERMS))
    counts = used([Term((term,)) for term in found])
    return [term for term, count in zip(found, counts, strict=True) if count][:limit]
