"""The threshold is found in recorded scores."""

from __future__ import annotations

import pytest
from evals.threshold import Recorded, foreign_to, share_reaching, table, threshold_keeping

from notewell.evaluation.test_sets import EvalQuery, EvalSet


@pytest.mark.parametrize(
    ("share", "scores", "expected"),
    [
        pytest.param(0.9, [[i / 10 for i in range(1, 11)]], 0.2, id="the weakest of ten may go"),
        pytest.param(1.0, [[0.4, 0.6]], 0.4, id="none may go"),
        pytest.param(0.75, [[0.4, 0.6], [0.5] * 50], 0.5, id="sets count alike, however large"),
        pytest.param(0.95, [[1.0]], 1.0, id="the best score there is"),
    ],
)
def test_the_highest_threshold_that_keeps_a_share(share, scores, expected):
    found = threshold_keeping(share, scores)
    assert found == pytest.approx(expected, abs=1e-4)
    assert sum(share_reaching(found, each) for each in scores) / len(scores) >= share


def test_the_table_leaves_out_what_was_not_asked():
    recorded = [Recorded("a-1", [0.5, 0.3], [0.4, 0.1], [0.6]), Recorded("b-1", [0.5], [0.1], [])]
    _, _, first, second, means = table(recorded, 0.35)
    assert first == "| a-1 | 50.0% | 50.0% | 100.0% |"
    assert second == "| b-1 | 100.0% | 0.0% |  |"
    assert means == "| mean | 75.0% | 25.0% | 100.0% |"


def test_questions_of_the_same_family_are_not_foreign():
    sets = [EvalSet(name, (), (EvalQuery("q", f"from {name}", {}),)) for name in ("xquad-en", "xquad-zh", "scifact")]
    assert foreign_to(sets[0], sets) == ["from scifact"]
    assert foreign_to(sets[2], sets) == ["from xquad-en", "from xquad-zh"]
