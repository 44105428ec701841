"""Age counts for dated notes only; diversity puts repeats behind."""

from __future__ import annotations

from datetime import date

import pytest

from notewell.search.decay import age_factor
from notewell.search.diversity import diverse_order

TODAY = date(2026, 11, 15)


@pytest.mark.parametrize(
    ("dated", "factor"),
    [
        pytest.param(None, 1.0, id="evergreen"),
        pytest.param(TODAY, 1.0, id="today"),
        pytest.param(date(2026, 10, 16), 0.5, id="one half-life ago"),
        pytest.param(date(2026, 9, 16), 0.25, id="two half-lives ago"),
        pytest.param(date(2027, 1, 1), 1.0, id="a date to come gains nothing"),
    ],
)
def test_age_factor(dated, factor):
    assert age_factor(dated, TODAY, half_life_days=30) == pytest.approx(factor)


def test_a_repeat_steps_back():
    texts = ["the guest wifi password", "the guest wifi password again", "sourdough needs feeding"]
    assert diverse_order([0.9, 0.89, 0.7], texts, relevance=0.5) == [0, 2, 1]


def test_relevance_alone_keeps_the_order():
    assert diverse_order([0.9, 0.8, 0.7], ["same", "same", "same"], relevance=1.0) == [0, 1, 2]


def test_a_longer_list_begins_with_the_shorter_one():
    scores = [1 - i / 50 for i in range(20)]
    texts = [f"topic {i % 4} word{i}" for i in range(20)]
    assert diverse_order(scores, texts, relevance=0.7)[:1] == [0]
    assert sorted(diverse_order(scores, texts, relevance=0.7)) == list(range(20))
