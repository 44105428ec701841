"""A query becomes terms: content words, identifiers, phrases; anything at all can be typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.search.analysis import COMMON, MOST_TERMS, choose_terms, query_terms, weigh
from recollect.types import Term


def term(*tokens: str, prefix: bool = False) -> Term:
    return Term(tokens, prefix)


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        pytest.param("who runs the design team?", [term("run"), term("design"), term("team")], id="stop words go"),
        pytest.param("the who", [term("the"), term("who")], id="only stop words stay"),
        pytest.param("HARB-214", [term("harb"), term("214"), term("harb-214")], id="an identifier"),
        pytest.param('"guest wifi"', [term("guest"), term("wifi"), term("guest", "wifi")], id="a quoted phrase"),
        pytest.param("数", [term("数", prefix=True)], id="one character is a prefix"),
        pytest.param("数据", [term("数据")], id="two characters are a pair"),
        pytest.param("数据库", [term("数据"), term("据库"), term("数据", "据库")], id="more are pairs and a phrase"),
        pytest.param("wifi WIFI wifi", [term("wifi")], id="repeats count once"),
        pytest.param("WiFi", [term("wi"), term("fi"), term("wifi")], id="camel case counts whole too"),
        pytest.param("", [], id="nothing"),
        pytest.param('" * NEAR( ) AND OR -', [term("near")], id="operators are words"),
    ],
)
def test_query_terms(query, terms):
    assert list(query_terms(query)) == terms


@given(st.text())
def test_any_text_is_a_query(query):
    assert all(t.tokens and all(t.tokens) for t in query_terms(query))


def test_rare_terms_weigh_more():
    rare, common = weigh([term("a"), term("b")], [1, 90], 100)
    assert rare.weight > common.weight > 0


def test_very_common_terms_go_while_rarer_ones_remain():
    weighed = weigh([term("common"), term("rare")], [COMMON, 3], 100_000)
    assert choose_terms(weighed).terms == (term("rare"),)


def test_very_common_terms_stay_when_there_is_nothing_else():
    weighed = weigh([term("common")], [COMMON], 100_000)
    assert choose_terms(weighed).terms == (term("common"),)


def test_terms_that_occur_nowhere_are_not_asked_for():
    weighed = weigh([term("here"), term("nowhere")], [2, 0], 100)
    chosen = choose_terms(weighed)
    assert chosen.terms == (term("here"),)
    assert weighed[0].weight < chosen.full_weight < weighed[0].weight + weighed[1].weight


def test_a_long_query_keeps_its_rarest_terms():
    terms = [term(f"t{i}") for i in range(200)]
    chosen = choose_terms(weigh(terms, list(range(200, 0, -1)), 10_000))
    assert len(chosen.terms) == MOST_TERMS
    assert term("t199") in chosen.terms
    assert term("t0") not in chosen.terms
