"""Tells which days a chunk is about: the date of its note, or one in the headings above it ("## 2026-02-03")."""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from notewell.types import StoredChunk

LONGEST = timedelta(days=31)  # "2026 goals" is about everything that year
_YEAR = re.compile(r"(?:19|20)\d\d")  # without one a heading's "3 February", or "last week", is nobody's date
_ANY_DAY = date(2000, 1, 1)  # only days with a year count, and those are the same whenever they are read
_OWN_HEADINGS = re.compile(r"(?:#{1,6}[ \t].*(?:\n+|$))+")


def days_of(chunk: StoredChunk) -> tuple[date, date] | None:
    """Return the first and last day that the chunk is about; None when neither its note nor a heading has a date."""
    return (chunk.dated, chunk.dated) if chunk.dated else heading_days(chunk)


def names_days(chunk: StoredChunk, since: date | None, until: date | None, today: date | None) -> bool:
    """Say whether the text names a time that lies within these days."""
    from notewell.search.times.moments import fold, moments

    written = chunk.dated or today or _ANY_DAY  # "last week" in a note is the week before it was written
    first, last = since or date.min, until or date.max
    return any(
        moment.span and first <= moment.span.first and moment.span.last <= last
        for moment in moments(fold(chunk.text), chunk.text, written)
    )


def heading_days(chunk: StoredChunk) -> tuple[date, date] | None:
    """Return the first and last day named by the headings of a chunk, the nearest heading first; None without one."""
    own = _OWN_HEADINGS.match(chunk.text)
    return _days_in(f"{chunk.context}\n{own[0]}" if own else chunk.context)


@lru_cache(maxsize=4096)  # reading one takes 0.1 ms, and chunks share their headings
def _days_in(headings: str) -> tuple[date, date] | None:
    if not _YEAR.search(headings):
        return None
    from notewell.search.times.moments import fold, moments  # whoever asks has loaded it to read the question

    for moment in reversed(moments(fold(headings), headings, _ANY_DAY)):
        span = moment.span
        written = headings[moment.start : moment.end]
        if span and span.last - span.first < LONGEST and _YEAR.search(written):
            return span.first, span.last
    return None
