"""Every feature of the search earns its place on a set of its own, through the real pipeline with the real model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from evals.features import OFF, without

from notewell.evaluation.runner import evaluate
from notewell.evaluation.test_sets import load_set
from notewell.search.tuning import TUNING

pytestmark = pytest.mark.slow

FEATURES = Path(__file__).parents[2] / "evals" / "features"
FLOORS = {  # under nDCG@10; without its feature each set falls below
    "typos": 0.95,
    "phrases": 0.85,
    "identifiers": 0.9,
    "dates": 0.75,
    "cjk": 0.8,
    "prefixes": 0.95,
    "acronyms": 0.65,
}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("features")


def ndcg_of(eval_set, work, *, tuning=None):
    (figures,) = evaluate(eval_set, work=work, variants=["hybrid"], flags={}, tuning=tuning)
    return figures.values["ndcg@10"]


def test_every_feature_set_has_a_floor():
    assert {folder.name for folder in FEATURES.iterdir() if folder.is_dir()} == set(FLOORS) == set(OFF)


@pytest.mark.parametrize("name", FLOORS)
def test_a_feature_set_does_not_fall_below_its_floor(work, name):
    assert ndcg_of(load_set(FEATURES / name), work) >= FLOORS[name]


@pytest.mark.parametrize(
    ("name", "off"),
    [
        pytest.param("phrases", {"pairs": 0.0}, id="neighbouring words"),
        pytest.param("dates", {"about_share": 1.0}, id="the newest and the oldest"),
    ],
)
def test_a_rule_wins_on_the_set_of_its_feature(work, name, off):
    eval_set = load_set(FEATURES / name)
    assert ndcg_of(eval_set, work) > ndcg_of(eval_set, work, tuning=replace(TUNING, **off))


@pytest.mark.parametrize("feature", OFF)
def test_a_feature_wins_on_its_own_questions(work, feature):
    eval_set = load_set(FEATURES / feature)
    with_it = ndcg_of(eval_set, work)
    with without(feature):
        assert ndcg_of(eval_set, work) < with_it


def test_quotes_win_over_the_same_questions_without_them(work):
    phrases = load_set(FEATURES / "phrases")
    unquoted = tuple(replace(query, text=query.text.replace('"', "")) for query in phrases.queries)
    assert ndcg_of(phrases, work) > ndcg_of(replace(phrases, queries=unquoted), work)


def test_dated_notes_win_over_the_same_notes_without_dates(work):
    dates = load_set(FEATURES / "dates")
    undated = tuple(replace(document, date="") for document in dates.documents)
    assert ndcg_of(dates, work) > ndcg_of(replace(dates, name="undated", documents=undated), work)
