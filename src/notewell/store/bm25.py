"""Computes BM25 as FTS5 does, so that every storage engine gives the same scores.

The formula works on NumPy arrays without importing NumPy: SQLite needs only the constants.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from notewell.text import valid_unicode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from notewell.types import Term

CONTEXT_WEIGHT = 0.5  # a word of the headings or path counts half as much as one of the text
SATURATION = 1.2  # k1 of FTS5: how much repeating a word counts
LENGTH_SHARE = 0.75  # b of FTS5: how much the length of a text counts
LEAST_RARITY = 1e-6  # of a word in more than half of the texts
_TOKEN = re.compile(r"[^\x00-\x20\x7f]+")  # a token of FTS5 with our settings
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}  # of ASCII letters; ours are lower anyway


def rarity(rows: int, holding: int) -> float:
    """Return the weight of a term by the number of rows that contain it."""
    return max(math.log((rows - holding + 0.5) / (holding + 0.5)), LEAST_RARITY)


def scores(
    weight: float, frequencies: NDArray[np.float64], lengths: NDArray[np.float64], mean_length: float
) -> NDArray[np.float64]:
    """Return what a term adds to the scores of texts, by its frequency in each."""
    norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths / mean_length)
    return weight * (frequencies * (SATURATION + 1)) / (frequencies + norm)


def storable(text: str) -> str:
    """Return the text without NUL and lone surrogates, which databases refuse."""
    return valid_unicode(text.replace("\0", " "))


def tokens_of(terms: str) -> list[str]:
    """Split terms at blanks, in the form in which they are compared."""
    return _TOKEN.findall(storable(terms).translate(_LOWER))


def tokens_of_term(term: Term) -> list[str]:
    """Return the tokens of a term."""
    return tokens_of(" ".join(term.tokens))
