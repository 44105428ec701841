"""Two rankings in, one out: what the second look may change and what it may not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.errors import RerankerError
from notewell.search.reranking import reranked, second_look

SHARES = st.floats(0, 1)


def order(scores, second_scores, weight=0.7):
    return [place.position for place in reranked(scores, second_scores, weight=weight)]


@pytest.mark.parametrize(
    ("scores", "second", "weight", "expected"),
    [
        pytest.param([0.9, 0.8, 0.7], [0.1, 0.5, 0.9], 1.0, [2, 1, 0], id="the second look alone"),
        pytest.param([0.9, 0.8, 0.7], [0.1, 0.5, 0.9], 0.0, [0, 1, 2], id="no share, no change"),
        pytest.param([0.9, 0.5, 0.4], [0.2, 0.1, 0.3], 0.3, [0, 2, 1], id="a clear first stays first"),
        pytest.param([0.9, 0.8, 0.7], [-8.0, 3.0, 40.0], 1.0, [2, 1, 0], id="on any scale"),
        pytest.param([0.9, 0.8, 0.7, 0.6], [0.0, 1.0], 1.0, [1, 0, 2, 3], id="what was not looked at stays behind"),
        pytest.param([0.9, 0.8, 0.7], [0.5, 0.5, 0.5], 0.7, [0, 1, 2], id="a second look that sees no difference"),
        pytest.param([0.5, 0.5, 0.5], [0.1, 0.9, 0.5], 0.7, [1, 2, 0], id="a first one that saw none"),
        pytest.param([0.9, 0.8], [], 0.7, [0, 1], id="nothing looked at"),
        pytest.param([], [], 0.7, [], id="nothing found"),
        pytest.param([0.9, 0.8], [-1.7e308, 1.7e308], 1.0, [1, 0], id="as far apart as numbers go"),
    ],
)
def test_order(scores, second, weight, expected):
    assert order(scores, second, weight) == expected


def test_scores_stay_in_the_range_of_the_pool():
    places = reranked([0.8, 0.6, 0.4, 0.3], [0.0, 10.0, 5.0], weight=0.5)
    assert [place.position for place in places] == [1, 0, 2, 3]
    assert [place.score for place in places] == pytest.approx([0.7, 0.6, 0.5, 0.3])


@given(st.lists(SHARES, max_size=30), st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=12), SHARES)
def test_whatever_the_second_look_says(scores, second, weight):
    ranking = sorted(scores, reverse=True)
    second = second[: len(ranking)]
    places = reranked(ranking, second, weight=weight)
    assert sorted(place.position for place in places) == list(range(len(ranking)))
    shown = [place.score for place in places]
    assert shown == sorted(shown, reverse=True)
    assert all(0 <= score <= 1 for score in shown)
    assert [place.position for place in places[len(second) :]] == list(range(len(second), len(ranking)))


@pytest.mark.slow
@given(st.lists(SHARES, min_size=5, max_size=30), st.integers(5, 30))
def test_a_longer_ranking_does_not_change_the_pool(scores, length):
    ranking = sorted(scores, reverse=True)
    second = [score * 7 % 1 for score in ranking[:5]]
    whole = reranked(ranking, second, weight=0.7)
    assert reranked(ranking[:length], second, weight=0.7) == whole[:length]


class Says:
    """Answers what it was given, or raises it."""

    name = "says"

    def __init__(self, answer):
        self.answer = answer

    def rerank(self, query, texts):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_second_look_gives_scores():
    assert second_look(Says([1, 0.5]), "q", ["a", "b"]) == ([1.0, 0.5], "")


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (RerankerError("it is down", hint="try later"), "not reranked: it is down; try later"),
        (RerankerError("it is down"), "not reranked: it is down"),
        ([1.0], "not reranked: the reranker gave 1 scores for 2 texts"),
        ([1.0, float("nan")], "not reranked: the reranker gave a score that is no number"),
    ],
    ids=["an error with a hint", "an error", "too few scores", "NaN"],
)
def test_a_second_look_that_fails_leaves_the_order_and_a_note(answer, note):
    assert second_look(Says(answer), "q", ["a", "b"]) == (None, note)


@pytest.mark.parametrize(("query", "texts"), [("q", []), ("  ", ["a"])], ids=["no texts", "no query"])
def test_nothing_to_ask_is_no_failure(query, texts):
    assert second_look(Says(RerankerError("asked")), query, texts) == (None, "")
