"""Measures a test set through the real pipeline: documents become notes, queries become searches."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notewell.evaluation.metrics import METRICS, Figures, kept_by_threshold, summarise
from notewell.memory.memory import Memory
from notewell.settings import load_settings
from notewell.types import hash_text

if TYPE_CHECKING:
    from notewell.evaluation.test_sets import EvalDocument, EvalQuery, EvalSet
    from notewell.protocols import Embedder
    from notewell.search.tuning import Tuning
    from notewell.types import ProgressCallback, SearchAnswer

MAX_RANK = 100  # documents ranked for a query; those below count as not found

_HYBRID: Mapping[str, Any] = {"query.mode": "hybrid", "query.fusion": "balanced"}

# name -> settings by key path, on top of those in use
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "hybrid": _HYBRID,
    "keyword": {**_HYBRID, "query.mode": "keyword"},
    "semantic": {**_HYBRID, "query.mode": "semantic"},
    "weighted": {**_HYBRID, "query.fusion": "weighted"},
    "rrf": {**_HYBRID, "query.fusion": "rrf"},
    "hybrid+decay": {**_HYBRID, "query.decay.enabled": True},
    "hybrid+mmr": {**_HYBRID, "query.diversity.enabled": True},
}
DEFAULT_VARIANT = "hybrid"

_UNSAFE = re.compile(r"[^a-z0-9]+")

Place = tuple[Path, Mapping[str, object]]  # a workspace, and the settings it needs
Measure = Callable[[Memory, "SearchAnswer", "EvalQuery"], Mapping[str, float]]  # of a default search, by metric


@dataclass(frozen=True, slots=True)
class ScopeWorkspace:
    """The workspace of one scope, and which document each of its notes is."""

    folder: Path
    documents: Mapping[str, str]  # path of the note -> id of the document


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
    """Index the set once in `work` and return the figures of each variant."""
    workspaces = write_workspaces(eval_set, work)

    def measure(memory: Memory, answer: SearchAnswer, query: EvalQuery) -> dict[str, float]:
        workspace = workspaces[query.scope]
        deep = memory.search(query.text, limit=4 * MAX_RANK, min_score=0, sync=False)
        ranking = found_documents(deep, workspace)
        values = {metric: value(ranking, query.grades) for metric, value in METRICS.items()}
        return values | kept_by_threshold(found_documents(answer, workspace), query.grades)

    return run(
        eval_set,
        {scope: (workspace.folder, {}) for scope, workspace in workspaces.items()},
        measure,
        variants=variants,
        flags=flags,
        tuning=tuning,
        progress=progress,
        announce=announce,
    )


def run(
    eval_set: EvalSet,
    places: Mapping[str, Place],
    measure: Measure,
    *,
    variants: Sequence[str],
    flags: Mapping[str, object],
    tuning: Tuning | None = None,
    progress: ProgressCallback | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> list[Figures]:
    """Index each scope's workspace, run every query with every variant, and return the figures by variant."""
    for scope, (folder, needed) in places.items():
        announce(f"{eval_set.name}: indexing {scope or 'all documents'}")
        with open_memory(folder, {**flags, **needed}) as memory:
            memory.index(progress=progress)
    figures = []
    for variant in variants:
        announce(f"{eval_set.name}: running {len(eval_set.queries):,} queries ({variant})")
        per_query: defaultdict[str, list[float]] = defaultdict(list)
        milliseconds: list[float] = []
        for scope, (folder, needed) in places.items():
            with open_memory(folder, {**flags, **VARIANTS[variant], **needed}, tuning=tuning) as memory:
                for query in (query for query in eval_set.queries if query.scope == scope):
                    started = time.perf_counter()
                    answer = memory.search(query.text, sync=False)
                    milliseconds.append((time.perf_counter() - started) * 1000)
                    for metric, value in measure(memory, answer, query).items():
                        per_query[metric].append(value)
        figures.append(summarise(eval_set, variant, per_query, milliseconds))
    return figures


def open_memory(
    folder: Path, flags: Mapping[str, object], *, embedder: Embedder | None = None, tuning: Tuning | None = None
) -> Memory:
    """Open the memory of a workspace with these settings, and with another tuning of the ranking if given."""
    return Memory(folder, load_settings(folder, flags=flags).settings, embedder=embedder, tuning=tuning)


def found_documents(answer: SearchAnswer, workspace: ScopeWorkspace) -> list[str]:
    """Return the documents in the order of their best chunk."""
    return list(dict.fromkeys(workspace.documents[hit.path] for hit in answer.hits))[:MAX_RANK]


def write_workspaces(eval_set: EvalSet, work: Path) -> dict[str, ScopeWorkspace]:
    """Write every document as a note, dated where its date is in ISO form, and return the workspaces by scope."""
    workspaces = {}
    for scope in eval_set.scopes:
        folder = work / eval_set.name / (safe_name(scope) or "all")
        (folder / "memory").mkdir(parents=True, exist_ok=True)
        paths: dict[str, str] = {}
        for document in (document for document in eval_set.documents if document.scope == scope):
            path = f"memory/{safe_name(document.id)}.md"
            write_if_changed(folder / path, _note(document))
            paths[path] = document.id
        workspaces[scope] = ScopeWorkspace(folder, paths)
    return workspaces


def _note(document: EvalDocument) -> str:
    front_matter = f"---\ndate: {document.date}\n---\n" if is_iso_date(document.date) else ""
    title = f"# {document.title}\n\n" if document.title else ""
    return f"{front_matter}{title}{document.text}\n"


def is_iso_date(text: str) -> bool:
    """Say whether a text is a day as YYYY-MM-DD and nothing else."""
    try:
        return len(text) == 10 and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def write_if_changed(file: Path, text: str) -> None:
    """Write a file unless it holds the text already: a file that is written again is reindexed."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8", newline="\n")


def safe_name(identifier: str) -> str:
    """Return a file name that is readable, safe everywhere and different for every identifier."""
    if not identifier:
        return ""
    return f"{_UNSAFE.sub('-', identifier.lower())[:40].strip('-')}-{hash_text(identifier)[:8]}"
