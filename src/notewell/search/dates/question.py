"""Reads what a question says about time: days ("since March", "vor 3 Tagen", "昨天") or an order ("latest").

In doubt it reads nothing: a wrong guess would hide notes.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from notewell.errors import QueryError
from notewell.search.dates.filters import LONGEST_QUESTION
from notewell.search.dates.moments import Moment, alternatives, fold, moments, phrase_pattern
from notewell.search.dates.phrases import LANGUAGES, Span, in_year

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notewell.search.dates.vocabulary import Bound, Order

_NEARBY = 40  # characters around a date searched for the words that belong to it; the longest has 27
_QUOTED = re.compile(
    r""""[^"\n]+"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|「[^」\n]+」|『[^』\n]+』|《[^》\n]+》|`[^`\n]+`|(?<!\w)'[^'\n]+'(?!\w)"""
    r"|^>.*$",
    re.MULTILINE,
)

ACCEPTED = (
    "a day (2026-02-03), a month (2026-02), a year (2026), or words such as yesterday, last week, 3 days ago, "
    "last Monday, March 2026, Q3 2026"
)


@dataclass(frozen=True, slots=True)
class TimeReading:
    """What a question says about time. Both ends are included; None is open: both are if it only asks for an order."""

    since: date | None
    until: date | None
    words: str  # it was read from, as typed
    meaning: str  # to show: "last week: 2026-11-09 to 2026-11-15"
    order: Order | None = None  # which the question asks for first

    def holds(self, days: tuple[date, date] | None) -> bool:
        """Say whether any day from the first to the last of `days` lies in the time that the question names."""
        if days is None:
            return False
        return (self.since is None or days[1] >= self.since) and (self.until is None or days[0] <= self.until)


class _OrderWords(NamedTuple):
    """Words that ask for the newest or the oldest, and where they are."""

    start: int
    end: int
    order: Order


class _Found(NamedTuple):
    """Days named in a question, and where."""

    start: int
    end: int
    since: date | None
    until: date | None
    certain: bool  # False: the words may be content, or the year is a guess
    is_bound: bool = False


def read_time(query: str, today: date) -> TimeReading | None:
    """Return the time the query asks about, or None. Never raises.

    Of several times, one with explicit bounds wins, then one that is certain, then the first.
    """
    text = unicodedata.normalize("NFC", query[:LONGEST_QUESTION])
    folded = fold(text)
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    named = moments(text, today)
    best = _best([_as_quoted(each, quoted) for each in _found(folded, named)])
    order = _order(folded, [*((moment.start, moment.end) for moment in named), *quoted])
    if best is None and order is None:
        return None
    places = sorted((each.start, each.end) for each in (best, order) if each)
    words = " ".join(text[start:end].strip() for start, end in places)
    meanings = [_shown(best.since, best.until)] if best else []
    meanings += [f"{order.order} first"] if order else []
    return TimeReading(
        best.since if best else None,
        best.until if best else None,
        words,
        f"{' '.join(words.split())}: {', '.join(meanings)}",
        order.order if order else None,
    )


def parse_day(text: str, today: date) -> date | tuple[date, date]:
    """Return the day that the text names, or the first and last day of the longer time it names.

    Raises QueryError for anything else.
    """
    typed = unicodedata.normalize("NFC", text[:LONGEST_QUESTION]).strip()
    span = _whole_year(typed) or _whole_moment(typed, today)
    if span is None:
        raise QueryError(f"not a day or a time: {text[:80]!r}", hint=f"use {ACCEPTED}")
    return span.first if span.first == span.last else (span.first, span.last)


def _whole_year(typed: str) -> Span | None:
    if not re.fullmatch("[0-9]{4}", typed) or typed == "0000":
        return None
    return Span(date(int(typed), 1, 1), date(int(typed), 12, 31))


def _whole_moment(typed: str, today: date) -> Span | None:
    folded = fold(typed)
    for moment in moments(typed, today):
        around = (folded[: moment.start] + " " + folded[moment.end :]).strip()
        if not around or (moment.start and re.fullmatch("the|on|in|in the|am|im|le|el|em", around)):
            return moment.span
    return None


# --- days and orders ---------------------------------------------------------------------------


def _best(found: Sequence[_Found]) -> _Found | None:
    if not found:
        return None
    return _with_other_end(min(found, key=lambda f: (not f.is_bound, not f.certain, f.start)), found)


def _as_quoted(found: _Found, quoted: Sequence[tuple[int, int]]) -> _Found:
    """Return what was found, as content if it is only part of a quotation."""
    marked = found.end - found.start + 2  # with a mark at each end
    inside = any(start <= found.start and found.end <= end and end - start > marked for start, end in quoted)
    return found._replace(certain=False, is_bound=False) if inside else found


