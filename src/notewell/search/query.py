"""Turns a question into the terms to search for; no text is a syntax error."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from notewell.search.dates.filters import day_phrases
from notewell.store.bm25 import rarity
from notewell.text.function_words import function_words
from notewell.text.lexicon import fold, index_terms, pairs, stem, words
from notewell.types import Term

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from notewell.protocols import Snapshot
    from notewell.search.tuning import Tuning
    from notewell.text.lexicon import Word

LONGEST_QUERY = 4_000  # characters; the rest of a pasted page adds noise, not meaning

_QUOTED = re.compile(r'["“„«]([^"”“»]{2,200})["”»]')
# Words in questions for everything from a time: "what happened in August", "notes of last week".
_ASKING_STEMS = frozenset(
    map(
        stem,
        """
        happened happen happening note notes noted write wrote written record recorded entry entries going went did done
        passiert geschah geschehen notiz notizen notiert gemacht los passe arrive pasado paso notas nota
        aconteceu fizemos hicimos
        """.split(),
    )
)
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


@dataclass(frozen=True, slots=True)
class WeighedTerm:
    """A term with the number of chunks that contain it and its weight in BM25."""

    term: Term
    frequency: int  # chunks, counted until it is very common
    weight: float  # inverse document frequency as FTS5 computes it


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """What the keyword side asks for, and how much a full match would weigh."""

    terms: tuple[Term, ...] = ()
    full_weight: float = 0.0  # sum of the weights of its words, and of its heaviest phrase
    led_by: tuple[Term, ...] = ()  # the rarest of the terms: a chunk without any of them is no candidate
    weights: Mapping[str, float] = field(default_factory=dict)  # of the tokens of the terms
    pairs: tuple[Term, ...] = ()  # content words next to each other in the question
    function_words: tuple[str, ...] = ()  # as typed, in lower case
    only_time: bool = False  # the question asks for nothing but a time: "what happened in August"
    guesses: tuple[tuple[str, tuple[Term, ...]], ...] = ()  # words that no note contains, and what they may mean

    def covered_by(self, text: str) -> float:
        """Return the share of the question's weight whose words stand in the text, however often."""
        standing = set(index_terms(text).split())
        begun = {term.tokens[-1] for term in self.terms if term.prefix}
        found = sum(
            weight
            for token, weight in self.weights.items()
            if token in standing or (token in begun and any(each.startswith(token) for each in standing))
        )
        return min(1.0, found / self.full_weight) if self.full_weight else 0.0


def keyword_query(snapshot: Snapshot, query: str, tuning: Tuning, *, about_time: str = "") -> KeywordQuery:
    """Return what a keyword search of this snapshot looks for.

    `about_time` are words of the question that the dates of notes answer: they are not searched for.
    """
    typed = query[:LONGEST_QUERY]
    spoken = list(words(typed))
    empty = function_words(spoken, typed)
    terms = _terms(typed, spoken, empty)
    chunks = snapshot.counts().chunks
    common = common_from(chunks, tuning)
    weighed = _weighed(snapshot, terms, common, chunks)
    if about_time:
        timely = {part for word in words(about_time) for part in (*word.parts, word.whole)}
        weighed = [w for w in weighed if not timely.issuperset(w.term.tokens)]
    guessed, guesses = _guessed(snapshot, typed, weighed, common, chunks)
    chosen = choose_terms([*weighed, *guessed], tuning, common=common)
    pairs_of_runs = {pair for word in spoken if word.paired for pair in word.parts}
    return replace(
        chosen,
        full_weight=_full_weight(weighed, pairs_of_runs, tuning),
        pairs=_pairs(spoken, empty, chosen.weights, tuning),
        function_words=_typed_words(typed, empty) if len(empty) < len(spoken) else (),
        only_time=bool(about_time) and all(_asks_only(w.term) for w in weighed),
        guesses=guesses,
    )


def query_terms(query: str) -> tuple[Term, ...]:
    """Return the terms of the question, without repeats: content words, whole identifiers, quoted phrases, days.

    Function words are left out while anything else remains.
    """
    typed = query[:LONGEST_QUERY]
    spoken = list(words(typed))
    return _terms(typed, spoken, function_words(spoken, typed))


def _terms(query: str, spoken: Sequence[Word], empty: Collection[Word]) -> tuple[Term, ...]:
    alone = len(spoken) == 1
    terms = [term for word in spoken if word not in empty for term in _content_terms(word, alone=alone)]
    terms = terms or [term for word in spoken for term in _terms_of(word)]
    phrases = [Term(_flat(quoted)) for quoted in _QUOTED.findall(query)]
    terms += [phrase for phrase in phrases if len(phrase.tokens) > 1]
    terms += day_phrases(part for word in spoken if not word.paired for part in word.parts)
    return tuple(dict.fromkeys(terms))


def _asks_only(term: Term) -> bool:
    return len(term.tokens) == 1 and term.tokens[0] in _ASKING_STEMS


def _typed_words(query: str, empty: Collection[Word]) -> tuple[str, ...]:
    """Return the function words as texts have them, in lower case."""
    known = {part for word in empty for part in word.parts}
    typed = dict.fromkeys(match[0].lower() for match in _PLAIN_WORD.finditer(fold(query)))
    return tuple(word for word in typed if all(part in known for part in next(words(word)).parts))


