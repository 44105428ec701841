"""Numbers out of range move to the nearest allowed one, weights sum to 1, and each change leaves a note."""

from __future__ import annotations

import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.settings import (
    OPTIONS,
    ChunkingSettings,
    HybridSettings,
    QuerySettings,
    Settings,
    check_settings,
    flatten,
    load_settings,
    variable_name,
)

NUMBERS = {key: option for key, option in OPTIONS.items() if option.kind in {"integer", "number"}}
PAIRED = {"query.hybrid.vector_weight", "query.hybrid.text_weight", "chunking.tokens", "chunking.overlap"}


@pytest.mark.parametrize(
    ("key", "text", "used", "note"),
    [
        pytest.param("query.max_results", "0", 1, "0 ({}) is below 1: using 1", id="no results"),
        pytest.param("query.max_results", "9999999", 1000, "9999999 ({}) is above 1000: using 1000", id="all results"),
        pytest.param("query.min_score", "-0.5", 0.0, "-0.5 ({}) is below 0.0: using 0.0", id="score below 0"),
        pytest.param("query.min_score", "35", 1.0, "35.0 ({}) is above 1.0: using 1.0", id="a percentage"),
        pytest.param("query.hybrid.candidate_multiplier", "0", 1, "0 ({}) is below 1: using 1", id="no candidates"),
        pytest.param("query.hybrid.candidate_multiplier", "99", 20, "99 ({}) is above 20: using 20", id="many"),
        pytest.param("chunking.tokens", "1000000", 8192, "1000000 ({}) is above 8192: using 8192", id="long chunks"),
        pytest.param("chunking.overlap", "-1", 0, "-1 ({}) is below 0: using 0", id="negative overlap"),
        pytest.param(
            "chunking.overlap",
            "400",
            399,
            "400 ({}) is not less than chunking.tokens = 400: using 399",
            id="overlap as long as the chunk",
        ),
        pytest.param("cache.max_entries", "0", 1, "0 ({}) is below 1: using 1", id="no cache"),
    ],
)
def test_out_of_range_is_moved_and_noted(load, key, text, used, note):
    name = variable_name(key)
    resolved = load(environ={name: text})
    assert flatten(resolved.settings)[key] == used
    assert resolved.notes == (f"{key} = {note.format(f'environment variable {name}')}",)


def test_short_chunks_bring_their_overlap_down(load, user_file):
    resolved = load(user="[chunking]\ntokens = 3\n")
    assert resolved.settings.chunking == ChunkingSettings(tokens=16, overlap=15)
    assert resolved.notes == (
        f"chunking.tokens = 3 ({user_file}:2) is below 16: using 16",
        "chunking.overlap = 80 is not less than chunking.tokens = 16: using 15",
    )


def test_a_value_that_is_overridden_leaves_no_note(load):
    assert load(user="[query]\nmax_results = 0", flags={"query.max_results": 5}).notes == ()


def test_weights_are_scaled(load):
    resolved = load(flags={"query.hybrid.vector_weight": 3, "query.hybrid.text_weight": 1})
    hybrid = resolved.settings.query.hybrid
    assert (hybrid.vector_weight, hybrid.text_weight) == (0.75, 0.25)
    (note,) = resolved.notes
    assert note == (
        "query.hybrid.vector_weight = 3.0 (flag) and query.hybrid.text_weight = 1.0 (flag) do not sum to 1: "
        "using 0.75 and 0.25"
    )


def test_two_zero_weights_give_the_defaults(load):
    resolved = load(flags={"query.hybrid.vector_weight": 0, "query.hybrid.text_weight": 0.0})
    assert resolved.settings.query.hybrid == HybridSettings()
    assert len(resolved.notes) == 1
    assert "are both 0: using 0.7 and 0.3" in resolved.notes[0]


def test_one_zero_weight_switches_that_side_off(load):
    hybrid = load(flags={"query.hybrid.vector_weight": 0}).settings.query.hybrid
    assert (hybrid.vector_weight, hybrid.text_weight) == (0, 1)


any_float = st.floats(allow_nan=False, allow_infinity=False)


@given(vector=any_float, text=any_float)
def test_weights_always_sum_to_one_and_keep_their_order(vector, text):
    made = Settings(query=QuerySettings(hybrid=HybridSettings(vector_weight=vector, text_weight=text)))
    hybrid = check_settings(made).settings.query.hybrid
    assert math.isclose(hybrid.vector_weight + hybrid.text_weight, 1)
    assert 0 <= hybrid.vector_weight <= 1
    assert 0 <= hybrid.text_weight <= 1
    if vector > text and vector > 0:
        assert hybrid.vector_weight >= hybrid.text_weight
    if vector < text and text > 0:
        assert hybrid.vector_weight <= hybrid.text_weight


@given(tokens=st.integers(-(10**6), 10**6), overlap=st.integers(-(10**6), 10**6))
def test_overlap_is_always_less_than_the_chunk(tokens, overlap):
    made = Settings(chunking=ChunkingSettings(tokens=tokens, overlap=overlap))
    chunking = check_settings(made).settings.chunking
    assert 0 <= chunking.overlap < chunking.tokens
    assert 16 <= chunking.tokens <= 8192


@pytest.mark.slow
@given(data=st.data())
def test_every_number_ends_inside_its_range_and_checking_again_changes_nothing(data):
    key = data.draw(st.sampled_from(sorted(NUMBERS.keys() - PAIRED)))
    option = NUMBERS[key]
    value = data.draw(any_float if option.kind == "number" else st.integers(-(2**62), 2**62))
    resolved = load_settings(None, flags={key: value}, environ={"NOTEWELL_CONFIG": os.devnull})
    used = flatten(resolved.settings)[key]
    assert used >= option.low
    assert option.high is None or used <= option.high
    assert (used == value) == (resolved.notes == ())
    assert type(used) is (float if option.kind == "number" else int)
    again = check_settings(resolved.settings)
    assert (again.settings, again.notes) == (resolved.settings, ())


def test_every_number_has_a_lower_limit_that_its_default_keeps():
    for key, option in NUMBERS.items():
        assert option.low is not None, key
        assert option.low <= option.default <= (option.high or math.inf), key


@pytest.mark.parametrize(
    ("multiplier", "candidates"),
    [pytest.param(1, 16, id="1"), pytest.param(4, 64, id="the default"), pytest.param(20, 200, id="never above 200")],
)
def test_candidates_do_not_depend_on_the_limit(multiplier, candidates):
    assert HybridSettings(candidate_multiplier=multiplier).candidates_per_side == candidates


@pytest.mark.parametrize(
    ("user", "sources"),
    [
        pytest.param('sources = ["memory", "sessions"]', ("memory", "sessions"), id="named"),
        pytest.param('sources = ["sessions"]', ("sessions",), id="nothing else named"),
        pytest.param(
            'sources = ["memory", "sessions"]\n[experimental]\nsession_memory = true',
            ("memory", "sessions"),
            id="with the key that has no effect",
        ),
        pytest.param("[experimental]\nsession_memory = true", ("memory",), id="that key alone"),
    ],
)
def test_sources_alone_decide_whether_conversations_are_indexed(load, user, sources):
    resolved = load(user=user)
    assert resolved.settings.sources == sources
    assert resolved.notes == ()
