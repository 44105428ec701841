"""Finds the days and periods that a text names, in eight languages and in digits."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from notewell.search.dates.phrases import LANGUAGES, READERS, Phrase, Span, in_year, iso_week, period

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from notewell.search.dates.phrases import Firmness
    from notewell.search.dates.vocabulary import Kind, Unit, Vocabulary


class Moment(NamedTuple):
    """Where a text names a time, and which."""

    start: int
    end: int
    span: Span | None  # None: it only looks like a date, or could be one of two
    firmness: Firmness = "firm"
    languages: frozenset[str] = frozenset()  # it is read in; empty for digits, which they all share
    month: int = 0  # with `days`: a date without a year, which another date may lend it
    days: tuple[int, int] | None = None
    may_be_word: bool = False  # the month is also another word, and is not capitalized


def fold(text: str) -> str:
    """Return `text` in lower case without Latin accents and full-width forms; every character keeps its position."""
    return text if text.isascii() and text.islower() else "".join(map(_fold_character, text))


@cache
def _fold_character(character: str) -> str:
    if "\uff01" <= character <= "\uff5e":  # full-width ASCII
        return chr(ord(character) - 0xFEE0).lower()
    decomposed = unicodedata.normalize("NFKD", character)
    base = decomposed[0]
    if base.isascii() and base.isalpha() and all(map(unicodedata.combining, decomposed[1:])):
        return base.lower()
    lower = character.lower()
    return lower if len(lower) == 1 else character


def moments(text: str, today: date) -> list[Moment]:
    """Return the times in the text from left to right; where two overlap, the earlier and longer one."""
    found = sorted(_all_moments(fold(text), text, today), key=lambda moment: (moment.start, -moment.end))
    chosen: list[Moment] = []
    for moment in found:
        if not chosen or moment.start >= chosen[-1].end:
            chosen.append(moment)
        elif moment._replace(languages=chosen[-1].languages) == chosen[-1]:  # August is German, too
            chosen[-1] = moment._replace(languages=moment.languages | chosen[-1].languages)
    return chosen


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
# Before these words a number of four digits is a count, not a year. The 1970's are a decade.
_COUNTED = (
    r"(?!['’]s)"
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
        return iso_week(year, int(match["week"]))
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


class _Words(NamedTuple):
    """The compiled phrases of one language, with the numbers of its months and weekdays."""

    fixed: tuple[tuple[re.Pattern[str], Unit, int], ...]
    phrases: tuple[tuple[Kind, re.Pattern[str]], ...]
    months: Mapping[str, int]
    weekdays: Mapping[str, int]


def phrase_pattern(phrase: str, holes: Mapping[str, str], *, spaced: bool) -> str:
    """Return the phrase with its `{holes}` filled in and spaces as any white space; where `spaced`, of whole words."""
    for hole, filling in holes.items():
        phrase = phrase.replace(hole, filling)
    phrase = phrase.replace(" ?", r"\s?").replace(" ", r"\s+")
    return rf"(?<![\w.@/#-]){phrase}(?![\w@/#-]|\.\w)" if spaced else phrase


@cache
def _words_of(language: str) -> _Words:
    vocabulary = LANGUAGES[language]
    months = _numbered(vocabulary.months, first=1)
    weekdays = _numbered(vocabulary.weekdays, first=0)
    digit = r"(?<![\d.,])" if not vocabulary.spaced else ""
    holes = {
        "{month_number}": digit + r"(?P<month_number>1[0-2]|0?[1-9])",
        "{month}": f"(?P<month>{alternatives(months)})",
        "{weekday}": f"(?P<weekday>{alternatives(weekdays)})",
        "{n}": digit + rf"(?P<n>\d{{1,4}}|{alternatives(vocabulary.numbers)})",
        "{unit}": f"(?P<unit>{alternatives(vocabulary.units)})",
        "{quarter}": "(?P<quarter>[1-4])",
        "{year}": digit + _YEAR + r"(?!\d)",
        "{days}": r"(?:(?P<first>\d\d?)\.?(?:st|nd|rd|th)? ?(?:-|–|to|and|bis|und|au|et|al|y|a|e) ?)?(?P<day>\d\d?)",
        "{day}": r"(?P<day>\d\d?)",
    }

    def compiled(phrase: str) -> re.Pattern[str]:
        return re.compile(phrase_pattern(phrase, holes, spaced=vocabulary.spaced))

    days = [(compiled(phrase), "day", offset) for phrase, offset in vocabulary.days.items()]
    periods = [(compiled(phrase), unit, offset) for phrase, (unit, offset) in vocabulary.periods.items()]
    phrases = [(kind, compiled(phrase)) for kind, phrases in vocabulary.phrases.items() for phrase in phrases]
    return _Words((*days, *periods), tuple(phrases), months, weekdays)  # type: ignore[arg-type]


def _numbered(groups: tuple[str, ...], *, first: int) -> dict[str, int]:
    return {word: number for number, group in enumerate(groups, start=first) for word in group.split()}


def alternatives(words: Mapping[str, int] | Mapping[str, Unit]) -> str:
    """Return a pattern for any of these words, the longest first."""
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(map(re.escape, longest_first)).replace(r"\ ", " ") or "(?!)"


def _all_moments(folded: str, original: str, today: date) -> Iterator[Moment]:
    if any(character.isdecimal() for character in folded):
        yield from _moments_in_digits(folded, today)
    for language in _languages_of(folded):
        yield from _moments_in_words(folded, original, today, language, LANGUAGES[language])


def _languages_of(folded: str) -> list[str]:
    """Return the languages that may name a time here.

    Compiling the phrases of one takes 4 ms, which a cold search should not pay five times.
    """
    written = set(_LETTERS.findall(folded))
    languages = [
        language
        for language, known in _cues().items()
        if not known.isdisjoint(written) and written.isdisjoint(LANGUAGES[language].not_among)
    ]
    if _HAN_OR_KANA.search(folded):
        languages += ["zh", "ja"]
    return [*languages, "ko"] if _HANGUL.search(folded) else languages


_LETTERS = re.compile("[a-z]+")
_HAN_OR_KANA = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")


@cache
def _cues() -> Mapping[str, frozenset[str]]:
    return {
        language: frozenset(
            _LETTERS.findall(" ".join((*words.months, *words.weekdays, *words.units, words.cues)))
        ).difference(_NO_CUES)
        for language, words in LANGUAGES.items()
        if words.spaced
    }


_NO_CUES = frozenset({"an"})  # a French year, but also an English article; French has other cues


def _moments_in_words(
    folded: str, original: str, today: date, language: str, vocabulary: Vocabulary
) -> Iterator[Moment]:
    words, own = _words_of(language), frozenset({language})
    for pattern, unit, offset in words.fixed:
        for match in pattern.finditer(folded):
            yield Moment(match.start(), match.end(), period(unit, offset, today), "firm", own)
    for kind, pattern in words.phrases:
        for match in pattern.finditer(folded):
            said = READERS[kind](Phrase(match, today, vocabulary, words.months, words.weekdays))
            may_be_word = _may_be_word(kind, match, original, vocabulary)
            yield Moment(*match.span(), said.span, said.firmness, own, said.month, said.days, may_be_word)


def _may_be_word(kind: Kind, match: re.Match[str], original: str, vocabulary: Vocabulary) -> bool:
    groups = match.groupdict()
    word = groups.get("month")
    if word not in vocabulary.also_words or groups.get("year") or groups.get("sure") or kind == "day_month":
        return False
    return not original[match.start("month")].isupper()
