"""Folded text in, the words by which it asks for the newest or for the oldest out; none when in doubt."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from notewell.search.times.languages import LANGUAGES
from notewell.search.times.moments import alternatives, bounded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notewell.search.times.vocabulary import Order


class OrderWords(NamedTuple):
    """A place in the text that asks for one end of time."""

    start: int
    end: int
    order: Order


def order_words(folded: str) -> Iterator[OrderWords]:
    """Yield every such place; two languages may find the same one."""
    for language, vocabulary in LANGUAGES.items():
        if any(cue in folded for cue in vocabulary.order_cues):
            for order, pattern in _patterns(language):
                group = "words" if "words" in pattern.groupindex else 0
                for match in pattern.finditer(folded):
                    yield OrderWords(*match.span(group), order)


@cache
def _patterns(language: str) -> list[tuple[Order, re.Pattern[str]]]:
    vocabulary = LANGUAGES[language]
    holes = {
        "{n}": rf"(?:\d{{1,4}}|{alternatives(vocabulary.numbers)})",
        "{record}": f"(?:{vocabulary.records})" + (r"(?!\w)" if vocabulary.spaced else ""),
    }

    def compiled(pattern: str) -> re.Pattern[str]:
        for hole, filling in holes.items():
            pattern = pattern.replace(hole, filling)
        return re.compile(bounded(pattern, spaced=vocabulary.spaced))

    return [(order, compiled(phrase)) for order, phrases in vocabulary.orders.items() for phrase in phrases]
