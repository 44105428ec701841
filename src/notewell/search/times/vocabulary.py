"""The shape of a language's time words: what `european` and `east_asian` fill in and `moments` compiles.

The values of this package are named tuples: creating a frozen dataclass takes 1 ms, which every cold search would pay.
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

    months: tuple[str, ...]  # from January; alternatives are parted by blanks
    weekdays: tuple[str, ...]  # from Monday
    days: Mapping[str, int]  # phrase -> days from today
    periods: Mapping[str, tuple[Unit, int]]  # phrase -> which one, counted from the present one
    units: Mapping[str, Unit]  # with their plurals
    numbers: Mapping[str, int]
    phrases: Mapping[Kind, tuple[str, ...]]
    before: Mapping[str, Bound]  # words in front of a date that make it a bound
    after: Mapping[str, Bound] = MappingProxyType({})  # words behind it that do
    ranges: tuple[tuple[str, str, str], ...] = ()  # in front of the first date, between the two, behind the second
    prepositions: str = ""  # words in front of a month, year or weekday that make it a time
    spaced: bool = True  # words are parted by blanks
    cues: str = ""  # beside months, weekdays and units: words of which every other phrase has at least one
    also_words: frozenset[str] = frozenset()  # months that are other words as well, in this language or in English
    not_among: frozenset[str] = frozenset()  # words of another language: in their company these words mean other things
    records: str = ""  # what is written down again and again, so that one of them is the last; fills `{record}`
    orders: Mapping[Order, tuple[str, ...]] = MappingProxyType(
        {}
    )  # phrases; if a part is named `words`, only that counts
    order_cues: tuple[str, ...] = ()  # beginnings of words of which every phrase in `orders` has at least one
