"""Defines what a language has to say about time: `european` and `east_asian` fill it in, `moments` compiles it.

The values in this package are named tuples: creating a frozen dataclass takes 1 ms, which every cold search would pay.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Unit = Literal["day", "week", "month", "quarter", "year"]
Bound = Literal["since", "after", "before", "until"]
Order = Literal["newest", "oldest"]
Kind = Literal[
    "day_month", "month_day", "month_year", "month_of_year", "last_month", "this_month", "quarter",
    "ago", "past", "weekday_of_week", "last_weekday", "this_weekday", "month", "weekday", "year",
]  # fmt: skip


class Vocabulary(NamedTuple):
    """The words of one language."""

    months: tuple[str, ...]  # from January; alternatives are separated by spaces
    weekdays: tuple[str, ...]  # from Monday
    days: Mapping[str, int]  # phrase -> days from today
    periods: Mapping[str, tuple[Unit, int]]  # phrase -> which one, counted from the current one
    units: Mapping[str, Unit]  # with their plurals
    numbers: Mapping[str, int]
    phrases: Mapping[Kind, tuple[str, ...]]
    before: Mapping[str, Bound]  # words before a date that make it a bound
    after: Mapping[str, Bound] = MappingProxyType({})  # words after it that do
    ranges: tuple[tuple[str, str, str], ...] = ()  # before the first date, between the two, after the second
    prepositions: str = ""  # words before a month, year or weekday that make it a time
    spaced: bool = True  # words are separated by spaces
    cues: str = ""  # besides months, weekdays and units: every other phrase has at least one of these words
    also_words: frozenset[str] = frozenset()  # months that are also other words, in this language or in English
    not_among: frozenset[str] = frozenset()  # words of another language, next to which these mean something else
    records: str = ""  # what is written down repeatedly, so that one of them is the last; fills `{record}`
    orders: Mapping[Order, tuple[str, ...]] = MappingProxyType({})  # phrases; a group `words` is the part that counts
    order_cues: tuple[str, ...] = ()  # every phrase in `orders` contains at least one of these
