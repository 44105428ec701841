"""A phrase that was found in a text in, the days it means out: one small reader for each kind of phrase."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from notewell.search.times.languages import LANGUAGES, YEAR_OFFSETS
from notewell.search.times.spans import Span, in_year, latest, period, quarter, until_today

if TYPE_CHECKING:
    from notewell.search.times.vocabulary import Kind, Vocabulary

# firm: a time wherever it stands. loose: a time, but which one is a guess. bare: a time only after a preposition.
Firmness = Literal["firm", "loose", "bare"]


class Phrase(NamedTuple):
    """A phrase that was found, with everything needed to understand it."""

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
        return self.weekdays[self.text("weekday") or self.text("weekday_of")]


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
    return Meaning(latest(phrase.month, days, phrase.today), "loose", phrase.month, days)


def _month(phrase: Phrase) -> Meaning:
    """A name of a month may be another word; a number with the word for month is none."""
    named = phrase.vocabulary.spaced
    return Meaning(latest(phrase.month, None, phrase.today), "bare" if named else "loose", phrase.month)


def _month_of_year(phrase: Phrase) -> Meaning:
    if phrase.text("year"):
        sure = phrase.text("month") not in phrase.vocabulary.also_words or phrase.vocabulary is LANGUAGES["en"]
        return Meaning(in_year(phrase.month, None, int(phrase.text("year"))), "firm" if sure else "loose")
    offset = YEAR_OFFSETS[" ".join(phrase.text("offset").split())]
    return Meaning(in_year(phrase.month, None, phrase.today.year + offset))


def _last_month(phrase: Phrase) -> Meaning:
    """`last March` in March is the one a year ago."""
    month_start = phrase.today.replace(day=1)
    return Meaning(latest(phrase.month, None, month_start - timedelta(days=1)) if month_start > date.min else None)


def _this_month(phrase: Phrase) -> Meaning:
    return Meaning(in_year(phrase.month, None, phrase.today.year))


def _quarter(phrase: Phrase) -> Meaning:
    number, year = int(phrase.text("quarter")), phrase.text("year")
    if year:
        return Meaning(quarter(number, int(year)))
    begun = quarter(number, phrase.today.year).first <= phrase.today
    latest_year = phrase.today.year if begun else phrase.today.year - 1
    return Meaning(quarter(number, latest_year) if latest_year else None, "bare")


def _ago(phrase: Phrase) -> Meaning:
    unit = phrase.vocabulary.units[phrase.text("unit")]
    return Meaning(period(unit, -phrase.number("n"), phrase.today))


def _past(phrase: Phrase) -> Meaning:
    unit = phrase.vocabulary.units[phrase.text("unit")]
    return Meaning(until_today(unit, phrase.number("n"), phrase.today))


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
