"""The measures of retrieval quality, computed from rankings and judgements."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

RESAMPLES = 1_000  # enough for two digits of a 95 % interval


def ndcg(ranking: Sequence[str], grades: Mapping[str, float], *, at: int = 10) -> float:
    """Return the normalised discounted cumulative gain with linear gain."""
    gain = sum(grades.get(doc, 0.0) / math.log2(rank + 1) for rank, doc in enumerate(ranking[:at], start=1))
    ideal = sum(
        grade / math.log2(rank + 1) for rank, grade in enumerate(sorted(grades.values(), reverse=True)[:at], start=1)
    )
    return gain / ideal


def recall(ranking: Sequence[str], grades: Mapping[str, float], *, at: int) -> float:
    """Return the share of the relevant documents among the first `at`."""
    return len(set(ranking[:at]) & grades.keys()) / len(grades)


def hit(ranking: Sequence[str], grades: Mapping[str, float], *, at: int) -> float:
    """Return 1 if any relevant document is among the first `at`."""
    return float(any(document in grades for document in ranking[:at]))


def reciprocal_rank(ranking: Sequence[str], grades: Mapping[str, float], *, at: int = 100) -> float:
    """Return one over the rank of the first relevant document."""
    return next((1 / rank for rank, document in enumerate(ranking[:at], start=1) if document in grades), 0.0)


METRICS: Mapping[str, Callable[[Sequence[str], Mapping[str, float]], float]] = {
    "ndcg@10": lambda ranking, grades: ndcg(ranking, grades, at=10),
    "recall@5": lambda ranking, grades: recall(ranking, grades, at=5),
    "recall@10": lambda ranking, grades: recall(ranking, grades, at=10),
    "hit@1": lambda ranking, grades: hit(ranking, grades, at=1),
    "hit@5": lambda ranking, grades: hit(ranking, grades, at=5),
    "mrr": reciprocal_rank,
}


def kept_by_threshold(shown: Sequence[str], grades: Mapping[str, float]) -> dict[str, float]:
    """Return what the default limit and threshold make of a search: how much of it is relevant, how much was found."""
    relevant = len(set(shown) & grades.keys())
    return {
        "precision": relevant / len(shown) if shown else 0.0,
        "kept": relevant / len(grades),
        "shown": float(len(shown)),
    }


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean over queries."""
    draw = random.Random(seed)  # noqa: S311  (statistics, not secrets)
    means = sorted(mean(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]
