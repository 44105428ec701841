"""What a query or an option says about time in, the days that notes must be of out."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from typing import TYPE_CHECKING

from notewell.errors import QueryError
from notewell.search.times import LONGEST_QUERY
from notewell.types import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from notewell.search.time_words import TimeReading
    from notewell.types import SourceName

# What every reading has some of, digits apart: a search that has none need not load the tables of time words (11 ms).
# In lower case and without accents.
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
_WORD = re.compile("[a-z]+")


def time_reading(query: str, today: date) -> TimeReading | None:
    """Return the time the query asks about, or None."""
    if not _may_speak_of_time(query[:LONGEST_QUERY]):
        return None
    from notewell.search.time_words import read_time

    return read_time(query, today)


def _may_speak_of_time(query: str) -> bool:
    text = plain = query.lower()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        if any(part in text for part in _EAST_ASIAN_PARTS):
            return True
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return (
        _DIGIT.search(text) is not None
        or any(part in plain for part in _PARTS)
        or not _WHOLE_WORDS.isdisjoint(_WORD.findall(plain))
    )


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
    from notewell.search.time_words import parse_day

    days = parse_day(given, today)
    return days if isinstance(days, tuple) else (days, days)