def _order(folded: str, taken: Sequence[tuple[int, int]]) -> _OrderWords | None:
    """Return the words that ask for an order, unless others contradict; those in `taken` places do not count."""
    found = [
        words
        for words in _order_words(folded)
        if not any(words.start < end and start < words.end for start, end in taken)
    ]
    if len({words.order for words in found}) != 1:
        return None
    return min(found, key=lambda words: (words.start, -words.end))


def _order_words(folded: str) -> Iterator[_OrderWords]:
    """Yield all words that ask for an order; two languages may find the same ones."""
    for language, vocabulary in LANGUAGES.items():
        if any(cue in folded for cue in vocabulary.order_cues):
            for order, pattern in _order_patterns(language):
                group = "words" if "words" in pattern.groupindex else 0
                for match in pattern.finditer(folded):
                    yield _OrderWords(*match.span(group), order)


@cache
def _order_patterns(language: str) -> list[tuple[Order, re.Pattern[str]]]:
    vocabulary = LANGUAGES[language]
    holes = {
        "{n}": rf"(?:\d{{1,4}}|{alternatives(vocabulary.numbers)})",
        "{record}": f"(?:{vocabulary.records})" + (r"(?!\w)" if vocabulary.spaced else ""),
    }
    return [
        (order, re.compile(phrase_pattern(phrase, holes, spaced=vocabulary.spaced)))
        for order, phrases in vocabulary.orders.items()
        for phrase in phrases
    ]


def _found(folded: str, named: Sequence[Moment]) -> list[_Found]:
    found: list[_Found] = []
    at = 0
    while at < len(named):
        pair = _range(folded, named[at], named[at + 1]) if at + 1 < len(named) else None
        one = pair or _one(folded, named[at])
        if one:
            found.append(one)
        at += 2 if pair else 1
    return found


def _one(folded: str, moment: Moment) -> _Found | None:
    if moment.span is None or _is_counted_from(folded, moment):
        return None
    bound = _bound(folded, moment)
    if bound:
        return bound
    start = _preposition_start(folded, moment)
    if moment.may_be_word and (start is None or moment.firmness == "firm"):
        return None
    if moment.firmness == "bare" and start is None:
        return None
    first = moment.start if start is None else start
    ranged = moment.days is not None and moment.days[0] != moment.days[1]
    return _Found(first, moment.end, *moment.span, certain=moment.firmness == "firm" or ranged)


def _bound(folded: str, moment: Moment) -> _Found | None:
    before = folded[max(0, moment.start - _NEARBY) : moment.start]
    after = folded[moment.end : moment.end + _NEARBY]
    for language in _languages(moment):
        for pattern, bound in _bounds_before(language):
            if match := pattern.search(before):
                return _bounded_by(bound, moment, moment.start - len(before) + match.start("words"), moment.end)
        for pattern, bound in _bounds_after(language):
            if match := pattern.match(after):
                return _bounded_by(bound, moment, moment.start, moment.end + match.end())
    return None


def _is_counted_from(folded: str, moment: Moment) -> bool:
    """Say whether another time is counted from this one: "the week before 3 March"."""
    before = folded[max(0, moment.start - _NEARBY) : moment.start]
    return any(
        _unit_at_end(language).search(before[: match.start("words")])
        for language in _languages(moment)
        for pattern, bound in _bounds_before(language)
        if bound in {"before", "after"} and (match := pattern.search(before))
    )


@cache
def _unit_at_end(language: str) -> re.Pattern[str]:
    vocabulary = LANGUAGES[language]
    words = [*vocabulary.units, *(word for group in vocabulary.weekdays for word in group.split()), "weekend"]
    border = r"(?<!\w)" if vocabulary.spaced else ""
    return re.compile(rf"{border}(?:{'|'.join(words)})\s*$")


def _bounded_by(bound: Bound, moment: Moment, start: int, end: int) -> _Found | None:
    assert moment.span is not None
    since: date | None = None
    until: date | None = None
    try:
        if bound == "since":
            since = moment.span.first
        elif bound == "after":
            since = moment.span.last + timedelta(days=1)
        elif bound == "before":
            until = moment.span.first - timedelta(days=1)
        else:
            until = moment.span.last
    except OverflowError:  # nothing lies before the first day of the calendar
        return None
    # "Before Friday" may mean the one to come.
    is_year = moment.span.last - moment.span.first > timedelta(days=360)
    certain = moment.firmness == "firm" or is_year or bound in {"since", "after"}
    return _Found(start, end, since, until, certain=certain, is_bound=True)


