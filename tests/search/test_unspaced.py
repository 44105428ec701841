"""Unspaced text is split at function words and nowhere else, and every substring is still found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell import Memory
from notewell.search.unspaced import content_pieces


@pytest.mark.parametrize(
    ("run", "pieces"),
    [
        pytest.param("泰国军队什么时候发动兵变", "泰国军队 发动兵变", id="a Chinese question word"),
        pytest.param("甲骨文公司的创始人是谁", "甲骨文公司 创始人", id="Chinese particles"),
        pytest.param("目的地是哪里", "目的地", id="的 inside a word"),
        pytest.param("是否的确了解", "是否的确了解", id="是 and 的 inside words"),
        pytest.param("為什麼資料庫壞了嗎", "資料庫壞了", id="traditional Chinese"),
        pytest.param("数据库", "数据库", id="no function word"),
        pytest.param("是什么", "", id="only function words"),
        pytest.param("会議の議事録はどこですか", "会議 議事録", id="Japanese particles and a question"),
        pytest.param("次の会議は何時からですか", "次 会議", id="何時"),
        pytest.param("サーバーの設定を変更したのは誰ですか", "サーバー 設定 変更", id="誰"),
        pytest.param("なぜデータベースを移行したのか", "データベース 移行", id="なぜ"),
        pytest.param("取り引きについて教えてください", "取り引き", id="okurigana stays"),
        pytest.param("りんごはどこ", "りんご", id="a word in hiragana before a question"),
        pytest.param("北海道のかに料理", "北海道のかに料理", id="かに is a crab"),
        pytest.param("どうぶつえん", "どうぶつえん", id="どう inside a word"),
        pytest.param("幾何学の教科書", "幾何学 教科書", id="何 inside a word"),
        pytest.param("技術的課題", "技術 課題", id="的 in Japanese"),
        pytest.param("東京から大阪まで", "東京 大阪", id="から and まで"),
        pytest.param("데이터베이스는", "데이터베이스", id="a Korean particle"),
        pytest.param("이탈리아에서의", "이탈리아", id="the longest particle"),
        pytest.param("추구했나", "추구", id="a Korean ending"),
        pytest.param("언제까지", "", id="a question word with a particle"),
        pytest.param("아이", "아이", id="a stem keeps two syllables"),
        pytest.param("ห้องประชุมอยู่ที่ไหน", "ห้องประชุมอยู่ที่ไหน", id="Thai stays whole"),
    ],
)
def test_content_pieces(run, pieces):
    assert content_pieces(run) == pieces.split()


def test_a_korean_word_alone_keeps_its_end():
    assert content_pieces("고양이", alone=True) == ["고양이"]
    assert content_pieces("고양이") == ["고양"]


@given(
    st.text(alphabet="数据的是谁什么呢会議のはがをにでどこですか何時教えてください데이터는언제까지กข", min_size=1),
    st.booleans(),
)
def test_pieces_are_parts_of_the_run_in_order(run, alone):
    place = 0
    for piece in content_pieces(run, alone=alone):
        assert piece
        place = run.index(piece, place) + len(piece)


SENTENCES = {
    "zh": "我们在下周把数据库的目的地迁移到新的服务器，是谁负责的还没有决定。",
    "tw": "為什麼鑰匙在辦公室的抽屜裡，誰也不知道什麼時候放的。",
    "ja": "会議の議事録はどこですか。東京から大阪まで新幹線で行くのは誰でしょうか。",
    "ko": "데이터베이스는 언제 이전하나요? 어디에서 무엇을 하는가 아직 모릅니다.",
    "th": "กุญแจห้องประชุมอยู่ที่ไหน",
}


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize("length", [1, 2, 4])
def test_every_substring_as_a_query_finds_the_note(tmp_path, language, length):
    sentence = SENTENCES[language]
    (tmp_path / "memory").mkdir()
    for name, text in SENTENCES.items():
        (tmp_path / "memory" / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    with Memory.open(tmp_path, provider="none") as memory:
        memory.index()
        for start in range(len(sentence) - length + 1):
            query = sentence[start : start + length]
            if any(character.isalnum() for character in query):
                found = [hit.path for hit in memory.search(query, sync=False).hits]
                assert f"memory/{language}.md" in found, query
