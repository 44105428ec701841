"""Turns text into searchable terms, the same for notes and queries and for every storage engine."""

from notewell.text.lexicon.tokenizing import (
    LEXICON_VERSION,
    LONGEST_TERM,
    Word,
    fold,
    index_terms,
    irregular_forms,
    pairs,
    runs,
    stem,
    words,
)

__all__ = [
    "LEXICON_VERSION",
    "LONGEST_TERM",
    "Word",
    "fold",
    "index_terms",
    "irregular_forms",
    "pairs",
    "runs",
    "stem",
    "words",
]
