"""Turns what a database holds into the values of the memory, and says so when it cannot be what was stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date

from notewell.errors import IndexCorruptError
from notewell.text.entries import CATEGORIES, checked_category
from notewell.types import EmbedderIdentity, EntryLabel, Match


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
