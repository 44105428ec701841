"""Finds the long form of an acronym, and the acronym of a long form, where a note explains one by the other."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from recollect.lexicon import stem, words
from recollect.lexicon.function_words import function_words
from recollect.types import EVERYTHING, Term

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.protocols import Snapshot

SHORTEST, LONGEST = 2, 6  # letters
READ = 8  # chunks that hold the acronym are read for an explanation
NEARBY = 60  # characters between an acronym and its explanation: "(WAL)", "WAL stands for"
MOST_USED = 50  # chunks; two letters in more of them are a word such as "is", not the initials of two words

_WORD = re.compile(r"[^\W\d_]+")
_ACRONYM = re.compile(rf"(?<![\w-])[A-Z]{{{SHORTEST},{LONGEST}}}(?=s?(?![\w-]))")


def acronyms_of(snapshot: Snapshot, query: str) -> dict[str, list[Term]]:
    """Return acronyms and long forms of the query, each with the other form by which notes may speak of it."""
    found: dict[str, list[Term]] = {}
    if not query.isupper():
        for acronym in dict.fromkeys(_ACRONYM.findall(query)):
            if forms := _explanations(snapshot, acronym.lower()):
                found[acronym] = [Term(form) for form in sorted(forms)]
    for long_form, initials in _long_forms(query):
        if long_form in _explanations(snapshot, initials):
            found[" ".join(long_form)] = [Term((stem(initials),))]
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
            for stop in range(start + SHORTEST, min(len(run), start + LONGEST) + 1):
                form = tuple(run[start:stop])
                yield form, "".join(part[0] for part in form)
        run = []


def _explanations(snapshot: Snapshot, acronym: str) -> set[tuple[str, ...]]:
    """Return the stems of the long forms that stand beside the acronym in some note."""
    term = Term((stem(acronym),))
    (used,) = snapshot.document_frequencies([term], at_most=MOST_USED + 1)
    if not used or (len(acronym) == SHORTEST and used > MOST_USED):
        return set()
    matches = snapshot.keyword_matches([term], limit=READ, scope=EVERYTHING)
    chunks = snapshot.chunks([match.chunk_id for match in matches])
    return {form for chunk in chunks.values() for form in explained_in(chunk.text, acronym)}


def explained_in(text: str, acronym: str) -> set[tuple[str, ...]]:
    """Return the stems of word sequences near the acronym in the text whose initials spell it."""
    places = [match.start() for match in re.finditer(rf"(?<!\w){acronym.upper()}(?!\w)", text)]
    if not places:
        return set()
    found = list(_WORD.finditer(text))
    forms = set()
    for at in range(len(found) - len(acronym) + 1):
        some = found[at : at + len(acronym)]
        if any(match[0][0].lower() != letter for match, letter in zip(some, acronym, strict=True)):
            continue
        start, end = some[0].start(), some[-1].end()
        together = all(second.start() - first.end() <= 1 for first, second in pairwise(some))
        if together and any(end <= place <= end + NEARBY or place <= start <= place + NEARBY for place in places):
            forms.add(tuple(stem(match[0].lower()) for match in some))
    return forms
