"""A run whose embedder failed, and the run of the fallback after it: two reports in, the one that is told out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from notewell.indexing.embedding_run import EMBEDDER

if TYPE_CHECKING:
    from notewell.types import IndexReport, Problem


def embedder_problem(report: IndexReport) -> Problem | None:
    """Return why the embedder could not go on; None when it could."""
    return next((problem for problem in report.problems if problem.path == EMBEDDER), None)


def with_fallback(first: IndexReport, second: IndexReport) -> IndexReport:
    """Return what both did: the first indexed the text, the second gave it vectors. Why is told by the selection."""
    others = tuple(problem for problem in first.problems if problem.path != EMBEDDER)
    return replace(
        second,
        added=first.added,
        changed=first.changed,
        renamed=first.renamed,
        removed=first.removed,
        unchanged=first.unchanged,
        seconds=first.seconds + second.seconds,
        problems=tuple(dict.fromkeys((*others, *second.problems))),
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
    )
