"""Folded text in, the days and spans it names out, in eight languages and in digits; what they bound is not read here."""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from recollect.search.time_vocabulary import LANGUAGES, YEAR_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from recollect.search.time_vocabulary import Kind, Unit, Vocabulary

# firm: a time whatever stands around it. loose: a time, but which one is a guess. bare: a time only after a preposition.
Firmness = Literal["firm", "loose", "bare"]


class Span(NamedTuple):
    """Whole days, both ends included."""

    first: date
    last: date


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in the text that names a time."""

    start: int
    end: int
    span: Span | None  # None: it looks like a date and is none, or could be two
    firmness: Firmness = "firm"
    language: str = ""  # empty: digits, which every language shares
    month: int = 0  # with `days`: a date that says no year, so that another date may lend it one
    days: tuple[int, int] | None = None
    may_be_word: bool = False  # the month is another word as well, and nothing but its capital tells them apart


def fold(text: str) -> str:
    """Return `text` in lower case without Latin accents and full-width forms; every character keeps its place."""
    return text if text.isascii() and text.islower() else "".join(map(_fold_character, text))


@cache
def _fold_character(character: str) -> str:
    if "\uff01" <= character <= "\uff5e":  # full-width ASCII
        return chr(ord(character) - 0xFEE0).lower()
    base, *rest = unicodedata.normalize("NFKD", character)
    if base.isascii() and base.isalpha() and all(map(unicodedata.combining, rest)):
        return base.lower()
    lower = character.lower()
    return lower if len(lower) == 1 else character


def moments(folded: str, original: str, today: date) -> list[Moment]:
    """Return the times in the text from left to right; where two overlap, the earlier and longer one."""
    found = sorted(_all_moments(folded, original, today), key=lambda moment: (moment.start, -moment.end))
    chosen: list[Moment] = []
    for moment in found:
        if not chosen or moment.start >= chosen[-1].end:
            chosen.append(moment)
    return chosen


def in_year(month: int, days: tuple[int, int] | None, year: int) -> Span | None:
    """Return the month or the days of it in that year; None when there is no such day."""
    try:
        if days:
            return Span(date(year, month, days[0]), date(year, month, days[1])) if days[0] <= days[1] else None
        return Span(date(year, month, 1), date(year, month, monthrange(year, month)[1]))
    except ValueError:
        return None


def period(unit: Unit, offset: int, today: date) -> Span:
    """Return the calendar day, week (from Monday), month, quarter or year that lies `offset` of them from today's."""
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


def _last_of_month(year: int, month: int) -> date:
    return date(year, month, monthrange(year, month)[1])


# --- dates in digits ---------------------------------------------------------------------------

_ALONE = r"(?:(?<=\.\.)|(?<![\w.,:/#@+-]))"
_ENDS = r"(?![\w/#@+-]|[.,:]\d)"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DIGITS: tuple[tuple[str, str], ...] = (
    ("ymd", rf"{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)(?:[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?z?)?"),
    ("ymd", rf"{_YEAR}/(?P<month>\d\d?)/(?P<day>\d\d?)"),
    ("ymd", rf"{_YEAR}\. (?P<month>\d\d?)\. (?P<day>\d\d?)\."),
    ("ym", rf"{_YEAR}-(?P<month>\d\d)"),
    ("ym", rf"(?P<month>\d\d)/{_YEAR}"),
    ("week", rf"{_YEAR}-w(?P<week>\d\d)"),
    ("ymd", rf"(?P<day>\d\d?)\. ?(?P<month>\d\d?)\. ?{_YEAR}"),
    ("either", rf"(?P<one>\d\d?)(?P<mark>[/-])(?P<two>\d\d?)(?P=mark){_YEAR}"),
)
# A number of four digits counts things as often as years: before these it does.
_COUNTED = (
    r"(?! ?(?:%|°|€|\$|[a-z]?bytes|[kmgt]i?b|ms|lines?|rows?|items?|tokens?|words?|characters|chars|users?|people|"
    r"requests?|times|seconds?|minutes?|hours?|days?|euros?|dollars?|eur|usd|km|meters?|metres?|pages?|files?|notes?|"
    r"messages?|records?|errors?|calls?|points?)(?!\w))"
)


