"""Two scores become one: order, range, meaning and the formulas by name."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.search.scoring import (
    Scale,
    Weights,
    function_word_scores,
    score_all,
    with_neighbours,
)
from notewell.search.tuning import TUNING
from notewell.settings import Settings
from notewell.types import Candidate, ChunkPlace

SCALE = Scale(full_weight=10.0, cosine_range=(0.4, 0.8), tuning=TUNING)
FUSIONS = ["balanced", "weighted", "rrf"]
THRESHOLD = Settings().query.min_score

candidates = st.lists(
    st.builds(
        Candidate,
        st.integers(1, 10**6),
        st.none() | st.floats(-1, 1),
        st.none() | st.floats(1e-6, 40),
        pairs=st.floats(0, 40),
        function_words=st.floats(0, 40),
        parts=st.integers(1, 500),
    ).filter(lambda c: c.cosine is not None or c.bm25 is not None),
    max_size=30,
    unique_by=lambda c: c.chunk_id,
)


def score_one(candidate, scale=SCALE):
    (scored,) = score_all([candidate], scale)
    return scored


def order(found, scale=SCALE):
    return [scored.candidate.chunk_id for scored in score_all(found, scale)]


@pytest.mark.parametrize(
    ("scale", "covered", "expected"),
    [
        pytest.param(SCALE, 1.0, 0.7, id="words and vector count alike"),
        pytest.param(SCALE, 0.0, 0.2, id="no word is covered"),
        pytest.param(
            replace(SCALE, is_measured=True, nearest=0.6, usual=0.25), 0.0, 0.45, id="at least what stands out"
        ),
        pytest.param(replace(SCALE, language_weight=0.25), 1.0, 0.88, id="vectors count less in this language"),
        pytest.param(replace(SCALE, weights=Weights(vector=0, text=1)), 0.9, 0.9, id="vectors are given no weight"),
        pytest.param(replace(SCALE, weights=Weights(vector=1, text=0)), 0.0, 0.4, id="words are given no weight"),
        pytest.param(replace(SCALE, tuning=replace(TUNING, coverage=0)), 0.0, 1.0, id="turned off"),
    ],
)
def test_how_well_a_question_is_answered(scale, covered, expected):
    best = score_one(Candidate(1, 0.6, 9.0))
    assert best.vector_part == pytest.approx(0.4)
    assert scale.answered_by(best, covered) == pytest.approx(expected)


def test_without_a_vector_the_score_has_to_say_how_well_it_is_answered():
    best = score_one(Candidate(1, None, 9.0))
    assert SCALE.answered_by(best, 0.0) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
@pytest.mark.parametrize("fusion", FUSIONS)
@given(found=candidates)
def test_scores_lie_between_0_and_1_and_fall(fusion, mode, found):
    scored = score_all(found, replace(SCALE, fusion=fusion, mode=mode))
    assert sorted(s.candidate.chunk_id for s in scored) == sorted(c.chunk_id for c in found)
    scores = [s.score for s in scored]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 and math.isfinite(score) for score in scores)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_better_on_both_sides_is_better(fusion):
    assert order([Candidate(1, 0.5, 1.0), Candidate(2, 0.9, 9.0)], replace(SCALE, fusion=fusion)) == [2, 1]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_ties_keep_the_order_of_ids(fusion):
    assert order([Candidate(i, 0.5, 2.0) for i in (3, 1, 2)], replace(SCALE, fusion=fusion)) == [1, 2, 3]


@pytest.mark.slow
@given(found=candidates)
def test_a_score_does_not_depend_on_the_other_candidates(found):
    for scored in score_all(found, SCALE):
        assert scored == score_one(scored.candidate, SCALE)


def test_the_mix_is_the_formula_in_the_docstring():
    scored = score_one(Candidate(1, 0.8, 6.0), SCALE)
    text = 0.6 / (0.6 + TUNING.half_match)
    assert scored.text_part == pytest.approx(text)
    assert scored.vector_part == pytest.approx(TUNING.answer_level)
    mixed = TUNING.text_weight * text + (1 - TUNING.text_weight) * TUNING.answer_level
    assert scored.score == pytest.approx(mixed)


@pytest.mark.parametrize(
    ("cosine", "expected"),
    [
        pytest.param(0.2, 0.0, id="less alike than unrelated texts"),
        pytest.param(0.4, 0.0, id="as alike as unrelated texts"),
        pytest.param(0.6, TUNING.answer_level / 2, id="half-way to an answer"),
        pytest.param(0.8, TUNING.answer_level, id="an answer"),
        pytest.param(1.0, 1.0, id="the same text"),
    ],
)
def test_the_vector_part_says_how_near_the_meaning_is(cosine, expected):
    assert score_one(Candidate(1, cosine, None), SCALE).vector_part == pytest.approx(expected)


def test_semantic_scores_are_the_vector_part_alone():
    semantic = replace(SCALE, mode="semantic")
    (scored,) = score_all([Candidate(1, 0.997, 9.0, parts=40)], semantic)
    assert scored.score == scored.vector_part > 0.99


def test_weighted_is_the_formula_of_openclaw():
    scored = score_one(Candidate(1, 0.8, 3.0), replace(SCALE, fusion="weighted"))
    assert scored.score == pytest.approx(0.7 * 0.8 + 0.3 * 3 / 4)


def test_rrf_is_one_when_first_on_both_sides():
    found = [Candidate(1, 0.8, 3.0), Candidate(2, 0.7, 2.0)]
    assert score_all(found, replace(SCALE, fusion="rrf"))[0].score == pytest.approx(1.0)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_the_weights_act_in_every_fusion(fusion):
    by_words, by_meaning = Candidate(1, 0.55, 4.0), Candidate(2, 0.7, 1.0)
    scale = replace(SCALE, fusion=fusion)
    assert order([by_words, by_meaning], replace(scale, weights=Weights(0.01, 0.99)))[0] == 1
    assert order([by_words, by_meaning], replace(scale, weights=Weights(0.99, 0.01)))[0] == 2


def test_the_weights_of_the_settings_leave_the_tuned_mix_as_it_is():
    assert SCALE.text_weight == pytest.approx(TUNING.text_weight)
    assert replace(SCALE, weights=Weights(0.0, 1.0)).text_weight == 1.0
    assert replace(SCALE, weights=Weights(1.0, 0.0)).text_weight == 0.0


@pytest.mark.parametrize("fusion", FUSIONS)
def test_without_vectors_the_text_part_is_the_score(fusion):
    (scored,) = score_all([Candidate(1, None, 10.0)], replace(SCALE, fusion=fusion))
    assert scored.score == scored.text_part == pytest.approx(SCALE.full_match)


@pytest.mark.parametrize(
    ("bm25", "full_weight"),
    [
        pytest.param(1e-6, 1e-6, id="the only chunk of an index, where BM25 is almost zero"),
        pytest.param(10.0, 10.0, id="a full match"),
        pytest.param(20.0, 10.0, id="more than a full match"),
    ],
)
def test_a_full_match_passes_the_default_threshold_whatever_the_vectors_say(bm25, full_weight):
    assert score_one(Candidate(1, -1.0, bm25), replace(SCALE, full_weight=full_weight)).score > THRESHOLD


@given(st.floats(0, 0.39), st.floats(0.2, 1))
def test_words_count_for_themselves_where_meaning_is_noise(noise, share):
    exact, other = Candidate(1, noise, 10 * share), Candidate(2, noise, None)
    assert order([other, exact])[0] == 1


def test_a_rare_word_in_a_long_text_is_not_behind_what_only_seems_near():
    exact, near = Candidate(1, 0.4, 5.0), Candidate(2, 0.8, None)  # half the weight of the question, and no meaning
    assert order([near, exact])[0] == 1


def test_text_parts_grow_beyond_a_full_match():
    parts = [score_one(Candidate(1, None, bm25), SCALE).text_part for bm25 in (0.1, 1, 5, 9.9, 10, 12, 30)]
    assert parts == sorted(set(parts))
    assert parts[-1] < 1


@pytest.mark.parametrize("field", ["pairs", "function_words"])
def test_neighbouring_words_and_function_words_add(field):
    plain = Candidate(1, 0.6, 4.0)
    assert order([plain, plain._replace(chunk_id=2, **{field: 2.0})])[0] == 2


def test_a_piece_of_a_longer_text_counts_a_little_less():
    whole, *pieces = (score_one(Candidate(1, 0.6, 4.0, parts=parts), SCALE).score for parts in (1, 2, 1000))
    assert pieces == [pytest.approx((1 - TUNING.piece_loss) * whole)] * 2


# --- the best, read ------------------------------------------------------------------------------


def test_a_function_word_tells_texts_apart_unless_all_have_it():
    texts = ["I moved my desk.", "The desk was moved.", "A desk.", "Desks are sold here."]
    first, *others = function_word_scores(["my", "i"], texts)
    assert first > 0
    assert others == [0, 0, 0]
    assert function_word_scores(["my"], ["my desk"] * 3) == [0, 0, 0]


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_function_words_of_nothing(texts):
    assert function_word_scores(["my"], texts) == [0.0] * len(texts)
    assert function_word_scores([], ["my desk"]) == [0.0]


def places(*turns):
    return {number: ChunkPlace(1, turn, 1) for number, turn in enumerate(turns, start=1)}


def lent(scores, where, share=0.3):
    scored = [score_one(Candidate(i, None, 1.0), SCALE)._replace(score=s) for i, s in enumerate(scores, start=1)]
    return {s.candidate.chunk_id: s.score for s in with_neighbours(scored, where, share)}


def test_neighbouring_messages_lend_each_other_weight():
    found = lent([0.6, 0.4, 0.4], places(5, 6, 9))
    assert found[1] == pytest.approx(1 - 0.4 * (1 - 0.3 * 0.4))
    assert found[2] == pytest.approx(1 - 0.6 * (1 - 0.3 * 0.6))
    assert found[3] == 0.4


def test_notes_have_no_neighbours():
    assert lent([0.6, 0.4], places(0, 0)) == {1: 0.6, 2: 0.4}


def test_messages_of_other_conversations_are_no_neighbours():
    assert lent([0.6, 0.4], {1: ChunkPlace(1, 5, 1), 2: ChunkPlace(2, 6, 1)}) == {1: 0.6, 2: 0.4}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.data())
def test_what_neighbours_lend_never_costs_and_never_exceeds_1(scores, data):
    turns = data.draw(st.lists(st.integers(0, 8), min_size=len(scores), max_size=len(scores)))
    found = lent(scores, places(*turns))
    assert all(before - 1e-12 <= found[number] <= 1 for number, before in enumerate(scores, start=1))
