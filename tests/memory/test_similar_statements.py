"""When two statements say the same: rewording does not matter; a number, a name or a `not` does."""

from __future__ import annotations

import pytest
from evals.subject_pairs import HELD_OUT, PAIRS, load_pairs, measure

from notewell.memory.statements import most_similar, similar_statements


@pytest.mark.parametrize(
    ("new", "known", "same"),
    [
        pytest.param("The guest wifi is heron-guest.", "The guest wifi is heron-guest.", True, id="equal"),
        pytest.param("the guest wifi is heron-guest", "- The guest wifi is: heron-guest!", True, id="case and marks"),
        pytest.param("guest wifi: heron-guest", "The guest wifi is heron-guest.", True, id="light words"),
        pytest.param("The guest wifi is heron-guest2", "The guest wifi is heron-guest.", False, id="another name"),
        pytest.param("Meet at 10:30 on Monday", "Meet at 11:30 on Monday", False, id="another number"),
        pytest.param(
            "The backup of the shop's database runs every night at two o'clock",
            "The backup of the shop's database never runs every night at two o'clock",
            False,
            id="a denial",
        ),
        pytest.param(
            "Alice likes strong black tea with a little milk in the early morning",
            "Robert likes strong black tea with a little milk in the early morning",
            False,
            id="another person",
        ),
        pytest.param("Tea is good", "The printer jams on thick paper", False, id="something else"),
        pytest.param("数据库迁移 下周", "数据库迁移 下周", True, id="Chinese"),
        pytest.param("我不喜欢早上喝咖啡和牛奶", "我喜欢早上喝咖啡和牛奶", False, id="a denial in Chinese"),
    ],
)
def test_same(new, known, same):
    found = similar_statements(new, "memory/x.md", f"# Title\n\n{known}\n")
    assert bool(found and found[0].same) is same


@pytest.mark.parametrize(
    ("new", "known", "similar"),
    [
        pytest.param("The car is blue.", "The car is red.", True, id="of one form"),
        pytest.param("The key is in the box.", "The printer is on the desk.", False, id="light words in common"),
        pytest.param("牙医预约在周四上午九点。", "牙医预约在周二上午十点。", True, id="Chinese"),
        pytest.param("办公室的打印机在角落里", "办公室的钥匙在抽屉里", False, id="a place in common"),
        pytest.param("회의는 네 시에 시작한다", "회의는 세 시에 시작한다", True, id="Korean"),
    ],
)
def test_similar(new, known, similar):
    found = similar_statements(new, "memory/x.md", f"{known}\n")
    assert bool(found) is similar
    assert not (found and found[0].same)


def test_the_line_is_told_and_the_most_alike_comes_first():
    note = "# X\n\n- The printer in the hall jams.\n- The printer in the hall jams on thick paper.\n"
    found = similar_statements("the printer in the hall jams on thick paper", "memory/x.md", note, first_line=11)
    assert found[0].citation == "memory/x.md#L14"
    assert found[0].same
    assert found[0].likeness == 1.0


def test_several_lines_are_compared_as_a_whole():
    note = "# X\n\nfirst fact about boats\nsecond fact about harbours\n\nother\n"
    found = similar_statements("first fact about boats\nsecond fact about harbours", "memory/x.md", note)
    assert found[0].same
    assert found[0].citation == "memory/x.md#L3"


def test_a_sentence_within_a_paragraph_is_found():
    note = "We talked long. The ferry leaves at nine from pier four. Then we went home.\n"
    assert similar_statements("the ferry leaves at nine from pier four", "memory/x.md", note)[0].same


@pytest.mark.slow
@pytest.mark.parametrize("run", [" ", "\u2003", "7", "- ", "> ", "1. "])
def test_a_long_run_in_a_line_is_read_once(run):
    """A bullet was looked for at each place of a run up to its end: this took minutes."""
    note = f"The ferry leaves at nine{run * 200_000}\n"
    assert similar_statements("the ferry leaves at nine", "memory/x.md", note) is not None


def test_only_the_bullet_of_a_line_is_left_out():
    note = "1. The pump needs 5) bar - never more - in winter\n"
    (found, *_) = similar_statements("the pump needs 5) bar - never more - in winter", "memory/x.md", note)
    assert found.text == "The pump needs 5) bar - never more - in winter"


def test_each_place_is_told_once():
    found = similar_statements("a fact about boats", "memory/x.md", "a fact about boats\n")
    assert len(most_similar([*found, *found], 5)) == 1


def test_another_value_for_the_same_subject_is_right_nine_times_out_of_ten():
    for file in (PAIRS, HELD_OUT):
        figures = measure(load_pairs(file))
        assert figures.precision >= 0.9
        assert figures.recall >= 0.7
    assert (len(load_pairs()), len(load_pairs(HELD_OUT))) == (234, 162)


def test_remember_reports_similar_statements_and_other_values(tmp_path, capsys):
    from notewell.cli.main import run

    def remember(text: str) -> str:
        assert run(["remember", text, "--to", "memory/a.md", "-w", str(tmp_path), "--set", "provider=none"]) == 0
        return capsys.readouterr().out

    (tmp_path / "memory").mkdir()
    remember("The guest wifi is heron-guest.")
    told = remember("The guest wifi is osprey-guest.")
    assert "same subject, different value: memory/a.md#L3  The guest wifi is heron-guest." in told
    remember("The dentist is on Tuesday at 10:00.")
    told = remember("The dentist is on Thursday at 9:00.")
    assert "same subject, different value: memory/a.md#L9  The dentist is on Tuesday at 10:00." in told
    remember("会议时间是下午三点。")
    assert "same subject, different value: memory/a.md#L15  会议时间是下午三点。" in remember("会议时间是下午四点。")
    told = remember("The guest wifi in the garden house is slow.")
    assert "different value" not in told
    told = remember("The guest wifi in the garden house is not slow at night.")
    assert "similar: memory/a.md#L21" in told
