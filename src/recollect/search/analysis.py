"""A query as typed in, the terms to look for out; never an exception, whatever was typed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.lexicon import words
from recollect.search.stop_words import STOP_WORDS
from recollect.types import Term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.lexicon import Word

LONGEST_QUERY = 4_000  # characters; what stands after that in a pasted page adds noise, not meaning
MOST_TERMS = 48  # rarest first; a long question has 10 to 20
COMMON = 4_000  # chunks; a term in more of them costs time and says little while rarer ones remain
RARE = 5  # chunks; a word in no more of them points at them, as a name or an id does
ABSENT_WEIGHT = 0.5  # of a word that no note holds: the others match only a part of what was meant
LEAST_IDF = 1e-6  # FTS5's own floor for terms in more than half of the rows

_QUOTED = re.compile(r'["“„«]([^"”“»]{2,200})["”»]')


@dataclass(frozen=True, slots=True)
class WeighedTerm:
    """A term with the number of chunks that hold it and the weight BM25 gives it."""

    term: Term
    frequency: int  # chunks, counted up to COMMON
    weight: float  # inverse document frequency as FTS5 computes it


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """What the keyword leg asks for, and how much a full match would weigh."""

    terms: tuple[Term, ...]
    full_weight: float  # sum of the weights of its words
    rarest: Term | None = None  # the word in the fewest chunks, if it is in so few that it names them


def query_terms(query: str) -> tuple[Term, ...]:
    """Return the terms of the query, without repeats: content words, wholes of identifiers, phrases.

    Stop words are left out while anything else remains.
    """
    query = query[:LONGEST_QUERY]
    found = list(words(query))
    content = [word for word in found if not _is_stop_word(word)] or found
    terms = [term for word in content for term in _terms_of(word)]
    phrases = [Term(_flat(quoted)) for quoted in _QUOTED.findall(query)]
    terms += [phrase for phrase in phrases if len(phrase.tokens) > 1]
    return tuple(dict.fromkeys(terms))


def weigh(terms: Sequence[Term], frequencies: Sequence[int], chunks: int) -> list[WeighedTerm]:
    """Return each term with its weight in an index of `chunks` chunks."""
    return [
        WeighedTerm(term, frequency, max(LEAST_IDF, math.log((chunks - frequency + 0.5) / (frequency + 0.5))))
        for term, frequency in zip(terms, frequencies, strict=True)
    ]


def choose_terms(weighed: Sequence[WeighedTerm]) -> KeywordQuery:
    """Return the terms worth asking for: those that occur, without very common ones while rarer ones remain."""
    present = [w for w in weighed if w.frequency]
    rare = [w for w in present if w.frequency < COMMON]
    chosen = sorted(rare or present, key=lambda w: w.frequency)[:MOST_TERMS]
    single = [w for w in weighed if len(w.term.tokens) == 1]
    return KeywordQuery(
        terms=tuple(w.term for w in chosen),
        full_weight=sum(w.weight * (1 if w.frequency else ABSENT_WEIGHT) for w in single),
        rarest=next((w.term for w in chosen if w.frequency <= RARE), None),
    )


def _terms_of(word: Word) -> list[Term]:
    if not word.paired:
        return [Term((part,)) for part in word.parts] + ([Term((word.whole,))] if word.whole else [])
    *pairs, last = word.parts
    if not pairs:
        return [Term((last,), prefix=True)]  # one character: any pair that begins with it
    single = [Term((pair,)) for pair in pairs]
    return [*single, Term(tuple(pairs))] if len(pairs) > 1 else single


def _flat(quoted: str) -> tuple[str, ...]:
    tokens: list[str] = []
    for word in words(quoted):
        tokens += word.parts[:-1] if word.paired and len(word.parts) > 1 else word.parts
    return tuple(tokens)


def _is_stop_word(word: Word) -> bool:
    return not word.whole and not word.paired and all(part in STOP_WORDS for part in word.parts)
