"""Calendar arithmetic: a unit, an offset and today come in, whole days from the first to the last go out."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from notewell.search.times.vocabulary import Unit

_LEAP_GAP = 9  # years to look back for a 29 February: there was none from 1896 to 1904


class Span(NamedTuple):
    """Whole days, both ends included."""

    first: date
    last: date


def in_year(month: int, days: tuple[int, int] | None, year: int) -> Span | None:
    """Return the month, or these days of it, in that year; None when there is no such day."""
    try:
        if days is None:
            return Span(date(year, month, 1), _last_of_month(year, month))
        return Span(date(year, month, days[0]), date(year, month, days[1])) if days[0] <= days[1] else None
    except ValueError:
        return None


def latest(month: int, days: tuple[int, int] | None, today: date) -> Span | None:
    """Return the most recent one that does not begin in the future."""
    spans = (in_year(month, days, year) for year in range(today.year, max(0, today.year - _LEAP_GAP), -1))
    return next((span for span in spans if span and span.first <= today), None)


def period(unit: Unit, offset: int, today: date) -> Span | None:
    """Return the calendar day, week (from Monday), month, quarter or year that lies `offset` of them from today's.

    None where the calendar ends.
    """
    try:
        if unit == "day":
            day = today + timedelta(days=offset)
            return Span(day, day)
        if unit == "week":
            monday = today + timedelta(days=7 * offset - today.weekday())
            return Span(monday, monday + timedelta(days=6))
        if unit == "year":
            return Span(date(today.year + offset, 1, 1), date(today.year + offset, 12, 31))
        length = 3 if unit == "quarter" else 1
        first = (today.year * 12 + today.month - 1) // length * length + offset * length
        last = first + length - 1
        return Span(date(first // 12, first % 12 + 1, 1), _last_of_month(last // 12, last % 12 + 1))
    except (ValueError, OverflowError):
        return None


def quarter(number: int, year: int) -> Span:
    """Return a quarter from 1 to 4."""
    return Span(date(year, 3 * number - 2, 1), _last_of_month(year, 3 * number))


def until_today(unit: Unit, count: int, today: date) -> Span | None:
    """Return the last so many days, weeks, ..., which end today wherever the calendar week or month begins."""
    months = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    try:
        if months is None:
            return Span(today - timedelta(days=count * (7 if unit == "week" else 1)), today)
        year, month = divmod(today.year * 12 + today.month - 1 - months * count, 12)
        return Span(date(year, month + 1, min(today.day, _days_in_month(year, month + 1))), today)
    except (ValueError, OverflowError):
        return None


def iso_week(year: int, week: int) -> Span | None:
    """Return the week as ISO 8601 counts it."""
    try:
        monday = date.fromisocalendar(year, week, 1)
        return Span(monday, monday + timedelta(days=6))
    except (ValueError, OverflowError):
        return None


def _last_of_month(year: int, month: int) -> date:
    return date(year, month, _days_in_month(year, month))


def _days_in_month(year: int, month: int) -> int:
    """As `calendar.monthrange` says it, which would bring 2 ms of `locale` into every search."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
