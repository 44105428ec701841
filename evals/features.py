"""Measures what every search feature gains on its own questions, and what it costs on other test sets.

    python -m evals.features [FOLDER...] --work FOLDER [--sample N]

Each feature has 30 questions in `evals/features`. It is measured with the feature and without it, by replacing the one
function that does the work. FOLDERs are other test sets: a feature may cost none of them more than 0.003.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from evals.ablation import Documents, differences, gain_of
from evals.query_vectors import remembered_queries

from notewell.evaluation.metrics import mean
from notewell.evaluation.test_sets import EvalSet, load_set
from notewell.search.tuning import TUNING

OWN_SETS = Path(__file__).parent / "features"
TOLERATED_COST = 0.003


def _nothing(*_: object, **__: object) -> list[Any]:
    return []


def _no_terms(*_: object, **__: object) -> dict[str, Any]:
    return {}


def _run_as_it_is(run: str, **_: object) -> list[str]:
    return [run]


def _parts_only(word: Any) -> list[Any]:
    from notewell.search.query import _paired_terms
    from notewell.types import Term

    return _paired_terms(word.parts) if word.paired else [Term((part,)) for part in word.parts]


def _says_no(*_: object) -> bool:
    return False


SEARCH = "notewell.search"
OFF: dict[str, dict[str, Any]] = {  # feature -> what takes the place of what
    "typos": {f"{SEARCH}.word_variants:_as_typo": _nothing},
    "prefixes": {f"{SEARCH}.word_variants:_as_prefix": _nothing},
    "acronyms": {f"{SEARCH}.word_variants:acronym_terms": _no_terms},
    "cjk": {f"{SEARCH}.unspaced:content_pieces": _run_as_it_is},
    "identifiers": {f"{SEARCH}.query:_terms_of": _parts_only},
    "phrases": {f"{SEARCH}.query:_QUOTED": re.compile("(?!)")},
    "dates": {f"{SEARCH}.dates.filters:_may_name_time": _says_no, f"{SEARCH}.query:day_phrases": _nothing},
}


@contextmanager
def without(feature: str) -> Iterator[None]:
    """Turn one feature of the search off."""
    places = []
    for path, replacement in OFF[feature].items():
        module_name, name = path.split(":")
        module = resolve_name(module_name)
        places.append((module, name, getattr(module, name)))
        setattr(module, name, replacement)
    try:
        yield
    finally:
        for module, name, original in places:
            setattr(module, name, original)


def main() -> None:
    """Print one line for every feature and set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="other test sets that no feature may harm")
    parser.add_argument("--work", type=Path, required=True, help="keep indexes and the vectors of questions here")
    parser.add_argument("--sample", type=int, metavar="N", help="ask at most N questions of each set")
    options = parser.parse_args()
    others = [load_set(folder) for folder in options.folders]
    if options.sample:
        others = [eval_set.sample(options.sample) for eval_set in others]
    own = {feature: load_set(OWN_SETS / feature) for feature in OFF}
    options.work.mkdir(parents=True, exist_ok=True)
    with remembered_queries(options.work) as embedder:
        ask = Documents([*own.values(), *others], options.work, embedder)
        print("| feature | set | without | with | gain, 95 % interval | verdict |\n|---|---|--:|--:|---|---|")
        with_all = {eval_set.name: ask(eval_set, TUNING)["nDCG@10"] for eval_set in (*own.values(), *others)}
        for feature, own_set in own.items():
            for eval_set in (own_set, *others):
                with without(feature):
                    off = ask(eval_set, TUNING)["nDCG@10"]
                print(_row(feature, eval_set, own_set, with_all[eval_set.name], off), flush=True)


def _row(feature: str, eval_set: EvalSet, own_set: EvalSet, on: Sequence[float], off: Sequence[float]) -> str:
    gain = gain_of([differences(on, off)])
    kept = gain.mean > 0 if eval_set is own_set else gain.mean >= -TOLERATED_COST
    name = "its own" if eval_set is own_set else eval_set.name
    return f"| {feature} | {name} | {mean(off):.4f} | {mean(on):.4f} | {gain} | {'stays' if kept else 'fails'} |"


if __name__ == "__main__":
    main()