def _pairs(
    spoken: Sequence[Word], empty: Collection[Word], asked: Mapping[str, float], tuning: Tuning
) -> tuple[Term, ...]:
    """Return content words next to each other as phrases: "support group" is more than its words.

    Only words that are searched for: pairs of very common ones would cost more than all the rest.
    """
    found = {
        Term((one.parts[-1], other.parts[0])): None
        for one, other in pairwise(spoken)
        if not (one.paired or other.paired or one in empty or other in empty)
        and one.parts
        and other.parts
        and one.parts[-1] in asked
        and other.parts[0] in asked
    }
    return tuple(found)[: tuning.most_terms]


def _guessed(
    snapshot: Snapshot, query: str, weighed: Sequence[WeighedTerm], common: int, chunks: int
) -> tuple[list[WeighedTerm], tuple[tuple[str, tuple[Term, ...]], ...]]:
    """Return terms for acronyms and for words that no chunk contains; quoted text is taken literally."""
    if not chunks:
        return [], ()
    from notewell.search.word_variants import acronym_terms, similar_terms  # an empty memory needs neither

    unquoted = _QUOTED.sub(" ", query)
    known = {w.term for w in weighed}
    guesses: dict[str, list[Term]] = acronym_terms(snapshot, unquoted)
    absent = {w.term.tokens[0] for w in weighed if not w.frequency and len(w.term.tokens) == 1}
    if absent:
        guesses |= similar_terms(snapshot, unquoted, absent)
    terms = [term for found in guesses.values() for term in found if term not in known]
    guessed = _weighed(snapshot, tuple(dict.fromkeys(terms)), common, chunks)
    return guessed, tuple(
        (word, tuple(found)) for word, found in guesses.items() if not any(term.prefix for term in found)
    )


def _weighed(snapshot: Snapshot, terms: Sequence[Term], common: int, chunks: int) -> list[WeighedTerm]:
    return weigh(terms, snapshot.document_frequencies(terms, at_most=common), chunks)


def weigh(terms: Sequence[Term], frequencies: Sequence[int], chunks: int) -> list[WeighedTerm]:
    """Return each term with its weight in an index of `chunks` chunks."""
    return [
        WeighedTerm(term, frequency, rarity(chunks, frequency))
        for term, frequency in zip(terms, frequencies, strict=True)
    ]


def common_from(chunks: int, tuning: Tuning) -> int:
    """Return from how many of `chunks` chunks on a term is very common."""
    return min(tuning.common, max(tuning.common_least, round(tuning.common_share * chunks)))


def choose_terms(weighed: Sequence[WeighedTerm], tuning: Tuning, *, common: int) -> KeywordQuery:
    """Return the terms worth searching for: those that occur, without very common ones while rarer ones remain."""
    present = [w for w in weighed if w.frequency]
    rare = [w for w in present if w.frequency < common]
    chosen = sorted(rare or present, key=lambda w: w.frequency)[: tuning.most_terms]
    leading: list[Term] = []
    named = 0
    for each in chosen:
        leading.append(each.term)
        named += each.frequency
        if named >= tuning.led_by:
            break
    return KeywordQuery(
        terms=tuple(w.term for w in chosen),
        led_by=tuple(leading),
        weights={token: w.weight for w in chosen for token in w.term.tokens},
    )


def _full_weight(weighed: Sequence[WeighedTerm], pairs_of_runs: Collection[str], tuning: Tuning) -> float:
    """Return the weight of a chunk with all of the question's words, and its heaviest phrase.

    In a small memory, words may be in most chunks and weigh next to nothing. That another word is missing says little
    there, so it counts no more than they do: `deploy checklist` finds what there is about `deploy`. Two characters that
    are never next to each other often belong to two words.
    """
    single = [w for w in weighed if len(w.term.tokens) == 1]
    present = [w.weight for w in single if w.frequency]
    absent = [
        w.weight * (tuning.absent_pairs if w.term.tokens[0] in pairs_of_runs else 1) for w in single if not w.frequency
    ]
    usual = sum(present) / len(present) if present else tuning.ordinary_weight
    if usual < tuning.ordinary_weight:
        absent = [min(weight, usual) for weight in absent]
    phrases = [w.weight for w in weighed if w.frequency and len(w.term.tokens) > 1]  # other ways to write one day
    return sum(present) + sum(absent) + max(phrases, default=0.0)


def _content_terms(word: Word, *, alone: bool) -> list[Term]:
    """Return the terms of a word; a run of unspaced text leaves its function words out."""
    if not word.paired:
        return _terms_of(word)
    from notewell.search.unspaced import content_pieces  # preparing its tables takes 3 ms

    run = "".join(pair[0] for pair in word.parts)
    return [term for piece in content_pieces(run, alone=alone) for term in _paired_terms(pairs(piece))]


def _terms_of(word: Word) -> list[Term]:
    if word.paired:
        return _paired_terms(word.parts)
    return [Term((part,)) for part in word.parts] + ([Term((word.whole,))] if word.whole else [])


def _paired_terms(parts: Sequence[str]) -> list[Term]:
    """Return the pairs; a single character means any pair that begins with it."""
    *pairs_of_run, last = parts
    return [Term((pair,)) for pair in pairs_of_run] or [Term((last,), prefix=True)]


def _flat(quoted: str) -> tuple[str, ...]:
    tokens: list[str] = []
    for word in words(quoted):
        tokens += word.parts[:-1] if word.paired and len(word.parts) > 1 else word.parts
    return tuple(tokens)
