"""Measures the default threshold: how many answers it keeps, and how many questions that cannot be answered it rejects.

    python -m evals.threshold FOLDER FOLDER... [--work FOLDER]

Each FOLDER is a test set. A set is asked its own questions, questions of the other families (names of one family begin
alike), and, where it has several scopes, in each scope the questions of the next one. Scores are recorded without a
threshold and compared with the default one, then with the one that keeps 95 % of the answers in the mean over the sets.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from evals.query_vectors import remembered_queries

from notewell import Hit, Memory
from notewell.evaluation.metrics import mean
from notewell.evaluation.runner import ScopeWorkspace, open_memory, write_workspaces
from notewell.evaluation.test_sets import EvalQuery, EvalSet, load_set
from notewell.protocols import Embedder
from notewell.settings import QuerySettings

OWN = 200  # questions of its own that a set is asked
FOREIGN = 60  # questions that it is asked from each set of another family
NEXT_CHAT = 20  # questions of the next scope that a scope is asked
SHOWN = 6  # hits of a default search; what comes later is not the threshold's fault
KEPT = 0.95  # of the answers
SCORE_DIGITS = 4  # that a hit's score is rounded to


@dataclass(frozen=True, slots=True)
class Recorded:
    """What searches of one set scored without a threshold."""

    name: str
    answers: list[float] = field(default_factory=list)  # every answer among the first hits
    foreign: list[float] = field(default_factory=list)  # the best hit of each question
    next_chat: list[float] = field(default_factory=list)  # the same; empty where there is one scope only


def main() -> None:
    """Print what the default threshold does, and what one does that keeps 95 % of the answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, help="keep the indexes here, so that the next run is quick")
    options = parser.parse_args()
    sets = [load_set(folder) for folder in options.folders]
    kept = nullcontext(options.work) if options.work else tempfile.TemporaryDirectory()
    with kept as work, remembered_queries(Path(work)) as embedder:
        recorded = [record(eval_set, foreign_to(eval_set, sets), Path(work), embedder) for eval_set in sets]
    default = QuerySettings().min_score
    print(f"At {default}, the default:\n")
    print("\n".join(table(recorded, default)))
    threshold = threshold_keeping(KEPT, [each.answers for each in recorded])
    print(f"\nAt {threshold:.3f}, which keeps {KEPT:.0%} of the answers in the mean:\n")
    print("\n".join(table(recorded, threshold)))


# --- asking ----------------------------------------------------------------------------------------


def foreign_to(eval_set: EvalSet, sets: Sequence[EvalSet]) -> list[str]:
    """Return questions of the sets that are made of other texts."""
    others = [other for other in sets if other.family != eval_set.family]
    return [query.text for other in others for query in other.sample(FOREIGN).queries]


def record(eval_set: EvalSet, foreign: Sequence[str], work: Path, embedder: Embedder | None) -> Recorded:
    """Ask own and foreign questions, the foreign ones spread over the scopes."""
    print(f"{eval_set.name}: asking", file=sys.stderr)
    found = Recorded(eval_set.name)
    workspaces = write_workspaces(eval_set, work)
    own = eval_set.sample(OWN).queries
    scopes = list(workspaces)
    for number, (scope, workspace) in enumerate(workspaces.items()):
        with open_memory(workspace.folder, {}) as memory:
            memory.index()
        following = scopes[(number + 1) % len(scopes)] if len(scopes) > 1 else None
        with open_memory(workspace.folder, {}, embedder=embedder) as memory:
            for query in own:
                if query.scope == scope:
                    found.answers.extend(_answer_scores(memory, workspace, query))
            found.foreign.extend(_best_score(memory, text) for text in foreign[number :: len(scopes)])
            next_chat = [query.text for query in eval_set.queries if query.scope == following][:NEXT_CHAT]
            found.next_chat.extend(_best_score(memory, text) for text in next_chat)
    return found


def _answer_scores(memory: Memory, workspace: ScopeWorkspace, query: EvalQuery) -> Iterator[float]:
    for hit in _first_hits(memory, query.text):
        if workspace.documents[hit.path] in query.grades:
            yield _relevance(hit)


def _best_score(memory: Memory, text: str) -> float:
    return max(map(_relevance, _first_hits(memory, text)), default=0.0)


def _first_hits(memory: Memory, text: str) -> Sequence[Hit]:
    return memory.search(text, limit=SHOWN, min_score=0, sync=False).hits


def _relevance(hit: Hit) -> float:
    """Return the score that is compared with the threshold: age comes after it."""
    return hit.score if hit.relevance is None else hit.relevance


# --- counting --------------------------------------------------------------------------------------


def share_reaching(threshold: float, scores: Sequence[float]) -> float:
    """Return the share of the scores that the threshold lets through."""
    return mean([float(score >= threshold) for score in scores])


def threshold_keeping(share: float, scores_by_set: Sequence[Sequence[float]]) -> float:
    """Return the highest threshold that keeps this share of the scores in the mean over the sets, by bisection."""
    low, high = 0.0, 1.0
    while high - low > 10**-SCORE_DIGITS / 2:
        middle = (low + high) / 2
        if mean([share_reaching(middle, scores) for scores in scores_by_set]) >= share:
            low = middle
        else:
            high = middle
    return low


def table(recorded: Sequence[Recorded], threshold: float) -> Iterator[str]:
    """Yield a Markdown table with one row a set, and the mean over the sets."""
    yield "| set | answers kept | foreign questions with a hit | next-chat questions with a hit |"
    yield "|---|--:|--:|--:|"
    rows = [[each.answers, each.foreign, each.next_chat] for each in recorded]
    shares = [[share_reaching(threshold, scores) if scores else None for scores in row] for row in rows]
    for each, row in zip(recorded, shares, strict=True):
        yield f"| {each.name} | {' | '.join(map(_percent, row))} |"
    means = [[share for share in column if share is not None] for column in zip(*shares, strict=True)]
    yield f"| mean | {' | '.join(_percent(mean(column) if column else None) for column in means)} |"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


if __name__ == "__main__":
    main()
