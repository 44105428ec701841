"""Answers what every search asks about dates, without the tables of time words unless they are needed.

Loading the tables takes 11 ms, so a question without any hint of a time never does.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from notewell.errors import QueryError
from notewell.text.lexicon import fold, stem
from notewell.types import Scope, Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from notewell.search.dates.question import TimeReading
    from notewell.types import SourceName, StoredChunk

LONGEST_QUESTION = 1_000  # characters read for a time; more is a pasted page, not a question

# --- times in a question -------------------------------------------------------------------------

# Every phrase about time contains one of these or a digit. In lower case, without accents.
_PARTS = tuple(
    """
    day week month year quarter night morning afternoon evening heute gestern woche monat jahr quartal aujourd semaine
    annee trimestre ayer anoche semana hoje ontem montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag
    lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miercoles jueves viernes sabado domingo feira
    januar janner janvier janeiro enero februar fevrier febrero fevereiro march marzo april avril abril june juin july
    juillet august agosto septemb septiemb setiemb setemb octob oktob octub outub novemb noviemb decemb dezemb diciemb
    newest latest recent oldest earliest neueste neuste aktuellste letzt jungste lteste fruh erste erstmals dernier
    premier ancien recient ultim antig nuev primer primeir
    """.split()
)
_WHOLE_WORDS = frozenset(
    """
    tag tage tagen hier jour jours mois matin soir passe il hoy manana tarde noche dia dias mes meses ano anos manha
    noite jan feb mar apr may jun jul aug sep sept oct nov dec marz maerz mai juni juli mars aout mayo junio julio marco
    maio junho julho last first
    """.split()
)
_EAST_ASIAN_PARTS = (
    *"昨今去前上本先近週周月日年天星礼禮季曜最",
    *"第一次 おととい きのう 一番 もっとも 初めて 어제 어젯밤 그제 그저께 오늘 지난 저번 이번 작년 올해 전".split(),
    *"요일 최근 최신 최초 가장 제일 마지막 처음 첫".split(),
)
_DIGIT = re.compile(r"\d")
_LETTERS = re.compile("[a-z]+")


def time_reading(query: str, today: date) -> TimeReading | None:
    """Return the time the query asks about, or None."""
    if not _may_name_time(query[:LONGEST_QUESTION]):
        return None
    from notewell.search.dates.question import read_time

    return read_time(query, today)


def _may_name_time(query: str) -> bool:
    text = plain = query.lower()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        if any(part in text for part in _EAST_ASIAN_PARTS):
            return True
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return (
        _DIGIT.search(text) is not None
        or any(part in plain for part in _PARTS)
        or not _WHOLE_WORDS.isdisjoint(_LETTERS.findall(plain))
    )


# --- since, until and on -------------------------------------------------------------------------


def dated_scope(
    sources: Iterable[SourceName],
    since: str | date | None,
    until: str | date | None,
    on: str | date | None,
    *,
    today: date,
) -> Scope:
    """Return the scope of a search within explicit bounds; evergreen notes have no date, so they lie outside."""
    first, last = _days(since, today)[0], _days(until, today)[1]
    if on is not None:
        first, last = _days(on, today)
    if first and last and first > last:
        raise QueryError(f"since ({first}) is after until ({last})", hint="swap them")
    return Scope(frozenset(sources), first, last)


def _days(given: str | date | None, today: date) -> tuple[date | None, date | None]:
    if given is None or isinstance(given, date):
        return given, given
    from notewell.search.dates.question import parse_day

    days = parse_day(given, today)
    return days if isinstance(days, tuple) else (days, days)


# --- the days a chunk is about -------------------------------------------------------------------

_LONGEST_PERIOD = timedelta(days=31)  # "2026 goals" is about anything that year
_YEAR = re.compile(r"(?:19|20)\d\d")  # a heading without one ("3 February", "last week") has no date
_ANY_DAY = date(2000, 1, 1)  # dates with a year are the same whenever they are read
_OWN_HEADINGS = re.compile(r"(?:#{1,6}[ \t].*(?:\n+|$))+")


def days_of(chunk: StoredChunk) -> tuple[date, date] | None:
    """Return the first and last day that the chunk is about; None when neither its note nor a heading has a date."""
    return (chunk.dated, chunk.dated) if chunk.dated else heading_days(chunk)


def heading_days(chunk: StoredChunk) -> tuple[date, date] | None:
    """Return the first and last day named by the nearest heading with a date ("## 2026-02-03"); None without one."""
    own = _OWN_HEADINGS.match(chunk.text)
    return _days_in_headings(f"{chunk.context}\n{own[0]}" if own else chunk.context)


@lru_cache(maxsize=4096)  # reading one takes 0.1 ms, and chunks share their headings
def _days_in_headings(headings: str) -> tuple[date, date] | None:
    if not _YEAR.search(headings):
        return None
    from notewell.search.dates.moments import moments

    for moment in reversed(moments(headings, _ANY_DAY)):
        span = moment.span
        if span and span.last - span.first < _LONGEST_PERIOD and _YEAR.search(headings[moment.start : moment.end]):
            return span.first, span.last
    return None


def names_days(chunk: StoredChunk, since: date | None, until: date | None, today: date | None) -> bool:
    """Say whether the text names a time that lies within these days."""
    from notewell.search.dates.moments import moments

    written = chunk.dated or today or _ANY_DAY  # "last week" in a note is the week before it was written
    first, last = since or date.min, until or date.max
    return any(
        moment.span and first <= moment.span.first and moment.span.last <= last
        for moment in moments(chunk.text, written)
    )


# --- other ways to write a day -------------------------------------------------------------------

MOST_DAYS = 4  # in one query; more of them are a pasted calendar

# English, German, French and Spanish; dates in digits are searched for by the first name of the month.
_MONTHS = (
    "january jan januar janvier enero",
    "february feb februar février febrero",
    "march mar märz mars marzo",
    "april apr avril abril",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet julio",
    "august aug août agosto",
    "september sept sep septembre septiembre setiembre",
    "october oct oktober octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember décembre diciembre",
)
_MONTH_NAMES = tuple(stem(names.split()[0]) for names in _MONTHS)
_MONTH_NUMBERS = {stem(name): number for number, names in enumerate(_MONTHS, start=1) for name in fold(names).split()}
_BETWEEN = frozenset("the of th st nd rd er de del le el am den".split())  # "the 14th of July", "14 de julio de 2026"


def day_phrases(parts: Iterable[str]) -> list[Term]:
    """Return the phrases by which notes may name the days in `parts`: "14 July 2026" is also `2026-07-14`."""
    tokens = [part for part in parts if part not in _BETWEEN]
    found: list[Term] = []
    for place in range(len(tokens) - 1):
        if len(found) >= 3 * MOST_DAYS:
            break
        found += _phrases_at(tokens, place)
    return found


def _phrases_at(tokens: list[str], place: int) -> Iterator[Term]:
    """Yield the phrases for the day that begins here, if one does."""
    one, two = tokens[place], tokens[place + 1]
    three = tokens[place + 2] if place + 2 < len(tokens) else ""
    if two in _MONTH_NUMBERS and (day := _number(one, 31)):
        yield from _phrases(day, _MONTH_NUMBERS[two], two, three)
    elif one in _MONTH_NUMBERS and (day := _number(two, 31)):
        yield from _phrases(day, _MONTH_NUMBERS[one], one, three)
    elif _is_year(one) and (month := _number(two, 12)) and (day := _number(three, 31)):
        yield from _phrases(day, month, _MONTH_NAMES[month - 1], one)


def _phrases(day: int, month: int, name: str, year: str) -> Iterator[Term]:
    yield Term((str(day), name))
    yield Term((name, str(day)))
    digits = (f"{month:02}", f"{day:02}")
    yield Term((year, *digits) if _is_year(year) else digits)


def _number(token: str, most: int) -> int | None:
    """Return a number from 1 to `most` in one or two digits."""
    plain = token.isascii() and token.isdecimal() and len(token) <= 2
    return int(token) if plain and 1 <= int(token) <= most else None


def _is_year(token: str) -> bool:
    return len(token) == 4 and token.isascii() and token.isdecimal()
