"""What a query or an option says about time in, what it means for notes out: a gain for some, or a filter."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING

from recollect.errors import QueryError
from recollect.types import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.search.time_words import TimeReading
    from recollect.types import SourceName

CERTAIN_GAIN = 1.25  # "yesterday", "2026-02-03": a note of that day beats one that says about the same
LIKELY_GAIN = 1.1  # "in March" may be content; and what happened is often told some days later
TOLD_LATER = timedelta(days=7)

# What every reading begins with; without it the tables of time words (11 ms to load) are not needed.
_MAY_SPEAK_OF_TIME = re.compile(
    r"\d|day|week|month|year|yester|ago\b|since|before|after|until|between|last |this "
    r"|in (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"|heut|gester|woche|monat|jahr|tag\b|seit|hier\b|semaine|mois|ann[ée]e|jour|depuis"
    r"|hoy|ayer|semana|mes\b|a[ñn]o|d[ií]a|hoje|ontem|m[êe]s|desde"
    r"|[昨今去前上本先明週周月日年]|어제|오늘|지난|이번|작년",
    re.IGNORECASE,
)


def time_reading(query: str, today: date) -> TimeReading | None:
    """Return the time the query asks about, or None."""
    if not _MAY_SPEAK_OF_TIME.search(query):
        return None
    from recollect.search.time_words import read_time

    return read_time(query, today)


def time_gain(reading: TimeReading, days: tuple[date, date] | None) -> float:
    """Return what a score is multiplied by; what has no day, or days that were not asked for, neither gains nor loses.

    `days` are the first and the last day that a chunk is about.
    """
    if days is None or (reading.since and days[1] < reading.since):
        return 1.0
    if reading.until and days[0] > reading.until:
        return LIKELY_GAIN if days[0] - reading.until <= TOLD_LATER else 1.0
    return CERTAIN_GAIN if reading.certain else LIKELY_GAIN


def dated_scope(
    sources: Iterable[SourceName],
    since: str | date | None,
    until: str | date | None,
    on: str | date | None,
    *,
    today: date,
) -> Scope:
    """Return the part of the memory that explicit bounds let through; evergreen notes have no day, so none of them."""
    first, last = _days(since, today)[0], _days(until, today)[1]
    if on is not None:
        first, last = _days(on, today)
    if first and last and first > last:
        raise QueryError(f"nothing lies between {first} and {last}", hint="let --since come before --until")
    return Scope(frozenset(sources), first, last)


def _days(given: str | date | None, today: date) -> tuple[date | None, date | None]:
    if given is None or isinstance(given, date):
        return given, given
    from recollect.search.time_words import parse_day

    days = parse_day(given, today)
    return days if isinstance(days, tuple) else (days, days)
