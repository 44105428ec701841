"""A query as typed in, the terms to look for out; never an exception, whatever was typed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Self

from recollect.lexicon import pairs, words
from recollect.lexicon.function_words import function_words
from recollect.lexicon.synonyms import synonyms
from recollect.search.day_phrases import day_phrases
from recollect.types import Term

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from recollect.lexicon import Word
    from recollect.protocols import Snapshot

LONGEST_QUERY = 4_000  # characters; what stands after that in a pasted page adds noise, not meaning
MOST_TERMS = 48  # rarest first; a long question has 10 to 20
COMMON = 4_000  # chunks; a term in more of them costs time and says little while rarer ones remain,
COMMON_SHARE = 0.2  # and so does one in more than this share; by words alone it costs scifact .007 of nDCG@10,
LEAST_COMMON = 500  # unless that is so few that nothing is gained
LED_BY = 200  # chunks; the rarest terms that are in so many together find the candidates, the others only score them
RARE = 5  # chunks; a word in no more of them points at them, if it is a name or an id
POINTED = 0.25  # of the query's weight: from there on any rare word is what the query is about
ABSENT_WEIGHT = 0.5  # of a word that no note holds: the others match only a part of what was meant
TELLING = 1.0  # mean weight of words; those of a lower one are in more than a quarter of the chunks
GUESS_WEIGHT = 0.5  # of a term that is spelled nearly like an absent word: it may not be what was meant
RELATED_WEIGHT = 0.3  # of a word that means about the same as one of the query; 0.2 and 0.5 do as well
LEAST_IDF = 1e-6  # FTS5's own floor for terms in more than half of the rows

_QUOTED = re.compile(r'["“„«]([^"”“»]{2,200})["”»]')


@dataclass(frozen=True, slots=True)
class WeighedTerm:
    """A term with the number of chunks that hold it and the weight BM25 gives it."""

    term: Term
    frequency: int  # chunks, counted up to what is very common
    weight: float  # inverse document frequency as FTS5 computes it
    guessed: bool = False  # not in the query: it is spelled nearly like a word of it that no chunk holds


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """What the keyword leg asks for, and how much a full match would weigh."""

    terms: tuple[Term, ...]
    full_weight: float  # sum of the weights of its words, and of its heaviest phrase
    rarest: Term | None = None  # the word in the fewest chunks, if it is in so few, and such a word, that it names them
    led_by: tuple[Term, ...] = ()  # the rarest of the terms: a chunk that holds none of them is no candidate
    weights: Mapping[str, float] = field(default_factory=dict)  # of the tokens of the terms
    pairs: tuple[Term, ...] = ()  # content words that stand next to each other in the query
    related: tuple[Term, ...] = ()  # words that mean about the same as rare ones of the query
    related_led_by: tuple[Term, ...] = ()  # the rarest of those
    respelled: tuple[str, ...] = ()  # words that no note holds: others, spelled nearly like them, are looked for


def keyword_query(snapshot: Snapshot, query: str, *, about_time: str = "") -> KeywordQuery:
    """Return what to ask the keyword leg of this store for.

    `about_time` are those words of the query that say when. The date of a note may answer them: where no chunk holds
    them, none lacks them.
    """
    spoken = _Spoken.of(query)
    terms = _terms(spoken)
    chunks = snapshot.counts().chunks
    common = common_from(chunks)
    weighed = weigh(terms, snapshot.document_frequencies(terms, at_most=common), chunks)
    if about_time:
        timely = {part for word in words(about_time) for part in (*word.parts, word.whole)}
        weighed = [w for w in weighed if w.frequency or not timely.issuperset(w.term.tokens)] or weighed
    absent = {w.term.tokens[0] for w in weighed if not w.frequency and len(w.term.tokens) == 1}
    names = _names(spoken.query)
    meant = names.union(*map(_flat, _QUOTED.findall(spoken.query)))  # names and what stands in quotes are meant as is
    related = _related(snapshot, weighed, meant, common=common, chunks=chunks)
    if not absent or not chunks:
        return _with_related(_with_pairs(choose_terms(weighed, common=common, names=names), spoken), related)
    from recollect.search.spelling import similar_terms  # takes 2 ms to import, and most queries know their words

    unquoted = _QUOTED.sub(" ", query[:LONGEST_QUERY])  # what stands in quotes is meant as it is
    similar = similar_terms(snapshot, unquoted, absent)
    guesses = [Term((guess,)) for guess in dict.fromkeys(term for found in similar.values() for term in found)]
    guesses = [guess for guess in guesses if guess not in terms]
    guessed = weigh(guesses, snapshot.document_frequencies(guesses, at_most=common), chunks)
    weighed += [replace(w, guessed=True) for w in guessed]
    chosen = choose_terms(weighed, common=common, names=names)
    return _with_related(replace(_with_pairs(chosen, spoken), respelled=tuple(similar)), related)


@dataclass(frozen=True, slots=True)
class _Spoken:
    """A query taken apart once: its words, and those that only say how it is asked."""

    query: str
    words: list[Word]
    empty: frozenset[Word]

    @classmethod
    def of(cls, query: str) -> Self:
        query = query[:LONGEST_QUERY]
        found = list(words(query))
        return cls(query, found, function_words(found, query))


def query_terms(query: str) -> tuple[Term, ...]:
    """Return the terms of the query, without repeats: content words, wholes of identifiers, quoted phrases, days.

    Function words are left out while anything else remains.
    """
    return _terms(_Spoken.of(query))


def _terms(spoken: _Spoken) -> tuple[Term, ...]:
    query, found, empty = spoken.query, spoken.words, spoken.empty
    alone = len(found) == 1
    terms = [term for word in found if word not in empty for term in _content_terms(word, alone=alone)]
    terms = terms or [term for word in found for term in _terms_of(word)]
    phrases = [Term(_flat(quoted)) for quoted in _QUOTED.findall(query)]
    terms += [phrase for phrase in phrases if len(phrase.tokens) > 1]
    terms += day_phrases(part for word in found if not word.paired for part in word.parts)
    return tuple(dict.fromkeys(terms))


def _with_pairs(chosen: KeywordQuery, spoken: _Spoken) -> KeywordQuery:
    """Add the content words that stand next to each other, as phrases: "support group" is more than its words.

    Only words that are asked for: pairs of very common ones would cost more than all the rest.
    """
    asked = {
        Term((one.parts[-1], other.parts[0])): None
        for one, other in pairwise(spoken.words)
        if not (one.paired or other.paired or one in spoken.empty or other in spoken.empty)
        and one.parts
        and other.parts
        and one.parts[-1] in chosen.weights
        and other.parts[0] in chosen.weights
    }
    return replace(chosen, pairs=tuple(asked)[:MOST_TERMS])


def _related(
    snapshot: Snapshot, weighed: Sequence[WeighedTerm], meant: Collection[str], *, common: int, chunks: int
) -> list[WeighedTerm]:
    """Return words that mean about the same as words of the query that hardly any chunk holds, rarest first.

    Words in `meant` stand for themselves alone.
    """
    known = {w.term for w in weighed}
    rare = [w.term.tokens[0] for w in weighed if w.frequency <= RARE and len(w.term.tokens) == 1]
    found = dict.fromkeys(Term((other,)) for word in rare if word not in meant for other in synonyms(word))
    terms = [term for term in found if term not in known]
    if not terms:
        return []
    weighed = weigh(terms, snapshot.document_frequencies(terms, at_most=common), chunks)
    return sorted((w for w in weighed if 0 < w.frequency < common), key=lambda w: w.frequency)


def _with_related(chosen: KeywordQuery, related: Sequence[WeighedTerm]) -> KeywordQuery:
    if not related:
        return chosen
    weights = {token: w.weight * RELATED_WEIGHT for w in related for token in w.term.tokens}
    return replace(
        chosen,
        related=tuple(w.term for w in related),
        related_led_by=_leading(related),
        weights={**weights, **chosen.weights},
    )


def weigh(terms: Sequence[Term], frequencies: Sequence[int], chunks: int) -> list[WeighedTerm]:
    """Return each term with its weight in an index of `chunks` chunks."""
    return [
        WeighedTerm(term, frequency, max(LEAST_IDF, math.log((chunks - frequency + 0.5) / (frequency + 0.5))))
        for term, frequency in zip(terms, frequencies, strict=True)
    ]


def common_from(chunks: int) -> int:
    """Return in how many chunks of so many a term is very common."""
    return min(COMMON, max(LEAST_COMMON, round(COMMON_SHARE * chunks)))


def choose_terms(weighed: Sequence[WeighedTerm], *, common: int = COMMON, names: Collection[str] = ()) -> KeywordQuery:
    """Return the terms worth asking for: those that occur, without very common ones while rarer ones remain."""
    present = [w for w in weighed if w.frequency]
    rare = [w for w in present if w.frequency < common]
    chosen = sorted(rare or present, key=lambda w: w.frequency)[:MOST_TERMS]
    single = [w for w in weighed if len(w.term.tokens) == 1]
    phrases = [w.weight for w in present if len(w.term.tokens) > 1]  # other ways to write one day count once
    full_weight = _full_weight(single) + max(phrases, default=0.0)
    pointing = (w for w in chosen if w.frequency <= RARE and not w.guessed and _points(w, full_weight, names))
    return KeywordQuery(
        terms=tuple(w.term for w in chosen),
        full_weight=full_weight,
        rarest=next((w.term for w in pointing), None),
        led_by=_leading(chosen),
        weights={token: w.weight for w in chosen for token in w.term.tokens},
    )


def _points(weighed: WeighedTerm, full_weight: float, names: Collection[str]) -> bool:
    """Say whether a rare word names what is asked for; others are rare by chance, and in small memories most are."""
    return weighed.weight >= POINTED * full_weight or any(
        token in names or not (token.isalpha() or _is_plain_number(token)) for token in weighed.term.tokens
    )


def _is_plain_number(token: str) -> bool:
    """Say whether this is a year or an amount, which many texts share; five digits and more are an id."""
    return token.isdecimal() and len(token) < 5


def _names(query: str) -> frozenset[str]:
    """Return the terms of words that are written with a capital inside a sentence."""
    if query.isupper() or query.istitle():
        return frozenset()
    capital = (word for word in query.split()[1:] if word[:1].isupper())
    return frozenset(part for word in words(" ".join(capital)) for part in word.parts)


def _leading(chosen: Sequence[WeighedTerm]) -> tuple[Term, ...]:
    """Return the rarest terms, as many as it takes to name enough chunks."""
    leading: list[Term] = []
    named = 0
    for weighed in chosen:
        leading.append(weighed.term)
        named += weighed.frequency
        if named >= LED_BY:
            break
    return tuple(leading)


def _full_weight(words: Sequence[WeighedTerm]) -> float:
    """Return what a chunk would weigh that holds all of these words.

    In a small memory the words there are may be in most chunks and weigh next to nothing. That another word is in none
    says little there, so it counts no more than they do: `deploy checklist` finds what there is about `deploy`.
    """
    guessed = sum(w.weight * GUESS_WEIGHT for w in words if w.guessed)
    present = [w.weight for w in words if w.frequency and not w.guessed]
    absent = [w.weight * ABSENT_WEIGHT for w in words if not w.frequency]
    usual = sum(present) / len(present) if present else TELLING
    return sum(present) + guessed + (sum(absent) if usual >= TELLING else min(sum(absent), len(absent) * usual))


def _content_terms(word: Word, *, alone: bool) -> list[Term]:
    """Return the terms of a word; a run of unspaced writing leaves its function words out."""
    if not word.paired:
        return _terms_of(word)
    from recollect.search.unspaced import content_pieces  # its tables take 3 ms to prepare: for those who need them

    run = "".join(pair[0] for pair in word.parts)
    return [term for piece in content_pieces(run, alone=alone) for term in _paired_terms(pairs(piece))]


def _terms_of(word: Word) -> list[Term]:
    if word.paired:
        return _paired_terms(word.parts)
    return [Term((part,)) for part in word.parts] + ([Term((word.whole,))] if word.whole else [])


def _paired_terms(parts: Sequence[str]) -> list[Term]:
    """Return the pairs; one character alone is any pair that begins with it."""
    *pairs_of_run, last = parts
    return [Term((pair,)) for pair in pairs_of_run] or [Term((last,), prefix=True)]


def _flat(quoted: str) -> tuple[str, ...]:
    tokens: list[str] = []
    for word in words(quoted):
        tokens += word.parts[:-1] if word.paired and len(word.parts) > 1 else word.parts
    return tuple(tokens)
