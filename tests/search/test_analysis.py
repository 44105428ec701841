"""A query becomes terms: content words, identifiers, phrases; anything at all can be typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.search.analysis import COMMON, LED_BY, MOST_TERMS, choose_terms, query_terms, weigh
from recollect.types import Term


def term(*tokens: str, prefix: bool = False) -> Term:
    return Term(tokens, prefix)


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        pytest.param("who runs the design team?", [term("run"), term("design"), term("team")], id="function words go"),
        pytest.param("the who", [term("the"), term("who")], id="only function words stay"),
        pytest.param("HARB-214", [term("harb"), term("214"), term("harb-214")], id="an identifier"),
        pytest.param('"guest wifi"', [term("guest"), term("wifi"), term("guest", "wifi")], id="a quoted phrase"),
        pytest.param("数", [term("数", prefix=True)], id="one character is a prefix"),
        pytest.param("数据", [term("数据")], id="two characters are a pair"),
        pytest.param("数据库", [term("数据"), term("据库")], id="more are pairs"),
        pytest.param(
            '"数据库"', [term("数据"), term("据库"), term("数据", "据库")], id="quoted pairs are a phrase too"
        ),
        pytest.param("车的颜色", [term("车", prefix=True), term("颜色")], id="a character left alone is a prefix"),
        pytest.param("是谁", [term("是谁")], id="only Chinese function words stay"),
        pytest.param("データはどこ wifi", [term("デー"), term("ータ"), term("wifi")], id="Japanese beside English"),
        pytest.param("고양이", [term("고양"), term("양이")], id="one Korean word alone keeps its end"),
        pytest.param("고양이는 언제", [term("고양"), term("양이")], id="a Korean particle and question word go"),
        pytest.param("to-do", [term("to"), term("do"), term("to-do")], id="an identifier of function words stays"),
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


def test_the_rarest_terms_that_name_enough_chunks_lead():
    weighed = weigh([term("often"), term("seldom"), term("now-and-then")], [900, 30, LED_BY], 100_000)
    chosen = choose_terms(weighed)
    assert chosen.led_by == (term("seldom"), term("now-and-then"))
    assert chosen.terms == (*chosen.led_by, term("often"))


def test_all_terms_lead_while_they_name_few_chunks():
    chosen = choose_terms(weigh([term("one"), term("two")], [4, 3], 100))
    assert chosen.led_by == chosen.terms == (term("two"), term("one"))


def test_terms_that_occur_nowhere_are_not_asked_for():
    weighed = weigh([term("here"), term("nowhere")], [2, 0], 100)
    chosen = choose_terms(weighed)
    assert chosen.terms == (term("here"),)
    assert weighed[0].weight < chosen.full_weight < weighed[0].weight + weighed[1].weight


def test_what_a_small_memory_lacks_counts_no_more_than_what_all_of_it_holds():
    everywhere, nowhere = weigh([term("everywhere"), term("nowhere")], [3, 0], 3)
    assert choose_terms([everywhere, nowhere]).full_weight == pytest.approx(2 * everywhere.weight)


def test_a_long_query_keeps_its_rarest_terms():
    terms = [term(f"t{i}") for i in range(200)]
    chosen = choose_terms(weigh(terms, list(range(200, 0, -1)), 10_000))
    assert len(chosen.terms) == MOST_TERMS
    assert term("t199") in chosen.terms
    assert term("t0") not in chosen.terms


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("where did we put the spare keys", "put spare key", id="English"),
        pytest.param("dónde está la llave de la oficina", "llave oficina", id="Spanish"),
        pytest.param("onde está a chave do escritório", "chave escritorio", id="Portuguese"),
        pytest.param("wo ist der Schlüssel für das Büro", "schlussel buro", id="German"),
        pytest.param("où sont les clés du bureau", "cles bureau", id="French"),
        pytest.param("dove sono le chiavi della macchina", "chiavi macchina", id="Italian"),
        pytest.param("waar zijn de sleutels van het kantoor", "sleutel kantoor", id="Dutch"),
        pytest.param("أين مفتاح المكتب", "مفتاح المكتب", id="Arabic"),
        pytest.param("где ключи от офиса", "ключи офиса", id="Russian"),
        pytest.param("办公室的钥匙在哪里", "办公 公室 钥匙 匙在", id="Chinese, simplified"),
        pytest.param("辦公室的鑰匙在哪裡", "辦公 公室 鑰匙 匙在", id="Chinese, traditional"),
        pytest.param("事務所の鍵はどこですか", "事務 務所 鍵", id="Japanese"),
        pytest.param("사무실 열쇠는 어디에 있나", "사무 무실 열쇠", id="Korean"),
        pytest.param("กุญแจ", "กุ ุญ ญแ แจ", id="Thai"),
        pytest.param("कार्यालय की चाबी", "कार्यालय की चाबी", id="Hindi"),
        pytest.param("איפה המפתח למשרד", "איפה המפתח למשרד", id="Hebrew"),
        pytest.param("πού είναι τα κλειδιά", "που ειναι τα κλειδια", id="Greek"),
        pytest.param("de ключі від офісу", "de ключі від офісу", id="Ukrainian"),
        pytest.param("ofisin anahtarı nerede", "ofisin anahtarı nered", id="Turkish"),
        pytest.param("chìa khóa văn phòng ở đâu", "chia khoa van phong o đau", id="Vietnamese"),
        pytest.param("gdzie są klucze do biura", "gdzie sa klucz biura", id="Polish"),
        pytest.param("საოფისე გასაღები", "საოფისე გასაღები", id="Georgian"),
    ],
)
def test_queries_in_many_languages(query, expected):
    assert [" ".join(t.tokens) for t in query_terms(query)] == expected.split()
