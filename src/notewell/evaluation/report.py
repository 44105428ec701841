"""Shows measured figures as JSON or as a Markdown table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notewell.evaluation.runner import Figures


def figures_document(figures: Sequence[Figures]) -> dict[str, Any]:
    """Return everything that was measured, with the 95 % interval of each figure."""
    return {"sets": [_set_document(each) for each in figures]}


def figures_table(figures: Sequence[Figures]) -> Iterator[str]:
    """Yield the lines of a Markdown table with half the 95 % interval; the best of each set is marked.

    A metric that was not measured on a set leaves its cell empty.
    """
    metrics = list(dict.fromkeys(metric for each in figures for metric in each.values))
    yield f"| set | search | {' | '.join(metrics)} | p50 ms |"
    yield f"|---|---|{'---|' * len(metrics)}---|"
    best = {(name, metric): _best(figures, name, metric) for name in _names(figures) for metric in metrics}
    for each in figures:
        cells = [_cell(each, metric, best[each.name, metric]) for metric in metrics]
        yield f"| {each.name} | {each.variant} | {' | '.join(cells)} | {each.p50_ms:.1f} |"


def _set_document(figures: Figures) -> dict[str, Any]:
    return {
        "name": figures.name,
        "search": figures.variant,
        "documents": figures.documents,
        "queries": figures.queries,
        **{metric: round(value, 4) for metric, value in figures.values.items()},
        "p50_ms": round(figures.p50_ms, 3),
        "intervals": {metric: [round(low, 4), round(high, 4)] for metric, (low, high) in figures.intervals.items()},
    }


def _names(figures: Sequence[Figures]) -> list[str]:
    return list(dict.fromkeys(each.name for each in figures))


def _best(figures: Sequence[Figures], name: str, metric: str) -> float:
    return max(each.values.get(metric, 0.0) for each in figures if each.name == name)


def _cell(figures: Figures, metric: str, best: float) -> str:
    if metric not in figures.values:
        return ""
    value = figures.values[metric]
    low, high = figures.intervals[metric]
    shown = f"{value:.3f} ±{(high - low) / 2:.3f}"
    return f"**{shown}**" if value == best else shown
