"""What words are: text in, searchable terms out, the same for notes and queries, so that every storage backend finds
alike; and which words say how something is said rather than what."""

from notewell.text.lexicon.terms import (
    LEXICON_VERSION,
    LONGEST_TERM,
    Word,
    fold,
    index_terms,
    irregular_forms,
    pairs,
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
    "stem",
    "words",
]
