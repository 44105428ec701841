"""Ranked texts in, an order that says something new at every step out; pure.

Maximal marginal relevance (Carbonell and Goldstein 1998), with the similarity of two texts as the share of their terms
that they have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from notewell.text.lexicon import index_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

DIVERSITY_POOL = 50  # the best so many are put in order; the limit does not matter, so that any k is a prefix of k+n


def diverse_order(scores: Sequence[float], texts: Sequence[str], *, relevance: float) -> list[int]:
    """Return the positions of the texts, each the best trade of score against likeness to those before it."""
    term_sets = [frozenset(index_terms(text).split()) for text in texts]
    best = max(scores, default=0.0) or 1.0
    likeness = [0.0] * len(scores)  # to the nearest text chosen so far
    remaining = list(range(len(scores)))
    order: list[int] = []
    while remaining:
        chosen = max(remaining, key=lambda i: (relevance * scores[i] / best - (1 - relevance) * likeness[i], -i))
        remaining.remove(chosen)
        order.append(chosen)
        for i in remaining:
            likeness[i] = max(likeness[i], _jaccard(term_sets[i], term_sets[chosen]))
    return order


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0
