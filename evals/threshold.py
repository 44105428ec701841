"""Measures the default threshold: how many answers it keeps, and what questions get that these notes cannot answer.

    python -m evals.threshold FOLDER FOLDER... [--work FOLDER]

Each FOLDER is a test set. Its own questions should find their answers above the threshold; questions of the other sets
are foreign to its notes and should find nothing. A foreign question that shares a rare name or number with a note shows
that note by design (an exact hit is never hidden); the last column leaves those out.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from recollect import Hit, Memory
from recollect.evaluation.runner import open_memory
from recollect.evaluation.test_sets import EvalQuery, EvalSet, load_set
from recollect.evaluation.workspaces import ScopeWorkspace, write_workspaces

SEED = 20261116
OWN, FOREIGN = 200, 60  # questions asked of each set, from its own and from those of every other set
ROUNDING = 1e-4  # of shown scores
DEEP = 10  # an answer that is not among the first ten is not the threshold's fault


@dataclass
class Counted:
    """What was seen of one set."""

    answers: int = 0
    kept: int = 0
    foreign: int = 0
    shown: int = 0
    shown_by_more: int = 0  # than an exact hit at the floor
    scopes: set[str] = field(default_factory=set)


def main() -> None:
    """Print one line a set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, help="keep the indexes here, so that the next run is quick")
    options = parser.parse_args()
    sets = [load_set(folder) for folder in options.folders]
    print("| set | answers kept | foreign questions that show anything | more than an exact hit |\n|---|--:|--:|--:|")
    with nullcontext(options.work) if options.work else tempfile.TemporaryDirectory() as work:
        for eval_set in sets:
            found = measured(eval_set, foreign_to(eval_set, sets), Path(work))
            shares = (found.kept / found.answers, found.shown / found.foreign, found.shown_by_more / found.foreign)
            print(f"| {eval_set.name} | {' | '.join(f'{share:.1%}' for share in shares)} |", flush=True)


def foreign_to(eval_set: EvalSet, sets: list[EvalSet]) -> list[str]:
    """Return questions of the sets that are made of other texts; names of one family begin alike."""
    dice = random.Random(SEED)
    family = eval_set.name.split("-")[0]
    others = [other for other in sets if other.name.split("-")[0] != family]
    return [q.text for other in others for q in dice.sample(other.queries, min(FOREIGN, len(other.queries)))]


def measured(eval_set: EvalSet, foreign: list[str], work: Path) -> Counted:
    """Ask own and foreign questions, spread over the scopes."""
    found = Counted()
    workspaces = write_workspaces(eval_set, work)
    dice = random.Random(SEED)
    own = dice.sample(eval_set.queries, min(OWN, len(eval_set.queries)))
    for number, (scope, workspace) in enumerate(workspaces.items()):
        with open_memory(workspace.folder, {}) as memory:
            memory.index()
            for query in own:
                if query.scope == scope:
                    _ask_own(memory, workspace, query, found)
            for text in foreign[number :: len(workspaces)]:
                hits = memory.search(text, sync=False, explain=True).hits
                found.foreign += 1
                found.shown += bool(hits)
                floor = memory.settings.query.min_score  # an exact hit is lifted to just that
                found.shown_by_more += any(_as_judged(hit) > floor + ROUNDING for hit in hits)
    return found


def _as_judged(hit: Hit) -> float:
    """Return the score that met the threshold: what time or kind of answer add comes after it."""
    return hit.score / float((hit.explanation or {}).get("order_factor", 1.0))


def _ask_own(memory: Memory, workspace: ScopeWorkspace, query: EvalQuery, found: Counted) -> None:
    shown = {hit.citation for hit in memory.search(query.text, limit=DEEP, sync=False).hits}
    for hit in memory.search(query.text, limit=DEEP, min_score=0, sync=False).hits:
        if query.grades.get(workspace.documents[hit.path], 0) > 0:
            found.answers += 1
            found.kept += hit.citation in shown


if __name__ == "__main__":
    main()
