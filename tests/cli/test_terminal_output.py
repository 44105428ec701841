"""Search on a terminal: marked words, lines that wrap below their indent, and one line per result."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from notewell.agents.rendering import cell_width, search_lines, wrapped
from notewell.search.snippets import matched_spans
from notewell.types import Hit, IndexState, SearchAnswer

MARK = re.compile(r"\x1b\[31m\x1b\[1m(.*?)\x1b\[0m")


def marked(text: str, query: str) -> list[str]:
    return [text[start:stop] for start, stop in matched_spans(text, query)]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        pytest.param("The libraries of the town", "library", ["libraries"], id="other forms of a word"),
        pytest.param("we ran the tests", "run the test", ["ran", "tests"], id="irregular forms, no function words"),
        pytest.param("Ticket HARB-214 is closed", "what about harb-214?", ["HARB-214"], id="an identifier"),
        pytest.param("see docker-compose.yml and DOCKER_HOST", "docker", ["docker", "DOCKER"], id="a part of a name"),
        pytest.param("it's Dana's tea", "dana", ["Dana's"], id="a possessive"),
        pytest.param("Die Bücher über Züge", "bucher", ["Bücher"], id="accents and case"),
        pytest.param("服务器将在下周进行数据库迁移。", "数据库", ["数据库"], id="Chinese"),
        pytest.param("データベースのバックアップは毎晩", "バックアップ", ["バックアップ"], id="Japanese"),
        pytest.param("a carpet and a scarf", "car", [], id="parts of other words are no match"),
        pytest.param("nothing of it", "wifi", [], id="nothing"),
        pytest.param("", "", [], id="no text, no question"),
    ],
)
def test_words_of_the_question_are_marked(text, query, expected):
    assert marked(text, query) == expected


@pytest.mark.parametrize("width", range(6, 40))
def test_no_line_begins_with_a_mark_that_closes_or_ends_with_one_that_opens(width):
    line = "一般情况下这种现象是正常的：这是计算机散热方式的一部分；请看（附录）和《手册》，谢谢！「ケーブル」を確認。"
    pieces = [line[start:stop] for start, stop in wrapped(line, width, 0)]
    assert not [piece for piece in pieces if piece[0] in "：；，。！）》」ー" or piece[-1] in "（《「"]


@pytest.mark.parametrize(
    ("category", "importance", "shown"),
    [
        ("other", 5, "0.50 keyword"),
        ("fact", 5, "0.50 keyword, fact, importance 5"),
        ("other", 9, "other, importance 9"),
    ],
)
def test_category_and_importance_are_shown_where_somebody_chose_them(category, importance, shown):
    hit = Hit("memory/a.md", 3, 3, 0.5, "text", "memory", "memory/a.md#L3", found_by="keyword")
    hit = replace(hit, entry="k3f9a2qx", category=category, importance=importance)
    first, *_ = search_lines(SearchAnswer("text", "keyword", (hit,), IndexState(1, 1, 0, stale=False)))
    assert first.endswith(shown)


def test_control_characters_take_the_room_of_the_escapes_they_are_shown_as():
    assert cell_width("a\x08b\x9b") == 2 + 2 * len("\\x08")


@pytest.mark.parametrize("width", [20, 31, 80])
@pytest.mark.parametrize(
    "line",
    [
        "  - a list item that is longer than the terminal is wide, and then some more",
        "word " * 40,
        "x" * 200,
        "服务器将在下周进行数据库迁移，请提前备份所有重要数据并通知相关人员。" * 3,
        "  wide 文字 among narrow ones, e\u0301 with a mark, " * 3,
        "",
        "short",
    ],
)
def test_wrapped_lines_fit_and_lose_nothing_but_blanks(line, width):
    pieces = [line[start:stop] for start, stop in wrapped(line, width, 4)]
    assert "".join("".join(pieces).split()) == "".join(line.split())
    assert cell_width(pieces[0]) <= width
    assert all(cell_width(piece) <= width - 4 for piece in pieces[1:])


def hit(snippet: str) -> SearchAnswer:
    found = Hit("memory/a.md", 1, 3, 0.5, snippet, "memory", "memory/a.md#L1-L3", "keyword")
    return SearchAnswer("guest wifi", "keyword", (found,), IndexState(1, 1, 0, stale=False))


def test_lines_continue_below_the_text_of_their_list_item():
    answer = hit("- the guest wifi is heron-guest and\n  1. its password is on the card on the fridge")
    assert list(search_lines(answer, width=30))[1:] == [
        "  - the guest wifi is",
        "    heron-guest and",
        "    1. its password is on the",
        "       card on the fridge",
    ]
    assert list(search_lines(answer))[1:] == [
        "  - the guest wifi is heron-guest and",
        "    1. its password is on the card on the fridge",
    ]


def test_a_word_that_is_split_by_the_edge_is_marked_on_both_sides():
    answer = hit("wifi" * 10 + " x")
    lines = list(search_lines(answer, marked=lambda text: f"<{text}>", width=24))
    assert not any("<" in line for line in lines)  # it is another word
    answer = hit("the guest-wifi-" + "a" * 30)
    assert any("<" in line for line in search_lines(answer, marked=lambda text: f"<{text}>", width=24))


def test_short_prints_the_line_that_matches_best(notewell, indexed):
    done = notewell("search", "guest", "network", "--short", "-n", 2, "-w", indexed)
    lines = done.out.splitlines()
    assert len(lines) == len(notewell("search", "guest", "network", "-n", 2, "-w", indexed, "--json").document["hits"])
    assert re.match(r"memory/network\.md#L\S+  0\.\d\d  The guest network is VLAN 30, its name", lines[0])


def test_short_shows_what_matches_of_a_long_line():
    (line,) = search_lines(hit("word " * 60 + "guest wifi " + "word " * 60), short=True, width=80)
    assert "guest wifi" in line
    assert cell_width(line) <= 80


@pytest.mark.parametrize(("width", "rows"), [(30, 3), (50, 2), (60, 2), (80, 1), (120, 1)])
def test_short_is_one_line_and_where_the_citation_is_long_one_row_more(width, rows):
    citation = "memory/packages/a-very-long-name/readme.md#L1-L9"
    found = replace(hit("guest wifi " * 20).hits[0], citation=citation)
    (line,) = search_lines(replace(hit(""), hits=(found,)), short=True, width=width)
    assert (rows - 1) * width < cell_width(line) <= rows * width
    assert "guest" in line


def test_runs_of_blank_lines_are_shown_as_one_and_tabs_keep_their_width():
    answer = hit("the\n\n \n\n\nend\n\tif wifi {")
    assert list(search_lines(answer, width=40))[1:] == ["  the", "", "  end", "    if wifi {"]


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.slow
def test_notes_do_not_control_the_terminal(tmp_path: Path):
    (tmp_path / "memory").mkdir()
    hostile = "wifi \x1b]0;title\x07 \x1b[8mhidden\x1b[0m \x9b2J heron\rgone"
    (tmp_path / "memory" / "a.md").write_text(f"# A\n\n{hostile}\n")
    env = {**os.environ, "NOTEWELL_PROVIDER": "none", "NOTEWELL_CONFIG": os.devnull}
    for words in (["search", "wifi"], ["get", "memory/a.md"], ["forget", "--match", "wifi", "--dry-run"]):
        command = [sys.executable, "-m", "notewell", *words, "-w", str(tmp_path)]
        shown = on_terminal(command, env)
        assert not re.search(r"\x1b(?!\[(0|1|2|31)m)|[\x07\x9b]|\r(?!\n)", shown)
        assert "\\x1b]0;title\\x07" in shown
    command = [*command[:3], "get", "memory/a.md", "-w", str(tmp_path)]
    piped = subprocess.run(command, capture_output=True, env=env, check=True)
    assert "\x1b]0;title\x07" in piped.stdout.decode()  # for programs it is as it is


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.slow
@pytest.mark.parametrize(("environ", "styled"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_matches_are_marked_on_a_terminal_only(indexed: Path, environ: dict[str, str], styled: bool):
    command = [sys.executable, "-m", "notewell", "search", "guest", "network", "-n", "1", "-w", str(indexed)]
    env = {**os.environ, "NOTEWELL_PROVIDER": "none", "NOTEWELL_CONFIG": os.devnull, "COLUMNS": "40", **environ}
    piped = subprocess.run(command, capture_output=True, env=env, check=True).stdout.decode()
    assert "\x1b" not in piped
    shown = on_terminal(command, env)
    assert (set(MARK.findall(shown)) >= {"guest", "network", "Guest"}) is styled
    plain = re.sub(r"\x1b\[\d*m", "", shown)
    assert max(map(len, plain.splitlines())) <= 60  # of a note on stderr; the text itself is at most 40 wide
    assert "\r\n  192.168.10.7 and jams on thick paper.\r\n" in plain


def on_terminal(command: list[str], env: dict[str, str]) -> str:
    import pty

    main, other = pty.openpty()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=other, stderr=other, env=env)
    os.close(other)
    shown = b""
    try:
        while chunk := os.read(main, 4096):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    assert process.wait() == 0
    return shown.decode()