@cache
def _digit_patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [(kind, re.compile(_ALONE + pattern + _ENDS)) for kind, pattern in _DIGITS]


@cache
def _bare_year() -> re.Pattern[str]:
    return re.compile(_ALONE + _YEAR + _ENDS + _COUNTED)


def _moments_in_digits(folded: str, today: date) -> Iterator[Moment]:
    for kind, pattern in _digit_patterns():
        for match in pattern.finditer(folded):
            yield Moment(match.start(), match.end(), _span_in_digits(kind, match))
    for match in _bare_year().finditer(folded):
        year = int(match["year"])
        if year <= today.year:
            yield Moment(match.start(), match.end(), Span(date(year, 1, 1), date(year, 12, 31)), "bare")


def _span_in_digits(kind: str, match: re.Match[str]) -> Span | None:
    year = int(match["year"])
    if kind == "week":
        try:
            monday = date.fromisocalendar(year, int(match["week"]), 1)
        except ValueError:
            return None
        return Span(monday, monday + timedelta(days=6))
    if kind == "either":
        one, two = int(match["one"]), int(match["two"])
        if one != two and one <= 12 and two <= 12:
            return None  # the third of April, or the fourth of March
        day, month = max(one, two), min(one, two)
        return in_year(month, (day, day), year)
    month = int(match["month"])
    if kind == "ym":
        return in_year(month, None, year) if 1 <= month <= 12 else None
    return in_year(month, (int(match["day"]),) * 2, year)


# --- dates in words ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Words:
    """The compiled phrases of one language, and what its words mean."""

    fixed: tuple[tuple[re.Pattern[str], Unit, int], ...]
    phrases: tuple[tuple[Kind, re.Pattern[str]], ...]
    months: Mapping[str, int]
    weekdays: Mapping[str, int]


def bounded(pattern: str, *, spaced: bool) -> str:
    """Return the pattern with blanks as any white space and, where words are parted by blanks, at their borders."""
    pattern = pattern.replace(" ?", r"\s?").replace(" ", r"\s+")
    return rf"(?<![\w.@/#-]){pattern}(?![\w@/#-]|\.\w)" if spaced else pattern


@cache
def _words_of(language: str) -> _Words:
    vocabulary = LANGUAGES[language]
    months = _numbered(vocabulary.months, first=1)
    weekdays = _numbered(vocabulary.weekdays, first=0)
    digit = r"(?<![\d.,])" if not vocabulary.spaced else ""
    holes = {
        "{month_number}": digit + r"(?P<month_number>1[0-2]|0?[1-9])",
        "{month}": f"(?P<month>{_alternatives(months)})",
        "{weekday}": f"(?P<weekday>{_alternatives(weekdays)})",
        "{n}": digit + rf"(?P<n>\d{{1,4}}|{_alternatives(vocabulary.numbers)})",
        "{unit}": f"(?P<unit>{_alternatives(vocabulary.units)})",
        "{quarter}": "(?P<quarter>[1-4])",
        "{year}": digit + _YEAR + r"(?!\d)",
        "{days}": r"(?:(?P<first>\d\d?)\.?(?:st|nd|rd|th)? ?(?:-|–|to|and|bis|und|au|et|al|y|a|e) ?)?(?P<day>\d\d?)",
        "{day}": r"(?P<day>\d\d?)",
    }

    def compiled(pattern: str) -> re.Pattern[str]:
        for hole, filling in holes.items():
            pattern = pattern.replace(hole, filling)
        return re.compile(bounded(pattern, spaced=vocabulary.spaced))

    days = [(compiled(phrase), "day", offset) for phrase, offset in vocabulary.days.items()]
    periods = [(compiled(phrase), unit, offset) for phrase, (unit, offset) in vocabulary.periods.items()]
    phrases = [(kind, compiled(phrase)) for kind, phrases in vocabulary.phrases.items() for phrase in phrases]
    return _Words((*days, *periods), tuple(phrases), months, weekdays)  # type: ignore[arg-type]


