"""A chunk in, the days that the headings above it name out: "## 2026-02-03" in a note that is otherwise evergreen."""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.types import StoredChunk

LONGEST = timedelta(days=31)  # "2026 goals" is about everything that year
_YEAR = re.compile(r"(?:19|20)\d\d")  # without one a heading's "3 February", or "last week", is nobody's date
_ANY_DAY = date(2000, 1, 1)  # only days with a year count, and those are the same whenever they are read
_OWN_HEADINGS = re.compile(r"(?:#{1,6}[ \t].*(?:\n+|$))+")


def heading_days(chunk: StoredChunk) -> tuple[date, date] | None:
    """Return the first and last day named by the headings of a chunk, the nearest heading first; None without one."""
    own = _OWN_HEADINGS.match(chunk.text)
    return _days_in(f"{chunk.context}\n{own[0]}" if own else chunk.context)


@lru_cache(maxsize=4096)  # reading one takes 0.1 ms, and chunks share their headings
def _days_in(headings: str) -> tuple[date, date] | None:
    if not _YEAR.search(headings):
        return None
    from recollect.search.times.moments import fold, moments  # whoever asks has loaded it to read the question

    for moment in reversed(moments(fold(headings), headings, _ANY_DAY)):
        span = moment.span
        written = headings[moment.start : moment.end]
        if span and span.last - span.first < LONGEST and _YEAR.search(written):
            return span.first, span.last
    return None
