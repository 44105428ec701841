"""Works out which days a phrase such as "3 days ago" or "last March" means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from notewell.search.dates.east_asian import CHINESE, JAPANESE, KOREAN
from notewell.search.dates.european import ENGLISH, FRENCH, GERMAN, PORTUGUESE, SPANISH

if TYPE_CHECKING:
    from notewell.search.dates.vocabulary import Kind, Unit, Vocabulary

LANGUAGES: Mapping[str, Vocabulary] = {
    "en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH, "pt": PORTUGUESE,
    "zh": CHINESE, "ja": JAPANESE, "ko": KOREAN,
}  # fmt: skip

# What `offset` may be in a `month_of_year` phrase, in years from the current one.
_YEAR_OFFSETS: Mapping[str, int] = {
    "last": -1, "this": 0, "letzten": -1, "vorigen": -1, "vergangenen": -1, "diesen": 0, "l'an dernier": -1,
    "l’an dernier": -1, "l'annee derniere": -1, "l’annee derniere": -1, "cette annee": 0, "del ano pasado": -1,
    "de este ano": 0, "do ano passado": -1, "deste ano": 0, "去年": -1, "昨年": -1, "今年": 0, "前年": -2, "一昨年": -2,
    "작년": -1, "올해": 0, "재작년": -2,
}  # fmt: skip

_LEAP_GAP = 9  # years to look back for a 29 February: there was none between 1896 and 1904

# firm: always a time. loose: a time, but which one is a guess. bare: a time only after a preposition.
Firmness = Literal["firm", "loose", "bare"]


# --- the calendar ------------------------------------------------------------------------------


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


def _latest(month: int, days: tuple[int, int] | None, today: date) -> Span | None:
    """Return the most recent one that does not begin in the future."""
    spans = (in_year(month, days, year) for year in range(today.year, max(0, today.year - _LEAP_GAP), -1))
    return next((span for span in spans if span and span.first <= today), None)


def period(unit: Unit, offset: int, today: date) -> Span | None:
    """Return the calendar day, week (from Monday), month, quarter or year `offset` units from the current one.

    None beyond the end of the calendar.
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


def _quarter_span(number: int, year: int) -> Span:
    return Span(date(year, 3 * number - 2, 1), _last_of_month(year, 3 * number))


def _until_today(unit: Unit, count: int, today: date) -> Span | None:
    """Return the last `count` days, weeks, ... up to today, wherever the calendar week or month begins."""
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
    """The same as `calendar.monthrange`, which would add 2 ms for `locale` to every search."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


# --- what phrases mean -------------------------------------------------------------------------


class Phrase(NamedTuple):
    """A phrase found in a text, with what is needed to understand it."""

    match: re.Match[str]
    today: date
    vocabulary: Vocabulary
    months: Mapping[str, int]
    weekdays: Mapping[str, int]  # from 0, Monday

    def text(self, name: str) -> str:
        return self.match.groupdict().get(name) or ""

    def number(self, name: str) -> int:
        text = self.text(name)
        return int(text) if text.isdecimal() else self.vocabulary.numbers.get(" ".join(text.split()), 1)

    @property
    def month(self) -> int:
        return self.months.get(self.text("month")) or int(self.text("month_number") or 0)

    @property
    def weekday(self) -> int:
        return self.weekdays[self.text("weekday")]


class Meaning(NamedTuple):
    """What a phrase says; `month` and `days` where it names no year."""

    span: Span | None
    firmness: Firmness = "firm"
    month: int = 0
    days: tuple[int, int] | None = None


def _day_of_month(phrase: Phrase) -> Meaning:
    day = int(phrase.text("day"))
    days = (int(phrase.text("first") or day), day)
    if phrase.text("year"):
        return Meaning(in_year(phrase.month, days, int(phrase.text("year"))))
    return Meaning(_latest(phrase.month, days, phrase.today), "loose", phrase.month, days)


def _month(phrase: Phrase) -> Meaning:
    """The name of a month may be another word; "3月" may not."""
    named = phrase.vocabulary.spaced
    return Meaning(_latest(phrase.month, None, phrase.today), "bare" if named else "loose", phrase.month)


def _month_of_year(phrase: Phrase) -> Meaning:
    if phrase.text("year"):
        sure = phrase.text("month") not in phrase.vocabulary.also_words or phrase.vocabulary is LANGUAGES["en"]
        return Meaning(in_year(phrase.month, None, int(phrase.text("year"))), "firm" if sure else "loose")
    offset = _YEAR_OFFSETS[" ".join(phrase.text("offset").split())]
    return Meaning(in_year(phrase.month, None, phrase.today.year + offset))


def _last_month(phrase: Phrase) -> Meaning:
    """In March, "last March" is the one a year ago."""
    month_start = phrase.today.replace(day=1)
    return Meaning(_latest(phrase.month, None, month_start - timedelta(days=1)) if month_start > date.min else None)


def _this_month(phrase: Phrase) -> Meaning:
    return Meaning(in_year(phrase.month, None, phrase.today.year))


def _quarter(phrase: Phrase) -> Meaning:
    number, year = int(phrase.text("quarter")), phrase.text("year")
    if year:
        return Meaning(_quarter_span(number, int(year)))
    begun = _quarter_span(number, phrase.today.year).first <= phrase.today
    latest_year = phrase.today.year if begun else phrase.today.year - 1
    return Meaning(_quarter_span(number, latest_year) if latest_year else None, "bare")


def _ago(phrase: Phrase) -> Meaning:
    unit = phrase.vocabulary.units[phrase.text("unit")]
    return Meaning(period(unit, -phrase.number("n"), phrase.today))


def _past(phrase: Phrase) -> Meaning:
    unit = phrase.vocabulary.units[phrase.text("unit")]
    return Meaning(_until_today(unit, phrase.number("n"), phrase.today))


def _weekday(phrase: Phrase, *, least_days_ago: int, firmness: Firmness) -> Meaning:
    days_ago = (phrase.today.weekday() - phrase.weekday - least_days_ago) % 7 + least_days_ago
    return Meaning(period("day", -days_ago, phrase.today), firmness)


def _weekday_in_week(phrase: Phrase, offset: int) -> Meaning:
    days = 7 * offset + phrase.weekday - phrase.today.weekday()
    return Meaning(period("day", days, phrase.today))


def _year(phrase: Phrase) -> Meaning:
    year = int(phrase.text("year"))
    return Meaning(Span(date(year, 1, 1), date(year, 12, 31)), "loose")


READERS: Mapping[Kind, Callable[[Phrase], Meaning]] = {
    "day_month": _day_of_month,
    "month_day": _day_of_month,
    "month_year": _month_of_year,
    "month_of_year": _month_of_year,
    "last_month": _last_month,
    "this_month": _this_month,
    "quarter": _quarter,
    "ago": _ago,
    "past": _past,
    "weekday_of_week": lambda phrase: _weekday_in_week(phrase, -1),
    "last_weekday": lambda phrase: _weekday(phrase, least_days_ago=1, firmness="firm"),
    "this_weekday": lambda phrase: _weekday_in_week(phrase, 0),
    "month": _month,
    "weekday": lambda phrase: _weekday(
        phrase, least_days_ago=0, firmness="bare" if phrase.vocabulary.spaced else "loose"
    ),
    "year": _year,
}
