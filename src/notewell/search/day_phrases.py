"""A query's words in, phrases for the days they name out: "14 July 2026" is also `2026-07-14`; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notewell.text.lexicon import fold, stem
from notewell.types import Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_DAYS = 4  # of one query; more of them is a pasted calendar

# English, German, French and Spanish; the first name of each month is the one that a date in digits is looked for by.
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
_NAMES = tuple(stem(names.split()[0]) for names in _MONTHS)
_NUMBERS = {stem(name): number for number, names in enumerate(_MONTHS, start=1) for name in fold(names).split()}
_BETWEEN = frozenset("the of th st nd rd er de del le el am den".split())  # "the 14th of July", "14 de julio de 2026"


def day_phrases(parts: Iterable[str]) -> list[Term]:
    """Return the phrases by which a text, heading or file name may speak of the days named in `parts`, in order."""
    tokens = [part for part in parts if part not in _BETWEEN]
    found: list[Term] = []
    for place in range(len(tokens) - 1):
        if len(found) >= 3 * MOST_DAYS:
            break
        found += _phrases_at(tokens, place)
    return found


def _phrases_at(tokens: list[str], place: int) -> Iterator[Term]:
    """Yield the phrases of the day that begins at this place, if one does."""
    one, two = tokens[place], tokens[place + 1]
    three = tokens[place + 2] if place + 2 < len(tokens) else ""
    if two in _NUMBERS and (day := _number(one, 31)):
        yield from _phrases(day, _NUMBERS[two], two, three)
    elif one in _NUMBERS and (day := _number(two, 31)):
        yield from _phrases(day, _NUMBERS[one], one, three)
    elif _is_year(one) and (month := _number(two, 12)) and (day := _number(three, 31)):
        yield from _phrases(day, month, _NAMES[month - 1], one)


def _phrases(day: int, month: int, name: str, year: str) -> Iterator[Term]:
    yield Term((str(day), name))
    yield Term((name, str(day)))
    digits = (f"{month:02}", f"{day:02}")
    yield Term((year, *digits) if _is_year(year) else digits)


def _number(token: str, most: int) -> int | None:
    """Return the number that one or two digits from 1 to `most` stand for."""
    plain = token.isascii() and token.isdecimal() and len(token) <= 2
    return int(token) if plain and 1 <= int(token) <= most else None


def _is_year(token: str) -> bool:
    return len(token) == 4 and token.isascii() and token.isdecimal()
