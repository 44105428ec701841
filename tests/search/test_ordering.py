"""Old notes fade, repeats come later, and a reranker changes the order of the best but nothing else."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.errors import RerankerError
from notewell.search.ordering import age_factor, ask_reranker, diverse_order, reranked

TODAY = date(2026, 11, 15)
SHARES = st.floats(0, 1)


# --- age and diversity -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dated", "factor"),
    [
        pytest.param(None, 1.0, id="evergreen"),
        pytest.param(TODAY, 1.0, id="today"),
        pytest.param(date(2026, 10, 16), 0.5, id="one half-life ago"),
        pytest.param(date(2026, 9, 16), 0.25, id="two half-lives ago"),
        pytest.param(date(2027, 1, 1), 1.0, id="a future date gains nothing"),
    ],
)
def test_age_factor(dated, factor):
    assert age_factor(dated, TODAY, half_life_days=30) == pytest.approx(factor)


def test_a_repeat_comes_later():
    texts = ["the guest wifi password", "the guest wifi password again", "sourdough needs feeding"]
    assert diverse_order([0.9, 0.89, 0.7], texts, relevance=0.5) == [0, 2, 1]


def test_relevance_alone_keeps_the_order():
    assert diverse_order([0.9, 0.8, 0.7], ["same", "same", "same"], relevance=1.0) == [0, 1, 2]


def test_a_longer_list_begins_with_the_shorter_one():
    scores = [1 - i / 50 for i in range(20)]
    texts = [f"topic {i % 4} word{i}" for i in range(20)]
    assert diverse_order(scores, texts, relevance=0.7)[:1] == [0]
    assert sorted(diverse_order(scores, texts, relevance=0.7)) == list(range(20))


# --- reranking ---------------------------------------------------------------------------------


def order(scores, new_scores, weight=0.7):
    return [place.position for place in reranked(scores, new_scores, weight=weight)]


@pytest.mark.parametrize(
    ("scores", "new", "weight", "expected"),
    [
        pytest.param([0.9, 0.8, 0.7], [0.1, 0.5, 0.9], 1.0, [2, 1, 0], id="the reranker alone"),
        pytest.param([0.9, 0.8, 0.7], [0.1, 0.5, 0.9], 0.0, [0, 1, 2], id="no weight, no change"),
        pytest.param([0.9, 0.5, 0.4], [0.2, 0.1, 0.3], 0.3, [0, 2, 1], id="a clear first stays first"),
        pytest.param([0.9, 0.8, 0.7], [-8.0, 3.0, 40.0], 1.0, [2, 1, 0], id="on any scale"),
        pytest.param([0.9, 0.8, 0.7, 0.6], [0.0, 1.0], 1.0, [1, 0, 2, 3], id="what was not reranked stays below"),
        pytest.param([0.9, 0.8, 0.7], [0.5, 0.5, 0.5], 0.7, [0, 1, 2], id="a reranker that sees no difference"),
        pytest.param([0.5, 0.5, 0.5], [0.1, 0.9, 0.5], 0.7, [1, 2, 0], id="a ranking that saw none"),
        pytest.param([0.9, 0.8], [], 0.7, [0, 1], id="nothing reranked"),
        pytest.param([], [], 0.7, [], id="nothing found"),
        pytest.param([0.9, 0.8], [-1.7e308, 1.7e308], 1.0, [1, 0], id="as far apart as numbers go"),
    ],
)
def test_order(scores, new, weight, expected):
    assert order(scores, new, weight) == expected


def test_scores_stay_in_the_range_of_the_pool():
    places = reranked([0.8, 0.6, 0.4, 0.3], [0.0, 10.0, 5.0], weight=0.5)
    assert [place.position for place in places] == [1, 0, 2, 3]
    assert [place.score for place in places] == pytest.approx([0.7, 0.6, 0.5, 0.3])


@given(st.lists(SHARES, max_size=30), st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=12), SHARES)
def test_whatever_the_reranker_says(scores, new, weight):
    ranking = sorted(scores, reverse=True)
    new = new[: len(ranking)]
    places = reranked(ranking, new, weight=weight)
    assert sorted(place.position for place in places) == list(range(len(ranking)))
    shown = [place.score for place in places]
    assert shown == sorted(shown, reverse=True)
    assert all(0 <= score <= 1 for score in shown)
    assert [place.position for place in places[len(new) :]] == list(range(len(new), len(ranking)))


@pytest.mark.slow
@given(st.lists(SHARES, min_size=5, max_size=30), st.integers(5, 30))
def test_a_longer_ranking_does_not_change_the_pool(scores, length):
    ranking = sorted(scores, reverse=True)
    new = [score * 7 % 1 for score in ranking[:5]]
    whole = reranked(ranking, new, weight=0.7)
    assert reranked(ranking[:length], new, weight=0.7) == whole[:length]


class Says:
    """Returns what it was given, or raises it."""

    name = "says"

    def __init__(self, answer):
        self.answer = answer

    def rerank(self, query, texts):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_reranker_returns_scores():
    assert ask_reranker(Says([1, 0.5]), "q", ["a", "b"]) == ([1.0, 0.5], "")


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (RerankerError("it is down", hint="try later"), "not reranked: it is down; try later"),
        (RerankerError("it is down"), "not reranked: it is down"),
        ([1.0], "not reranked: the reranker returned 1 scores for 2 texts"),
        ([1.0, float("nan")], "not reranked: the reranker returned a score that is not a number"),
    ],
    ids=["an error with a hint", "an error", "too few scores", "NaN"],
)
def test_a_reranker_that_fails_leaves_the_order_and_a_note(answer, note):
    assert ask_reranker(Says(answer), "q", ["a", "b"]) == (None, note)


@pytest.mark.parametrize(("query", "texts"), [("q", []), ("  ", ["a"])], ids=["no texts", "no query"])
def test_nothing_to_ask_is_no_failure(query, texts):
    assert ask_reranker(Says(RerankerError("asked")), query, texts) == (None, "")
