"""A floor under retrieval quality: our own small corpus, through the real pipeline with the real model.

The floors lie a little below what is measured today; they catch what breaks, and claim nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from recollect.evaluation.evidence import evaluate_evidence
from recollect.evaluation.report import figures_document, figures_table
from recollect.evaluation.runner import evaluate
from recollect.evaluation.test_sets import TestSetError, load_set

CORPUS = Path(__file__).parents[2] / "evals" / "corpus"
FLOORS = {"balanced": 0.80, "keyword": 0.70, "weighted": 0.72, "rrf": 0.70}
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
    assert best.variant == "balanced"


def test_no_kind_of_question_is_broken(figures):
    kinds = [json.loads(line)["kind"] for line in (CORPUS / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    by_kind = defaultdict(list)
    for kind, value in zip(kinds, figures["balanced"].per_query["ndcg@10"], strict=True):
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


def test_evidence_is_what_an_agent_gets_to_read(tmp_path):
    folder = tmp_path / "talk"
    folder.mkdir()
    turns = [f"Dana: remark number {i} about nothing" for i in range(30)] + ["Joris: the crane is called Betty"]
    rows = [{"_id": f"t{i}", "text": turn, "session": "s1", "date": "8 May 2026"} for i, turn in enumerate(turns)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "what is the crane called?"}))
    (folder / "qrels.tsv").write_text("q\tt30\t1\n")
    (found,) = evaluate_evidence(
        load_set(folder), work=tmp_path / "work", variants=["balanced"], flags={"provider": "hashing"}
    )
    assert found.values == {"evidence": 1.0, "any evidence": 1.0}


def test_evidence_needs_sessions(tmp_path):
    with pytest.raises(TestSetError, match="needs a `session`"):
        evaluate_evidence(load_set(CORPUS), work=tmp_path, variants=["balanced"], flags={})
