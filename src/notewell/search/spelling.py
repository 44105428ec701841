"""Finds indexed terms for words that no chunk holds: the words they begin, or words of similar spelling.

What is indexed are stems, and a slip near the end of a word changes its stem beyond recognition ("calibratoin" against
"calibr"). So all words that are one slip away are stemmed and looked up; only for two slips are stems compared.
Measured by keywords alone: with one slip in every query nDCG@10 on xquad-en is .935 without this step and .966 with
it (.971 without the slip), on scifact .674 and .693 (.694); queries without slips stay where they were.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from notewell.text.lexicon import fold, stem
from notewell.types import Term

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from notewell.protocols import Snapshot

# Letters from which on a word may have letters swapped; one left out or added; one changed; two of these slips. In
# shorter words such a slip too often makes another word: "cook" is not "cool", "snake" not "shake".
SHORTEST = 4
LEFT_OUT_FROM = 5
CHANGED_FROM = 6
TWO_SLIPS_FROM = 8
SHORTEST_STEM = 7  # letters of a stem with two slips; "accord" (from "according") is not "actor"
LONGEST = 24  # letters; longer ones are pasted data, and the words one slip away grow with the length
MOST_WORDS = 3  # of one query; a pasted page in another language must not cost a second
MOST_SCANNED = 20_000  # terms that begin alike; 100,000 chunks of English hold some 5,000 of them at most
MOST_GUESSES = 2  # for one word
_COUNTED_TO = 1_000  # chunks; which of two guesses is the more common needs no more

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_JOINER = r"[-./@:+#'’\\_]"
# Ordinary words only: whatever has joints, digits or capitals inside is an identifier, and those are spelled exactly.
_PLAIN_WORD = re.compile(rf"(?<![\w'’])(?<!\w{_JOINER})[A-Za-z][a-z]{{{SHORTEST - 1},{LONGEST - 1}}}(?!{_JOINER}?\w)")


def similar_terms(snapshot: Snapshot, query: str, absent: Collection[str]) -> dict[str, list[Term]]:
    """Return words of the query whose stem is absent, each with the indexed terms it may have meant, best first.

    A word that others begin with was typed in part: `wiregu` stands for whatever begins so. Else it may be a typo.
    """
    words = dict.fromkeys(match[0].lower() for match in _PLAIN_WORD.finditer(fold(query)))
    meant = [word for word in words if stem(word) in absent][:MOST_WORDS]
    return {word: terms for word in meant if (terms := _begun(snapshot, word) or _similar(snapshot, word))}


def _begun(snapshot: Snapshot, word: str) -> list[Term]:
    longer = snapshot.terms_beginning(word, lengths=range(len(word) + 1, LONGEST + 1), limit=1)
    return [Term((word,), prefix=True)] if longer else []


def _similar(snapshot: Snapshot, word: str) -> list[Term]:
    known_stem = stem(word)
    # The stem of a word one letter longer may be as short as two letters: "sized" is "size", "uses" is "use".
    alike = snapshot.terms_beginning(word[:2], lengths=range(2, len(word) + 3), limit=MOST_SCANNED)
    candidates = {stem(slip) for slip in one_slip_away(word)}
    candidates.discard(known_stem)
    elsewhere = {term for term in candidates if term[:2] != word[:2]}
    nearest = _most_common(snapshot, [*elsewhere, *candidates.intersection(alike)])
    if nearest or len(word) < TWO_SLIPS_FROM or len(known_stem) < SHORTEST_STEM:
        return nearest
    return _most_common(snapshot, within_two_slips(known_stem, alike))


def _most_common(snapshot: Snapshot, terms: Sequence[str]) -> list[Term]:
    """Return the terms that occur in the most chunks; what a removed note alone held does not occur."""
    frequencies = snapshot.document_frequencies([Term((term,)) for term in terms], at_most=_COUNTED_TO)
    found = sorted((-frequency, term) for term, frequency in zip(terms, frequencies, strict=True) if frequency)
    return [Term((term,)) for _, term in found[:MOST_GUESSES]]


def one_slip_away(word: str) -> set[str]:
    """Return every word with two letters swapped, or one left out, added or changed behind the first."""
    found = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)}
    splits = [(word[:i], word[i:]) for i in range(1, len(word) + 1)]
    if len(word) >= LEFT_OUT_FROM:
        found |= {head + tail[1:] for head, tail in splits if tail}
        found |= {head + letter + tail for head, tail in splits for letter in _LETTERS}
    if len(word) >= CHANGED_FROM:
        found |= {head + letter + tail[1:] for head, tail in splits if tail for letter in _LETTERS}
    return found - {word}


def within_two_slips(word: str, terms: Iterable[str]) -> list[str]:
    """Return those of the terms that two slips at most make of `word`."""
    letters = set(word)
    # Each slip brings in or takes away two letters at most: this test spares nine terms in ten the slow one.
    near = (term for term in terms if abs(len(term) - len(word)) <= 2 and len(letters.symmetric_difference(term)) <= 4)
    return [term for term in near if slips_between(word, term, at_most=2) <= 2]


def slips_between(one: str, two: str, *, at_most: int) -> int:
    """Return how many letters must be left out, added, changed or swapped; `at_most` + 1 when more."""
    before_last: list[int] = []
    last = list(range(len(two) + 1))
    for i, letter in enumerate(one, start=1):
        row = [i]
        for j, other in enumerate(two, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == two[j - 2] and other == one[i - 2]:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        if min(row) > at_most:
            return at_most + 1
        before_last, last = last, row
    return min(last[-1], at_most + 1)
