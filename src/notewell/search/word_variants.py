"""Finds other forms in which notes may hold a word of the question: for acronyms, prefixes and typos."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

from notewell.text.function_words import function_words
from notewell.text.lexicon import fold, stem, words
from notewell.types import EVERYTHING, Term

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from notewell.protocols import Snapshot

# --- acronyms ------------------------------------------------------------------------------------

SHORTEST_ACRONYM, LONGEST_ACRONYM = 2, 5  # letters
LEAST_WORDS = 3  # of a long form in a question; the initials of two words are too often a word or another acronym
NEARBY = 100  # characters before and after an acronym searched for its explanation: "(WAL)", "WAL stands for"
MOST_USED = 8  # chunks with the acronym that are read; in more it needs no explanation
MOST_FORMS = 60  # runs of words in a question that are tried

_LETTERS_ONLY = re.compile(r"[^\W\d_]+")
_ACRONYM = re.compile(rf"(?<![\w-])[A-Z]{{{SHORTEST_ACRONYM},{LONGEST_ACRONYM}}}(?=s?(?![\w-]))")


def acronym_terms(snapshot: Snapshot, query: str) -> dict[str, list[Term]]:
    """Return the acronyms and long forms in the query that a note explains, each with its other form."""
    found: dict[str, list[Term]] = {}
    typed = [] if query.isupper() else [acronym.lower() for acronym in dict.fromkeys(_ACRONYM.findall(query))]
    long_forms: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for form, initials in islice(_long_forms(query), MOST_FORMS):
        long_forms[initials].append(form)
    explained = _explanations(snapshot, [*typed, *(initials for initials in long_forms if initials not in typed)])
    for acronym in typed:
        if forms := explained.get(acronym):
            found[acronym.upper()] = [Term(form) for form in sorted(forms)]
    for initials, typed_forms in long_forms.items():
        for form in typed_forms:
            if form in explained.get(initials, ()):
                found[" ".join(form)] = [Term((stem(initials),))]
    return found


def _long_forms(query: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the stems of neighbouring content words with their initials."""
    spoken = list(words(query))
    empty = function_words(spoken, query)
    run: list[str] = []
    for word in [*spoken, None]:
        if word is not None and word not in empty and not word.paired and all(map(str.isalpha, word.parts)):
            run += word.parts
            continue
        for start in range(len(run)):
            for stop in range(start + LEAST_WORDS, min(len(run), start + LONGEST_ACRONYM) + 1):
                form = tuple(run[start:stop])
                yield form, "".join(part[0] for part in form)
        run = []


def _explanations(snapshot: Snapshot, acronyms: Sequence[str]) -> dict[str, set[tuple[str, ...]]]:
    """Return the stems of the long forms next to each of the acronyms in some note."""
    terms = [Term((stem(acronym),)) for acronym in acronyms]
    frequencies = snapshot.document_frequencies(terms, at_most=MOST_USED + 1)
    found: dict[str, set[tuple[str, ...]]] = {}
    for acronym, term, used in zip(acronyms, terms, frequencies, strict=True):
        if 0 < used <= MOST_USED:
            matches = snapshot.keyword_matches([term], limit=MOST_USED, scope=EVERYTHING)
            chunks = snapshot.chunks([match.chunk_id for match in matches])
            found[acronym] = {form for chunk in chunks.values() for form in explained_in(chunk.text, acronym)}
    return found


def explained_in(text: str, acronym: str) -> set[tuple[str, ...]]:
    """Return the stems of word sequences near the acronym in the text whose initials are the acronym."""
    long_form = r"(?<![^\W\d_])" + r"[\s-]".join(rf"{letter}[^\W\d_]*" for letter in acronym)
    forms: set[tuple[str, ...]] = set()
    for place in re.finditer(rf"(?<!\w){acronym.upper()}(?!\w)", text):
        around = text[max(0, place.start() - NEARBY) : place.start()], text[place.end() : place.end() + NEARBY]
        for side in around:
            for match in re.finditer(long_form, side, re.IGNORECASE):
                forms.add(tuple(stem(word.lower()) for word in _LETTERS_ONLY.findall(match[0])))
    return forms


# --- typos and prefixes --------------------------------------------------------------------------

# The index holds stems, and a typo near the end of a word changes its stem beyond recognition ("calibratoin" against
# "calibr"). So all words one typo away are stemmed and looked up; only for two typos are stems compared.
# Keyword search with one typo in every query: nDCG@10 on xquad-en is .935 without this step and .966 with it (.971
# without the typo), on scifact .674 and .693 (.694); queries without typos are not affected.

