"""The figures are those of the text books."""

from __future__ import annotations

import math

import pytest

from notewell.evaluation.metrics import hit, interval, kept_by_threshold, mean, ndcg, recall, reciprocal_rank

GRADES = {"a": 2.0, "b": 1.0}


@pytest.mark.parametrize(
    ("ranking", "expected"),
    [
        pytest.param(["a", "b"], 1.0, id="ideal"),
        pytest.param(["b", "a"], (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3)), id="the other way round"),
        pytest.param(["x", "y"], 0.0, id="nothing"),
        pytest.param([*"xxxxxxxxxx", "a"], 0.0, id="beyond the tenth"),
    ],
)
def test_ndcg(ranking, expected):
    assert ndcg(ranking, GRADES) == pytest.approx(expected)


def test_recall_hit_and_reciprocal_rank():
    ranking = ["x", "b", "y", "a"]
    assert recall(ranking, GRADES, at=2) == 0.5
    assert (hit(ranking, GRADES, at=1), hit(ranking, GRADES, at=2)) == (0.0, 1.0)
    assert reciprocal_rank(ranking, GRADES) == 0.5
    assert reciprocal_rank([], GRADES) == 0.0


def test_what_the_threshold_keeps():
    assert kept_by_threshold(["a", "x"], GRADES) == {"precision": 0.5, "kept": 0.5, "shown": 2.0}
    assert kept_by_threshold([], GRADES) == {"precision": 0.0, "kept": 0.0, "shown": 0.0}


def test_the_interval_holds_the_mean_and_shrinks_with_the_number_of_queries():
    few, many = [0.0, 1.0] * 10, [0.0, 1.0] * 500
    low, high = interval(many)
    assert low < mean(many) < high
    assert high - low < interval(few)[1] - interval(few)[0]
    assert interval([1.0, 1.0]) == (1.0, 1.0)
