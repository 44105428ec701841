"""What a rule gains is told with its uncertainty, and its value is never chosen on the set it is judged by."""

from __future__ import annotations

import pytest

pytest.importorskip("notewell.search.tuning")

from evals.ablation import (
    Asked,
    Rule,
    chosen_table,
    chosen_together,
    differences,
    gain_of,
    gains_table,
    left_out_table,
    loses,
    stays,
)

from notewell.evaluation.test_sets import EvalSet
from notewell.search.tuning import TUNING

PAIRS = Rule("pairs", 0, (0.3, 0.5, 0.7))
MIX = Rule("text_weight", None, (0.5, 0.6, 0.7))
SETS = [EvalSet(name, (), ()) for name in ("xquad-en", "xquad-zh", "scifact", "corpus")]


def bowl(eval_set, tuning):
    """Values that are best at pairs 0.7 and text_weight 0.5, but for scifact at pairs 0.3."""
    best = 0.3 if eval_set.name == "scifact" else 0.7
    return [0.9 - (tuning.pairs - best) ** 2 - (tuning.text_weight - 0.5) ** 2] * 20


def test_the_gain_is_the_mean_over_sets_within_its_interval():
    found = gain_of([[0.1, 0.3] * 50, [0.0, 0.2] * 500])
    assert found.mean == pytest.approx(0.15)
    assert found.low < 0.15 < found.high
    assert found.high - found.low < 0.05
    assert (gain_of([[0.2] * 5]).low, gain_of([[0.2] * 5]).high) == (pytest.approx(0.2), pytest.approx(0.2))


def test_more_questions_make_the_interval_narrower():
    few, many = gain_of([[0.0, 1.0] * 10]), gain_of([[0.0, 1.0] * 500])
    assert many.high - many.low < few.high - few.low


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        pytest.param([[0.01] * 100, [0.02] * 100], True, id="gains everywhere"),
        pytest.param([[0.0] * 100, [0.0] * 100], False, id="gains nothing"),
        pytest.param([[0.5, -0.5] * 50, [0.01] * 100], False, id="may be chance"),
        pytest.param([[0.2] * 100, [-0.02] * 100], False, id="harms one set"),
        pytest.param([[0.2] * 100, [-0.004] * 100], True, id="harms one set hardly"),
        pytest.param([[0.2] * 100, [-0.1, 0.08] * 5], True, id="harms one set perhaps"),
    ],
)
def test_a_rule_stays_if_it_surely_gains_and_harms_no_set(gains, expected):
    assert stays(gains) is expected


def test_a_set_loses_only_beyond_two_standard_errors():
    assert loses([-0.01] * 10)
    assert not loses([-0.01, 0.5, -0.5, -0.03] * 5)


def test_differences_are_paired():
    assert differences([1.0, 0.5], [0.5, 0.5]) == [0.5, 0.0]


def test_numbers_are_chosen_together_and_what_is_as_good_stays():
    found = chosen_together([PAIRS, MIX], SETS[:2], bowl)
    assert (found.pairs, found.text_weight) == (0.7, 0.5)
    assert chosen_together([PAIRS, MIX], SETS, lambda *_: [0.5]) == TUNING


def test_a_value_is_chosen_on_the_other_families():
    lines = list(left_out_table(bowl, SETS, [PAIRS]))
    assert lines[2].startswith("| pairs | 0.5 for xquad, corpus; 0.7 for scifact | +0.32")
    assert "| scifact -0.0700 |" in lines[2]
    assert lines[2].endswith("goes |")
    without_odd_one = [each for each in SETS if each.name != "scifact"]
    assert list(left_out_table(bowl, without_odd_one, [PAIRS]))[2].endswith("stays |")


@pytest.mark.slow
def test_tables_have_a_line_a_rule_and_a_line_a_set():
    header, _, pairs, together = gains_table(bowl, SETS, [PAIRS])
    assert header == "| rule | xquad-en | xquad-zh | scifact | corpus | mean |"
    assert pairs.startswith("| pairs | +0.45")
    assert together.startswith("| all of these | +0.45")
    *_, mean = chosen_table(bowl, SETS, [PAIRS, MIX])
    assert len(list(chosen_table(bowl, SETS, [PAIRS, MIX]))) == 2 + len(SETS) + 1
    assert mean.startswith("| mean | ")


def test_nothing_is_asked_twice(capsys):
    asked = []

    def ask(eval_set, tuning):
        asked.append(eval_set.name)
        return {"one": [1.0], "two": [2.0]}

    remembered = Asked(ask)
    assert [remembered.values_of(name)(SETS[0], TUNING) for name in ("one", "two", "one")] == [[1.0], [2.0], [1.0]]
    assert asked == ["xquad-en"]
    assert "xquad-en, default: one 1.0000, two 2.0000" in capsys.readouterr().err