def _numbered(groups: tuple[str, ...], *, first: int) -> dict[str, int]:
    return {word: number for number, group in enumerate(groups, start=first) for word in group.split()}


def _alternatives(words: Mapping[str, int] | Mapping[str, Unit]) -> str:
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(map(re.escape, longest_first)).replace(r"\ ", " ") or "(?!)"


def _all_moments(folded: str, original: str, today: date) -> Iterator[Moment]:
    if any(character.isdecimal() for character in folded):
        yield from _moments_in_digits(folded, today)
    for language, vocabulary in LANGUAGES.items():
        if vocabulary.spaced or not folded.isascii():
            yield from _moments_in_words(folded, original, today, language, vocabulary)


def _moments_in_words(
    folded: str, original: str, today: date, language: str, vocabulary: Vocabulary
) -> Iterator[Moment]:
    words = _words_of(language)
    for pattern, unit, offset in words.fixed:
        for match in pattern.finditer(folded):
            yield Moment(match.start(), match.end(), _period_or_none(unit, offset, today), "firm", language)
    for kind, pattern in words.phrases:
        for match in pattern.finditer(folded):
            found = _READERS[kind](_Reading(match, today, words, vocabulary))
            if found is not None:
                ambiguous = _may_be_word(kind, match, original, vocabulary)
                yield Moment(
                    match.start(), match.end(), found.span, found.firmness, language, found.month, found.days, ambiguous
                )


def _may_be_word(kind: Kind, match: re.Match[str], original: str, vocabulary: Vocabulary) -> bool:
    groups = match.groupdict()
    word = groups.get("month")
    if word not in vocabulary.also_words or groups.get("year") or groups.get("sure") or kind == "day_month":
        return False
    return not original[match.start("month")].isupper()


def _period_or_none(unit: Unit, offset: int, today: date) -> Span | None:
    try:
        return period(unit, offset, today)
    except (ValueError, OverflowError):  # before the first year of the calendar
        return None


# --- what a phrase means -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reading:
    """A phrase that was found, with everything needed to understand it."""

    match: re.Match[str]
    today: date
    words: _Words
    vocabulary: Vocabulary

    def text(self, name: str) -> str:
        return self.match.groupdict().get(name) or ""

    def number(self, name: str) -> int:
        text = self.text(name)
        return int(text) if text.isdecimal() else self.vocabulary.numbers.get(" ".join(text.split()), 1)

    @property
    def month(self) -> int:
        return self.words.months.get(self.text("month")) or int(self.text("month_number") or 0)

    @property
    def weekday(self) -> int:
        return self.words.weekdays[self.text("weekday") or self.text("weekday_of")]


@dataclass(frozen=True, slots=True)
class _Meaning:
    span: Span | None
    firmness: Firmness = "firm"
    month: int = 0
    days: tuple[int, int] | None = None


def _day_of_month(reading: _Reading) -> _Meaning:
    day = int(reading.text("day"))
    days = (int(reading.text("first") or day), day)
    if reading.text("year"):
        return _Meaning(in_year(reading.month, days, int(reading.text("year"))))
    return _Meaning(_latest(reading.month, days, reading.today), "loose", reading.month, days)


def _latest(month: int, days: tuple[int, int] | None, today: date) -> Span | None:
    """Return the most recent one that is not in the future; a leap day may lie eight years back."""
    spans = (in_year(month, days, year) for year in range(today.year, max(0, today.year - 9), -1))
    return next((span for span in spans if span and span.first <= today), None)


def _month(reading: _Reading) -> _Meaning:
    return _Meaning(_latest(reading.month, None, reading.today), "bare", reading.month)


