"""Scores of a ranking and of a second look in, one order out; pure but for asking the reranker.

The pool that is looked at again has the same size whatever the limit, and nothing outside it can overtake what is
inside: so the best k stay the first k of the best k+n.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from notewell.errors import RerankerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notewell.protocols import Reranker


class Reranked(NamedTuple):
    """Where a candidate stood before, and the score it is shown with now."""

    position: int  # from 0, in the ranking that came in
    score: float


def second_look(reranker: Reranker, query: str, texts: Sequence[str]) -> tuple[list[float] | None, str]:
    """Return one score a text and nothing, or nothing and what the reader should know: the old order stands."""
    if not texts or not query.strip():
        return None, ""
    try:
        scores = [float(score) for score in reranker.rerank(query, texts)]
        _check(scores, len(texts))
    except RerankerError as error:
        return None, f"not reranked: {error.message}; {error.hint}".rstrip("; ")
    return scores, ""


def _check(scores: Sequence[float], count: int) -> None:
    if len(scores) != count:
        raise RerankerError(f"the reranker gave {len(scores)} scores for {count} texts")
    if not all(map(math.isfinite, scores)):
        raise RerankerError("the reranker gave a score that is no number")


def reranked(scores: Sequence[float], second_scores: Sequence[float], *, weight: float) -> list[Reranked]:
    """Return every position once, best first.

    `scores` are of the whole ranking, best first; `second_scores` of its first so many, on any scale. Those are spread
    over the range that the pool's own scores cover and mixed with them, `weight` being their share: a score stays
    between 0 and 1 and goes on meaning what it meant, and whatever lies outside the pool stays below it. Ties keep the
    order of the second look, then that of the first.
    """
    pool = scores[: len(second_scores)]
    if not pool or weight <= 0:
        return [Reranked(position, score) for position, score in enumerate(scores)]
    low, high = min(pool), max(pool)
    shares = _from_0_to_1(second_scores)
    # Rounding must not carry a score out of the range of the pool.
    mixed = [
        min(high, max(low, (1 - weight) * score + weight * (low + (high - low) * share)))
        for score, share in zip(pool, shares, strict=True)
    ]
    order = sorted(range(len(pool)), key=lambda at: (-mixed[at], -shares[at], at))
    rest = [Reranked(position, scores[position]) for position in range(len(pool), len(scores))]
    return [Reranked(at, mixed[at]) for at in order] + rest


def _from_0_to_1(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    # Halved first: the difference of two very large numbers of opposite sign would be infinite.
    span = high / 2 - low / 2
    return [(value / 2 - low / 2) / span if span > 0 else 0.5 for value in values]
