"""Asks everyday questions over short notes in German, French and Chinese, and English ones over the German notes.

    python -m evals.everyday [--model NAME] [--missed]

Each set in `everyday/` has 30 notes and 30 questions that share few words with their note. Printed is for how many the
right note comes first: by cosine alone, and in a default search.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from notewell import Memory
from notewell.embedding.selection import select_embedder
from notewell.evaluation.runner import found_documents, write_workspaces
from notewell.evaluation.test_sets import EvalSet, load_set
from notewell.protocols import Embedder
from notewell.settings import Settings

FOLDER = Path(__file__).parent / "everyday"


def main() -> None:
    """Print the share of questions whose note comes first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="", help="a local model, instead of the default one")
    parser.add_argument("--missed", action="store_true", help="print each question that search gets wrong")
    options = parser.parse_args()
    settings = replace(Settings(), provider="local", model=options.model)
    embedder = select_embedder(settings).embedder
    assert embedder is not None  # a named provider that cannot run raises
    print(embedder.identity)
    print("| set | cosine alone | default search |\n|---|--:|--:|")
    for folder in sorted(path for path in FOLDER.iterdir() if path.is_dir()):
        eval_set = load_set(folder)
        by_cosine = first_by_cosine(eval_set, embedder)
        by_search = first_by_search(eval_set, options.model)
        cells = (f"{len(right(eval_set, first))} of {len(eval_set.queries)}" for first in (by_cosine, by_search))
        print(f"| {folder.name} | {' | '.join(cells)} |", flush=True)
        if options.missed:
            for query in eval_set.queries:
                if query.id not in right(eval_set, by_search):
                    print(f"    {query.text}: {by_search.get(query.id)}")


def right(eval_set: EvalSet, first: dict[str, str]) -> set[str]:
    """Return the questions whose first document is one that answers them."""
    return {query.id for query in eval_set.queries if query.grades.get(first.get(query.id, ""))}


def first_by_cosine(eval_set: EvalSet, embedder: Embedder) -> dict[str, str]:
    """Return the nearest document of each question."""
    documents = embedder.embed_documents([document.text for document in eval_set.documents])
    nearest = {}
    for query in eval_set.queries:
        cosines = documents @ embedder.embed_query(query.text)
        nearest[query.id] = eval_set.documents[int(cosines.argmax())].id
    return nearest


def first_by_search(eval_set: EvalSet, model: str) -> dict[str, str]:
    """Return the first hit of a default search for each question that has one."""
    first = {}
    with tempfile.TemporaryDirectory() as work:
        (workspace,) = write_workspaces(eval_set, Path(work)).values()
        with Memory.open(workspace.folder, provider="local", model=model) as memory:
            memory.index()
            for query in eval_set.queries:
                found = found_documents(memory.search(query.text), workspace)
                if found:
                    first[query.id] = found[0]
    return first


if __name__ == "__main__":
    main()