def _range(folded: str, one: Moment, two: Moment) -> _Found | None:
    """Return the time from one to the other, if the words around them say so."""
    between = folded[one.end : two.start]
    before = folded[max(0, one.start - _NEARBY) : one.start]
    after = folded[two.end : two.end + _NEARBY]
    for language in _languages(one, two):
        for front, joint, tail in _ranges(language):
            opened = front.search(before)
            if opened is None or not joint.fullmatch(between):
                continue
            is_open = not opened["words"]
            is_joined_by_word = not LANGUAGES[language].spaced and any(map(str.isalpha, between))
            if is_open and not is_joined_by_word and "bare" in {one.firmness, two.firmness}:
                continue  # two numbers, which may count anything
            span = _joined(one, two)
            if span is None:
                return None
            closed = tail.match(after)
            start = one.start if is_open else one.start - len(before) + opened.start("words")
            end = two.end + (closed.end() if closed else 0)
            return _Found(start, end, *span, certain=True, is_bound=True)
    return None


def _joined(one: Moment, two: Moment) -> Span | None:
    """Return everything from one to the other; a date without a year takes the other's."""
    if one.span is None or two.span is None:
        return None
    first, last = one.span, two.span
    if one.month:
        first = _not_after(one, last) or first
    elif two.month:
        last = in_year(two.month, two.days, first.first.year) or last
    return Span(min(first.first, last.first), max(first.last, last.last))


def _not_after(moment: Moment, other: Span) -> Span | None:
    """Return the moment in the year of the other, or in the year before if it would be later."""
    year = other.first.year
    spans = (in_year(moment.month, moment.days, each) for each in (year, year - 1))
    return next((span for span in spans if span and span.first <= other.first), None)


def _with_other_end(best: _Found, found: Sequence[_Found]) -> _Found:
    """Join `since ...` with the `until ...` of the same query."""
    if not best.is_bound or (best.since and best.until):
        return best
    for other in found:
        since, until = best.since or other.since, best.until or other.until
        if other.is_bound and other is not best and since and until and since <= until:
            return _Found(min(best.start, other.start), max(best.end, other.end), since, until, True, True)
    return best


def _shown(since: date | None, until: date | None) -> str:
    if since is None:
        return f"up to {until}"
    if until is None:
        return f"from {since} on"
    return f"{since}" if since == until else f"{since} to {until}"


# --- the words around a date -------------------------------------------------------------------


def _languages(*named: Moment) -> list[str]:
    """Return the languages that may continue around these dates: their own, or any around digits."""
    spoken = frozenset[str]().union(*(moment.languages for moment in named))
    return [language for language in LANGUAGES if not spoken or language in spoken]


def _words_before(pattern: str, *, spaced: bool) -> re.Pattern[str]:
    pattern = pattern.replace(" ?", r"\s?").replace(" ", r"\s+")
    border, gap = (r"(?<![\w-])", r"[\s-]+(?:the\s+)?") if spaced else ("", r"\s*")
    return re.compile(rf"{border}(?P<words>{pattern}){gap}$")


@cache
def _bounds_before(language: str) -> list[tuple[re.Pattern[str], Bound]]:
    vocabulary = LANGUAGES[language]
    return [(_words_before(words, spaced=vocabulary.spaced), bound) for words, bound in vocabulary.before.items()]


@cache
def _bounds_after(language: str) -> list[tuple[re.Pattern[str], Bound]]:
    vocabulary = LANGUAGES[language]
    gap = r"\s+" if vocabulary.spaced else r"\s*"
    return [
        (re.compile(gap + phrase_pattern(words, {}, spaced=vocabulary.spaced)), bound)
        for words, bound in vocabulary.after.items()
    ]


@cache
def _ranges(language: str) -> list[tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]]:
    vocabulary = LANGUAGES[language]
    gap = r"\s+" if vocabulary.spaced else r"\s*"
    return [
        (
            _words_before(front, spaced=vocabulary.spaced) if front else re.compile("(?P<words>)$"),
            re.compile(rf"\s*(?:-|–|[.]{{2,3}}|~)\s*|{gap}{joint}{gap}(?:the\s+)?".replace(" ", r"\s+")),
            re.compile(rf"\s*{tail}"),
        )
        for front, joint, tail in vocabulary.ranges
    ]


def _preposition_start(folded: str, moment: Moment) -> int | None:
    """Return where the preposition in front of the moment begins."""
    before = folded[max(0, moment.start - _NEARBY) : moment.start]
    for language in _languages(moment):
        pattern = _prepositions(language)
        if pattern and (match := pattern.search(before)):
            return moment.start - len(before) + match.start("words")
    return None


@cache
def _prepositions(language: str) -> re.Pattern[str] | None:
    vocabulary = LANGUAGES[language]
    return _words_before(vocabulary.prepositions, spaced=vocabulary.spaced) if vocabulary.prepositions else None
