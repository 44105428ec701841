"""Finds the long form of an acronym, and the acronym of a long form, where a note explains one by the other."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

from notewell.text.lexicon import stem, words
from notewell.text.lexicon.function_words import function_words
from notewell.types import EVERYTHING, Term

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notewell.protocols import Snapshot

SHORTEST, LONGEST = 2, 5  # letters
LEAST_WORDS = 3  # of a long form in a question; the initials of two words are too often a word or another acronym
NEARBY = 100  # characters before and after an acronym in which its explanation stands: "(WAL)", "WAL stands for"
MOST_USED = 8  # chunks that hold the acronym and are read; in more it needs no explanation
MOST_FORMS = 60  # runs of words in a question that are tried

_WORD = re.compile(r"[^\W\d_]+")
_ACRONYM = re.compile(rf"(?<![\w-])[A-Z]{{{SHORTEST},{LONGEST}}}(?=s?(?![\w-]))")


def acronyms_of(snapshot: Snapshot, query: str) -> dict[str, list[Term]]:
    """Return acronyms and long forms of the query, each with the other form by which notes may speak of it."""
    found: dict[str, list[Term]] = {}
    written = [] if query.isupper() else [acronym.lower() for acronym in dict.fromkeys(_ACRONYM.findall(query))]
    spelled: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for form, initials in islice(_long_forms(query), MOST_FORMS):
        spelled[initials].append(form)
    explained = _explanations(snapshot, [*written, *(each for each in spelled if each not in written)])
    for acronym in written:
        if forms := explained.get(acronym):
            found[acronym.upper()] = [Term(form) for form in sorted(forms)]
    for initials, forms_asked in spelled.items():
        for form in forms_asked:
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
            for stop in range(start + LEAST_WORDS, min(len(run), start + LONGEST) + 1):
                form = tuple(run[start:stop])
                yield form, "".join(part[0] for part in form)
        run = []


def _explanations(snapshot: Snapshot, acronyms: Sequence[str]) -> dict[str, set[tuple[str, ...]]]:
    """Return the stems of the long forms that stand beside each of the acronyms in some note."""
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
    """Return the stems of word sequences near the acronym in the text whose initials spell it."""
    forms: set[tuple[str, ...]] = set()
    for place in re.finditer(rf"(?<!\w){acronym.upper()}(?!\w)", text):
        around = text[max(0, place.start() - NEARBY) : place.start()], text[place.end() : place.end() + NEARBY]
        for side in around:
            forms |= {
                tuple(stem(word.lower()) for word in _WORD.findall(match[0])) for match in _spelling(acronym, side)
            }
    return forms


def _spelling(acronym: str, text: str) -> Iterator[re.Match[str]]:
    words = r"[\s-]".join(rf"{letter}[^\W\d_]*" for letter in acronym)
    return re.finditer(rf"(?<![^\W\d_]){words}", text, re.IGNORECASE)