def _numbered_month(reading: _Reading) -> _Meaning:
    return _Meaning(_latest(reading.month, None, reading.today), "loose", reading.month)


def _any_month(reading: _Reading) -> _Meaning:
    return _month(reading) if reading.vocabulary.spaced else _numbered_month(reading)


def _month_of_year(reading: _Reading) -> _Meaning:
    if reading.text("year"):
        sure = reading.text("month") not in reading.vocabulary.also_words or reading.vocabulary is LANGUAGES["en"]
        return _Meaning(in_year(reading.month, None, int(reading.text("year"))), "firm" if sure else "loose")
    offset = YEAR_OFFSETS[" ".join(reading.text("offset").split())]
    return _Meaning(in_year(reading.month, None, reading.today.year + offset))


def _last_month(reading: _Reading) -> _Meaning:
    """`last March` in March is the one a year ago."""
    month_start = reading.today.replace(day=1)
    return _Meaning(_latest(reading.month, None, month_start - timedelta(days=1)) if month_start > date.min else None)


def _this_month(reading: _Reading) -> _Meaning:
    return _Meaning(in_year(reading.month, None, reading.today.year))


def _quarter(reading: _Reading) -> _Meaning:
    first_month, year = 3 * int(reading.text("quarter")) - 2, reading.text("year")
    chosen = int(year) if year else reading.today.year - (date(reading.today.year, first_month, 1) > reading.today)
    if chosen < 1:
        return _Meaning(None)
    span = Span(date(chosen, first_month, 1), _last_of_month(chosen, first_month + 2))
    return _Meaning(span, "firm" if year else "bare")


def _ago(reading: _Reading) -> _Meaning:
    unit = reading.vocabulary.units[reading.text("unit")]
    return _Meaning(_period_or_none(unit, -reading.number("n"), reading.today))


def _past(reading: _Reading) -> _Meaning:
    """`the last 3 weeks` end today, wherever the calendar week begins."""
    unit, count = reading.vocabulary.units[reading.text("unit")], reading.number("n")
    months = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    try:
        if months is None:
            first = reading.today - timedelta(days=count * (7 if unit == "week" else 1))
        else:
            year, month = divmod(reading.today.year * 12 + reading.today.month - 1 - months * count, 12)
            first = date(year, month + 1, min(reading.today.day, monthrange(year, month + 1)[1]))
    except (ValueError, OverflowError):
        return _Meaning(None)
    return _Meaning(Span(first, reading.today))


def _weekday(reading: _Reading, *, least_days_ago: int, firmness: Firmness) -> _Meaning:
    days_ago = (reading.today.weekday() - reading.weekday - least_days_ago) % 7 + least_days_ago
    return _Meaning(_period_or_none("day", -days_ago, reading.today), firmness)


def _weekday_in_week(reading: _Reading, offset: int) -> _Meaning:
    days = 7 * offset + reading.weekday - reading.today.weekday()
    return _Meaning(_period_or_none("day", days, reading.today))


def _year(reading: _Reading) -> _Meaning | None:
    year = int(reading.text("year"))
    return _Meaning(Span(date(year, 1, 1), date(year, 12, 31)), "loose")


_READERS: Mapping[Kind, Callable[[_Reading], _Meaning | None]] = {
    "day_month": _day_of_month,
    "month_day": _day_of_month,
    "month_year": _month_of_year,
    "month_of_year": _month_of_year,
    "last_month": _last_month,
    "this_month": _this_month,
    "quarter": _quarter,
    "ago": _ago,
    "past": _past,
    "weekday_of_week": lambda reading: _weekday_in_week(reading, -1),
    "last_weekday": lambda reading: _weekday(reading, least_days_ago=1, firmness="firm"),
    "this_weekday": lambda reading: _weekday_in_week(reading, 0),
    "month": _any_month,
    "weekday": lambda reading: _weekday(
        reading, least_days_ago=0, firmness="bare" if reading.vocabulary.spaced else "loose"
    ),
    "year": _year,
}
