"""The metrics of retrieval quality: computed for a query, averaged over a test set, shown as a table."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from notewell.evaluation.test_sets import EvalSet

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
    """Return precision and recall of a search with the default limit and threshold, and how many documents it shows."""
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


@dataclass(frozen=True, slots=True)
class Figures:
    """What one way of searching reaches on one test set."""

    name: str
    variant: str
    queries: int
    documents: int
    values: Mapping[str, float]  # by metric
    intervals: Mapping[str, tuple[float, float]]  # 95 %, by metric
    p50_ms: float
    per_query: Mapping[str, Sequence[float]]  # by metric, in the order of the queries


def summarise(
    eval_set: EvalSet, variant: str, per_query: Mapping[str, Sequence[float]], milliseconds: Sequence[float]
) -> Figures:
    """Return the means with their intervals."""
    return Figures(
        name=eval_set.name,
        variant=variant,
        queries=len(milliseconds),
        documents=len(eval_set.documents),
        values={metric: mean(values) for metric, values in per_query.items()},
        intervals={metric: interval(values) for metric, values in per_query.items()},
        p50_ms=median(milliseconds),
        per_query=per_query,
    )


def figures_document(figures: Sequence[Figures]) -> dict[str, Any]:
    """Return everything that was measured as JSON data, with the 95 % interval of each figure."""
    return {
        "sets": [
            {
                "name": each.name,
                "search": each.variant,
                "documents": each.documents,
                "queries": each.queries,
                **{metric: round(value, 4) for metric, value in each.values.items()},
                "p50_ms": round(each.p50_ms, 3),
                "intervals": {
                    metric: [round(low, 4), round(high, 4)] for metric, (low, high) in each.intervals.items()
                },
            }
            for each in figures
        ]
    }


def figures_table(figures: Sequence[Figures]) -> Iterator[str]:
    """Yield the lines of a Markdown table with half the 95 % interval; the best value of each set is bold.

    The cell of a metric that was not measured on a set is empty.
    """
    metrics = list(dict.fromkeys(metric for each in figures for metric in each.values))
    yield f"| set | search | {' | '.join(metrics)} | p50 ms |"
    yield f"|---|---|{'---|' * len(metrics)}---|"
    best: dict[tuple[str, str], float] = {}
    for each in figures:
        for metric, value in each.values.items():
            best[each.name, metric] = max(value, best.get((each.name, metric), value))
    for each in figures:
        cells = [_cell(each, metric, best) for metric in metrics]
        yield f"| {each.name} | {each.variant} | {' | '.join(cells)} | {each.p50_ms:.1f} |"


def _cell(figures: Figures, metric: str, best: Mapping[tuple[str, str], float]) -> str:
    if metric not in figures.values:
        return ""
    value = figures.values[metric]
    low, high = figures.intervals[metric]
    shown = f"{value:.3f} ±{(high - low) / 2:.3f}"
    return f"**{shown}**" if value == best[figures.name, metric] else shown
