"""Weighs terms and scores texts by BM25, as FTS5 does, so that every storage engine gives the same numbers.

NumPy is not imported here: the formula works on its arrays, and SQLite needs no more than the constants.
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

CONTEXT_WEIGHT = 0.5  # a word of the heading trail or path counts half of one in the text
SATURATION = 1.2  # k1 of FTS5: how much a word gains by being repeated
LENGTH_SHARE = 0.75  # b of FTS5: how much a long text loses
LEAST_RARITY = 1e-6  # of a word in more than half of the texts
_TOKEN = re.compile(r"[^\x00-\x20\x7f]+")  # what FTS5 takes for a token, as we set it up
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}  # of ASCII letters; ours are lower anyway


def rarity(rows: int, holding: int) -> float:
    """Return how much a term weighs by the number of rows that contain it, as FTS5's bm25() computes it."""
    return max(math.log((rows - holding + 0.5) / (holding + 0.5)), LEAST_RARITY)


def scores(
    weight: float, frequencies: NDArray[np.float64], lengths: NDArray[np.float64], mean_length: float
) -> NDArray[np.float64]:
    """Return what a term of this weight adds to texts that hold it so often."""
    norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths / mean_length)
    return weight * (frequencies * (SATURATION + 1)) / (frequencies + norm)


def storable(text: str) -> str:
    """Return the text without NUL and half surrogate pairs, which no database holds."""
    return valid_unicode(text.replace("\0", " "))


def tokens_of(terms: str) -> list[str]:
    """Return terms separated by blanks one by one, in the form in which they are compared."""
    return _TOKEN.findall(storable(terms).translate(_LOWER))


def tokens_of_term(term: Term) -> list[str]:
    """Return what a term looks for; nothing where it has no token."""
    return tokens_of(" ".join(term.tokens))