# Letters from which on a word may have two letters swapped; one missing or added; one wrong; two of these typos. In
# shorter words such a typo too often makes another word: "cook" is not "cool", "snake" not "shake".
SHORTEST_WORD = 4
MISSING_FROM = 5
WRONG_FROM = 6
TWO_TYPOS_FROM = 8
SHORTEST_STEM = 7  # letters of a stem with two typos; "accord" (from "according") is not "actor"
LONGEST_WORD = 24  # letters; longer ones are pasted data, and the number of words one typo away grows with the length
MOST_WORDS = 3  # of one query; a pasted page in another language must not cost a second
MOST_SCANNED = 20_000  # terms with the same beginning; 100,000 chunks of English hold some 5,000 of them at most
MOST_GUESSES = 2  # for one word
_COUNTED_TO = 1_000  # chunks; enough to see which of two guesses is more common

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_JOINER = r"[-./@:+#'’\\_]"
# Ordinary words only: whatever has joiners, digits or capitals inside is an identifier, and those are spelled exactly.
# Not compiled here: few questions need it.
_PLAIN_WORD = rf"(?<![\w'’])(?<!\w{_JOINER})[A-Za-z][a-z]{{{SHORTEST_WORD - 1},{LONGEST_WORD - 1}}}(?!{_JOINER}?\w)"


def similar_terms(snapshot: Snapshot, query: str, absent: Collection[str]) -> dict[str, list[Term]]:
    """Return the words of the query whose stem is absent, each with the indexed terms it may mean, best first.

    A word that others begin with is taken as their beginning: `wiregu` means `wireguard`. Otherwise it may be a typo.
    """
    typed = dict.fromkeys(match[0].lower() for match in re.finditer(_PLAIN_WORD, fold(query)))
    unknown = [word for word in typed if stem(word) in absent][:MOST_WORDS]
    return {word: terms for word in unknown if (terms := _as_prefix(snapshot, word) or _as_typo(snapshot, word))}


def _as_prefix(snapshot: Snapshot, word: str) -> list[Term]:
    longer = snapshot.terms_beginning(word, lengths=range(len(word) + 1, LONGEST_WORD + 1), limit=1)
    return [Term((word,), prefix=True)] if longer else []


def _as_typo(snapshot: Snapshot, word: str) -> list[Term]:
    known_stem = stem(word)
    # The stem of a word one letter longer may be as short as two letters: "sized" is "size", "uses" is "use".
    alike = snapshot.terms_beginning(word[:2], lengths=range(2, len(word) + 3), limit=MOST_SCANNED)
    candidates = {stem(other) for other in one_typo_away(word)}
    candidates.discard(known_stem)
    elsewhere = {term for term in candidates if term[:2] != word[:2]}
    nearest = _most_common(snapshot, [*elsewhere, *candidates.intersection(alike)])
    if nearest or len(word) < TWO_TYPOS_FROM or len(known_stem) < SHORTEST_STEM:
        return nearest
    return _most_common(snapshot, within_two_typos(known_stem, alike))


def _most_common(snapshot: Snapshot, terms: Sequence[str]) -> list[Term]:
    """Return the terms in the most chunks; one that only a removed note contained is in none."""
    frequencies = snapshot.document_frequencies([Term((term,)) for term in terms], at_most=_COUNTED_TO)
    found = sorted((-frequency, term) for term, frequency in zip(terms, frequencies, strict=True) if frequency)
    return [Term((term,)) for _, term in found[:MOST_GUESSES]]


def one_typo_away(word: str) -> set[str]:
    """Return every word with two letters swapped, or one letter after the first missing, added or wrong."""
    found = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)}
    splits = [(word[:i], word[i:]) for i in range(1, len(word) + 1)]
    if len(word) >= MISSING_FROM:
        found |= {head + tail[1:] for head, tail in splits if tail}
        found |= {head + letter + tail for head, tail in splits for letter in _LETTERS}
    if len(word) >= WRONG_FROM:
        found |= {head + letter + tail[1:] for head, tail in splits if tail for letter in _LETTERS}
    return found - {word}


def within_two_typos(word: str, terms: Iterable[str]) -> list[str]:
    """Return those of the terms that at most two typos make of `word`."""
    letters = set(word)
    # Each typo adds or removes two letters at most: this test spares nine terms in ten the slow one.
    near = (term for term in terms if abs(len(term) - len(word)) <= 2 and len(letters.symmetric_difference(term)) <= 4)
    return [term for term in near if edit_distance(word, term, at_most=2) <= 2]


def edit_distance(one: str, two: str, *, at_most: int) -> int:
    """Return how many letters are missing, added, wrong or swapped; `at_most` + 1 when more."""
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
