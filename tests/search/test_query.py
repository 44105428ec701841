"""A query becomes terms: content words, identifiers, phrases; anything at all can be typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell import Memory
from notewell.search.query import KeywordQuery, choose_terms, common_from, keyword_query, query_terms, weigh
from notewell.search.tuning import TUNING
from notewell.types import Term

MANY = 100_000
COMMON = common_from(MANY, TUNING)


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


@pytest.mark.parametrize(
    ("text", "share"),
    [
        pytest.param("The crane lifts.", 0.6, id="one word of two"),
        pytest.param("crane crane crane", 0.6, id="how often does not matter"),
        pytest.param("Cranes in a Harbour", 1.0, id="both, in another form"),
        pytest.param("harbourmaster", 0.4, id="the beginning of a longer word, where the question asks for it"),
        pytest.param("craneflies", 0.0, id="not where it does not"),
        pytest.param("", 0.0, id="no text"),
    ],
)
def test_a_text_covers_a_share_of_the_question(text, share):
    asked = KeywordQuery(
        terms=(term("crane"), term("harbour", prefix=True)), full_weight=10, weights={"crane": 6, "harbour": 4}
    )
    assert asked.covered_by(text) == pytest.approx(share)


def test_nothing_covers_a_question_without_words():
    assert KeywordQuery().covered_by("crane") == 0


def test_rare_terms_weigh_more():
    rare, common = weigh([term("a"), term("b")], [1, 90], 100)
    assert rare.weight > common.weight > 0


def chosen_from(weighed, *, common=COMMON):
    return choose_terms(weighed, TUNING, common=common)


def test_very_common_terms_go_while_rarer_ones_remain():
    weighed = weigh([term("common"), term("rare")], [COMMON, 3], MANY)
    assert chosen_from(weighed).terms == (term("rare"),)


def test_very_common_terms_stay_when_there_is_nothing_else():
    weighed = weigh([term("common")], [COMMON], MANY)
    assert chosen_from(weighed).terms == (term("common"),)


def test_the_rarest_terms_that_name_enough_chunks_lead():
    weighed = weigh([term("often"), term("seldom"), term("now-and-then")], [900, 30, TUNING.led_by], MANY)
    chosen = chosen_from(weighed)
    assert chosen.led_by == (term("seldom"), term("now-and-then"))
    assert chosen.terms == (*chosen.led_by, term("often"))


def test_all_terms_lead_while_they_name_few_chunks():
    chosen = chosen_from(weigh([term("one"), term("two")], [4, 3], 100))
    assert chosen.led_by == chosen.terms == (term("two"), term("one"))


def test_a_long_query_keeps_its_rarest_terms():
    terms = [term(f"t{i}") for i in range(200)]
    chosen = chosen_from(weigh(terms, list(range(200, 0, -1)), 10_000))
    assert len(chosen.terms) == TUNING.most_terms
    assert term("t199") in chosen.terms
    assert term("t0") not in chosen.terms


# --- asked of a store ------------------------------------------------------------------------------


@pytest.fixture
def memory(tmp_path):
    notes = tmp_path / "memory"
    notes.mkdir()
    for number in range(40):
        (notes / f"{number}.md").write_text(f"Entry {number} about the harbour crane, kept by the office.\n")
    (notes / "vpn.md").write_text("WireGuard (WG) listens on port 51820.\n")
    with Memory.open(tmp_path, provider="none") as opened:
        opened.index()
        yield opened


def asked(memory, query, **given):
    with memory._components.index.use() as store, store.reading() as snapshot:
        return keyword_query(snapshot, query, TUNING, **given)


def test_terms_that_occur_nowhere_are_not_asked_for_but_missed(memory):
    known, more = asked(memory, "WireGuard"), asked(memory, "WireGuard zeppelin")
    assert more.terms == known.terms
    assert more.full_weight > known.full_weight


def test_what_a_small_memory_lacks_counts_no_more_than_what_all_of_it_holds(memory):
    known, more = asked(memory, "crane"), asked(memory, "crane zeppelin")
    assert more.full_weight == pytest.approx(2 * known.full_weight)


def test_words_that_say_when_are_not_looked_for(memory):
    assert asked(memory, "crane in August", about_time="in August").terms == (term("crane"),)
    assert not asked(memory, "crane in August", about_time="in August").only_time


@pytest.mark.parametrize("query", ["what happened in August", "notes of August", "August?"])
def test_a_question_may_ask_for_nothing_but_a_time(memory, query):
    assert asked(memory, query, about_time="in August").only_time


def test_a_word_typed_in_part_stands_for_what_begins_so(memory):
    assert asked(memory, "wiregu").terms == (term("wiregu", prefix=True),)
    assert asked(memory, '"wiregu"').terms == ()


def test_function_words_are_kept_as_typed_beside_others(memory):
    assert asked(memory, "Where is the crane?").function_words == ("where", "is", "the")
    assert asked(memory, "the who").function_words == ()


def test_neighbouring_content_words_are_pairs(memory):
    assert asked(memory, "port of the harbour crane").pairs == (term("harbour", "crane"),)


@pytest.mark.parametrize(
    ("query", "guesses"),
    [
        pytest.param("wiregu", (), id="a word typed in part is no guess"),
        pytest.param("wireguadr port", (("wireguadr", (Term(("wireguard",)),)),), id="a typo"),
        pytest.param('"wiregu"', (), id="in quotes it is meant as it is"),
        pytest.param("crane", (), id="a word that is there"),
    ],
)
def test_words_that_no_note_holds_are_guessed(memory, query, guesses):
    assert asked(memory, query).guesses == guesses


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
