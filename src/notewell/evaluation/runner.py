"""Measures a test set through the real pipeline: documents become notes, queries searches of a real memory."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from notewell.evaluation.metrics import METRICS, interval, kept_by_threshold, mean
from notewell.evaluation.variants import VARIANTS
from notewell.evaluation.workspaces import write_workspaces
from notewell.memory.memory import Memory
from notewell.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from notewell.evaluation.test_sets import EvalSet
    from notewell.evaluation.workspaces import ScopeWorkspace
    from notewell.protocols import Embedder
    from notewell.search.tuning import Tuning
    from notewell.types import ProgressCallback, SearchAnswer

DEEPEST = 100  # documents ranked for a query; what lies beyond counts as not found


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
    """Return means with their intervals."""
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


def evaluate(
    eval_set: EvalSet,
    *,
    work: Path,
    variants: Sequence[str],
    flags: Mapping[str, object],
    tuning: Tuning | None = None,
    progress: ProgressCallback | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> list[Figures]:
    """Index the set once below `work` and return the figures of each variant."""
    workspaces = write_workspaces(eval_set, work)
    for scope, workspace in workspaces.items():
        announce(f"{eval_set.name}: indexing {scope or 'all documents'}")
        with open_memory(workspace.folder, flags) as memory:
            memory.index(progress=progress)
    figures = []
    for variant in variants:
        announce(f"{eval_set.name}: asking {len(eval_set.queries):,} queries ({variant})")
        figures.append(_figures(eval_set, workspaces, variant, flags, tuning))
    return figures


def open_memory(
    folder: Path, flags: Mapping[str, object], *, embedder: Embedder | None = None, tuning: Tuning | None = None
) -> Memory:
    """Open the memory of a workspace with these settings on top, and with other numbers for the ranking if given."""
    return Memory(folder, load_settings(folder, flags=flags).settings, embedder=embedder, tuning=tuning)


def _figures(
    eval_set: EvalSet,
    workspaces: Mapping[str, ScopeWorkspace],
    variant: str,
    flags: Mapping[str, object],
    tuning: Tuning | None,
) -> Figures:
    per_query: defaultdict[str, list[float]] = defaultdict(list)
    milliseconds: list[float] = []
    for scope, workspace in workspaces.items():
        with open_memory(workspace.folder, {**flags, **VARIANTS[variant]}, tuning=tuning) as memory:
            for query in (q for q in eval_set.queries if q.scope == scope):
                started = time.perf_counter()
                answer = memory.search(query.text, sync=False)
                milliseconds.append((time.perf_counter() - started) * 1000)
                deep = memory.search(query.text, limit=4 * DEEPEST, min_score=0, sync=False)
                for metric, measure in METRICS.items():
                    per_query[metric].append(measure(found_documents(deep, workspace), query.grades))
                for metric, value in kept_by_threshold(found_documents(answer, workspace), query.grades).items():
                    per_query[metric].append(value)
    return summarise(eval_set, variant, per_query, milliseconds)


def found_documents(answer: SearchAnswer, workspace: ScopeWorkspace) -> list[str]:
    """Return the documents in the order of their best chunk."""
    return list(dict.fromkeys(workspace.documents[hit.path] for hit in answer.hits))[:DEEPEST]
