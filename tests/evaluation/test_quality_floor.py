"""A floor under retrieval quality: our own small corpus, through the real pipeline with the real model.

The floors lie a little below what is measured today; they catch what breaks, and claim nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from notewell.evaluation.metrics import figures_document, figures_table
from notewell.evaluation.runner import evaluate
from notewell.evaluation.test_sets import load_set

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).parents[2] / "evals" / "corpus"
FLOORS = {"hybrid": 0.80, "keyword": 0.70, "weighted": 0.72, "rrf": 0.70}
FLOORS_BY_KIND = {"names": 0.9, "ids": 0.95, "code": 0.9, "cjk": 0.95, "typos": 0.8, "other-languages": 0.9}


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    work = tmp_path_factory.mktemp("eval")
    return {each.variant: each for each in evaluate(load_set(CORPUS), work=work, variants=list(FLOORS), flags={})}


@pytest.mark.parametrize("variant", FLOORS)
def test_ndcg_does_not_fall_below_its_floor(figures, variant):
    assert figures[variant].values["ndcg@10"] >= FLOORS[variant]


def test_the_default_beats_the_others(figures):
    best = max(figures.values(), key=lambda each: each.values["ndcg@10"])
    assert best.variant == "hybrid"


def test_no_kind_of_question_is_broken(figures):
    kinds = [json.loads(line)["kind"] for line in (CORPUS / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    by_kind = defaultdict(list)
    for kind, value in zip(kinds, figures["hybrid"].per_query["ndcg@10"], strict=True):
        by_kind[kind].append(value)
    means = {kind: sum(values) / len(values) for kind, values in by_kind.items()}
    assert {kind: mean for kind, mean in means.items() if mean < FLOORS_BY_KIND.get(kind, 0.3)} == {}


def test_the_report_has_a_line_and_a_document_a_variant(figures):
    listed = list(figures.values())
    assert len(list(figures_table(listed))) == 2 + len(listed)
    document = figures_document(listed)["sets"][0]
    assert {"name", "search", "ndcg@10", "recall@5", "recall@10", "hit@1", "hit@5", "mrr", "p50_ms"} <= set(document)
    low, high = document["intervals"]["ndcg@10"]
    assert low <= document["ndcg@10"] <= high
