"""Two scores become one: order, range and the formulas by name."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.search.fusion import KNEE, Evidence, Weights, above, fuse, raised, text_score
from recollect.settings import Settings
from recollect.types import Candidate

EVIDENCE = Evidence(full_weight=10.0, weights=Weights(0.7, 0.3), cosine_floor=0.4, cosine_ceiling=0.9)

candidates = st.lists(
    st.builds(
        Candidate,
        st.integers(1, 10**6),
        st.none() | st.floats(-1, 1),
        st.none() | st.floats(1e-6, 40),
        pairs=st.floats(0, 40),
        terms=st.none() | st.integers(0, 500),
        related=st.floats(0, 40),
    ).filter(lambda c: c.cosine is not None or c.bm25 is not None),
    max_size=30,
    unique_by=lambda c: c.chunk_id,
)


@pytest.mark.parametrize("fusion", ["balanced", "weighted", "rrf"])
@given(found=candidates)
def test_scores_lie_between_0_and_1_and_fall(fusion, found):
    fused = fuse(found, EVIDENCE, fusion=fusion)
    assert sorted(f.candidate.chunk_id for f in fused) == sorted(c.chunk_id for c in found)
    scores = [f.score for f in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 and math.isfinite(score) for score in scores)


@pytest.mark.parametrize("fusion", ["balanced", "weighted", "rrf"])
def test_better_on_both_sides_is_better(fusion):
    best, worst = Candidate(1, 0.9, 9.0), Candidate(2, 0.5, 1.0)
    assert [f.candidate for f in fuse([worst, best], EVIDENCE, fusion=fusion)] == [best, worst]


@pytest.mark.parametrize("fusion", ["balanced", "weighted", "rrf"])
def test_ties_keep_the_order_of_ids(fusion):
    found = [Candidate(i, 0.5, 2.0) for i in (3, 1, 2)]
    assert [f.candidate.chunk_id for f in fuse(found, EVIDENCE, fusion=fusion)] == [1, 2, 3]


def test_weighted_is_the_formula_of_openclaw():
    (fused,) = fuse([Candidate(1, 0.8, 3.0)], EVIDENCE, fusion="weighted")
    assert fused.score == pytest.approx(0.7 * 0.8 + 0.3 * 3 / 4)


def test_rrf_is_one_when_first_on_both_sides():
    first = fuse([Candidate(1, 0.8, 3.0), Candidate(2, 0.7, 2.0)], EVIDENCE, fusion="rrf")[0]
    assert first.score == pytest.approx(1.0)


@pytest.mark.parametrize("fusion", ["balanced", "weighted", "rrf"])
def test_without_vectors_the_text_score_is_the_score(fusion):
    (fused,) = fuse([Candidate(1, None, 10.0)], EVIDENCE, fusion=fusion)
    assert fused.score == fused.text_part > 0.9


@pytest.mark.parametrize(
    ("bm25", "full_weight", "least"),
    [
        pytest.param(1e-6, 1e-6, 0.9, id="the only chunk of an index, where BM25 is almost zero"),
        pytest.param(2.0, 10.0, 0.5, id="one rare word of a long question"),
        pytest.param(20.0, 10.0, 0.9, id="more than a full match"),
    ],
)
def test_a_real_match_passes_the_default_threshold(bm25, full_weight, least):
    assert text_score(bm25, full_weight) >= least


def test_text_score_grows_with_bm25_beyond_a_full_match():
    scores = [text_score(bm25, 10.0) for bm25 in (0.1, 1, 5, 9.9, 10, 12, 30)]
    assert scores == sorted(set(scores))
    assert scores[-1] < 1
    assert text_score(None, 10.0) is None


def test_neighbouring_words_lift_a_candidate():
    apart, together = Candidate(1, 0.6, 4.0), Candidate(2, 0.6, 4.0, pairs=2.0)
    assert fuse([apart, together], EVIDENCE, fusion="balanced")[0].candidate == together


def test_a_remark_of_few_words_counts_less_than_a_text():
    remark, text = Candidate(1, 0.6, 4.0, terms=4), Candidate(2, 0.6, 4.0, terms=40)
    first, second = fuse([remark, text], EVIDENCE, fusion="balanced")
    assert first.candidate == text
    assert second.score > first.score / 2


def test_a_long_text_counts_a_little_less():
    long, short = Candidate(1, 0.6, 4.0, terms=400), Candidate(2, 0.6, 4.0, terms=60)
    first, second = fuse([long, short], EVIDENCE, fusion="balanced")
    assert first.candidate == short
    assert second.score > 0.9 * first.score


def test_words_count_less_where_one_candidate_has_them_all():
    by_words, by_meaning = Candidate(1, 0.65, 3.0), Candidate(2, 0.9, 1.0)
    alone = {f.candidate.chunk_id: f.score for f in fuse([by_words, by_meaning], EVIDENCE, fusion="balanced")}
    full_match = Candidate(3, 0.4, 25.0)
    beside = {
        f.candidate.chunk_id: f.score for f in fuse([by_words, by_meaning, full_match], EVIDENCE, fusion="balanced")
    }
    assert beside[2] / beside[1] > alone[2] / alone[1]


DEFAULT_THRESHOLD = Settings().query.min_score


def shown(candidates, evidence, threshold=DEFAULT_THRESHOLD):
    return above(fuse(candidates, evidence, fusion="balanced"), threshold)


def test_the_rarest_word_is_never_lost_to_the_default_threshold():
    evidence = replace(EVIDENCE, exact=frozenset({2}))
    candidates = [Candidate(1, 0.4, 0.1), Candidate(2, 0.4, 0.1)]
    (kept,) = shown(candidates, evidence)
    assert (kept.candidate.chunk_id, kept.score) == (2, DEFAULT_THRESHOLD)
    assert shown(candidates, evidence, 0.6) == []  # who asks for more gets only that


def test_what_is_near_in_meaning_is_shown_where_words_fail():
    near, far = Candidate(1, 0.66, None), Candidate(2, 0.5, None)
    assert [f.candidate for f in shown([near, far], EVIDENCE)] == [near]
    full_match = Candidate(3, 0.9, 10.0)
    assert [f.candidate for f in shown([near, far, full_match], EVIDENCE)] == [full_match]


def test_without_a_threshold_scores_and_order_are_as_they_are():
    evidence = replace(EVIDENCE, exact=frozenset({2}))
    candidates = [Candidate(1, 0.5, 1.0), Candidate(2, 0.4, 0.1)]
    assert shown(candidates, evidence, 0.0) == fuse(candidates, evidence, fusion="balanced")
    assert [f.candidate.chunk_id for f in shown(candidates, evidence, 0.0)] == [1, 2]


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1, 2))
def test_a_gain_raises_a_score_but_never_beyond_sure(one, other, gain):
    low, high = sorted((raised(one, gain), raised(other, gain)))
    assert raised(min(one, other), gain) == low
    assert raised(max(one, other), gain) == high
    assert min(one, other) <= low + 1e-9
    assert high <= 1


def test_a_gain_below_the_knee_is_a_factor():
    assert raised(KNEE / 2, 1.25) == pytest.approx(KNEE / 2 * 1.25)


def test_in_keyword_mode_a_remark_stands_behind_but_is_shown():
    remark, note = Candidate(1, None, 6.0, terms=0), Candidate(2, None, 5.0, terms=20)
    fused = fuse([remark, note], EVIDENCE, fusion="balanced")
    assert [f.candidate for f in fused] == [note, remark]
    hardly = Candidate(3, None, 1.2, terms=0)  # its words alone reach the threshold
    assert [f.score for f in above(fuse([hardly], EVIDENCE, fusion="balanced"), 0.35)] == [0.35]
    assert above(fuse([hardly._replace(bm25=0.9)], EVIDENCE, fusion="balanced"), 0.35) == []
