"""What QMD prints, as recorded and as it must never be, becomes results and hits."""

from __future__ import annotations

import json

import pytest

from notewell.search.qmd_output import Result, hit_of, parse_results
from notewell.types import Document, FileStamp

RECORDED = """[
  {
    "docid": "#24731e",
    "score": 0.87,
    "file": "qmd://golden/MEMORY.md",
    "line": 16,
    "title": "Long-term memory",
    "snippet": "@@ -15,4 @@ (14 before, 0 after)\\n\\nMaria Chen runs the design team.\\nTomas handles paging.\\n"
  },
  {
    "docid": "#24731f",
    "score": 0,
    "file": "qmd://golden/memory/N\u00e4me #1 %20?.md",
    "line": 3,
    "title": "N",
    "context": "notes",
    "snippet": "@@ -2,1 @@ (1 before, 6 after)\\nx"
  }
]
"""
TWO = [
    Result("golden", "MEMORY.md", 0.87, 15, "\nMaria Chen runs the design team.\nTomas handles paging.\n"),
    Result("golden", "memory/Näme #1 %20?.md", 0.0, 2, "x"),
]


@pytest.mark.parametrize(
    "stdout",
    [
        pytest.param(RECORDED, id="as recorded"),
        pytest.param(f"Loading [1/2] model [] {{\n[warn]\n{RECORDED}done []\n", id="noise around it"),
        pytest.param(RECORDED.replace("[\n", "\x1b[1m[\x1b[0m\n", 1).replace("  {", "\x1b[36m  {"), id="ANSI codes"),
        pytest.param("\x1b]0;title [{\x07" + json.dumps(json.loads(RECORDED)), id="a title, on one line"),
        pytest.param(f'[]\n[{{"level": "info"}}]\n{RECORDED}', id="other lists before it"),
    ],
)
def test_results_are_found_in_noise(stdout):
    assert parse_results(stdout) == (TWO, True)


def test_no_results_is_an_answer():
    assert parse_results("loading\n[]\n") == ([], True)


@pytest.mark.parametrize(
    "stdout", ["", "No results found.", "qmd 2.8.3 (facd35e)", "[warn] {", "[" * 100_000, "[{" * 9000]
)
def test_no_list_is_none(stdout):
    assert parse_results(stdout) is None


def test_of_a_list_that_is_cut_off_the_results_before_the_cut_count():
    cuts = {len(parsed[0]): parsed[1] for at in range(len(RECORDED)) if (parsed := parse_results(RECORDED[:at]))}
    assert cuts[1] is False
    assert 0 not in cuts


@pytest.mark.parametrize("score", ["NaN", "Infinity", '"high"', "null", "-3", "true", f"1{'0' * 400}"])
def test_scores_are_from_0_to_1(score):
    text = f'[{{"file": "qmd://n/a.md", "score": {score}, "line": "x"}}]'
    parsed = parse_results(text)
    assert parsed is not None
    assert 0 <= parsed[0][0].score <= 1
    assert parsed[0][0].first_line == 1


def test_a_header_with_a_number_that_no_line_has_is_text():
    [result] = parse_results(json.dumps([{"file": "qmd://n/a.md", "snippet": f"@@ -{'9' * 5000},1 @@\nrouter"}]))[0]
    assert (result.first_line, result.text[:4]) == (1, "@@ -")


def note(text: str) -> Document:
    return Document(FileStamp("memory", "memory/a.md", 0, 0), text, "")


def hit(text: str, first_line: int, snippet: str, query: str = "router"):
    return hit_of(Result("n", "a.md", 0.5, first_line, snippet), note(text), query, found_by="keyword", explain=True)


@pytest.mark.parametrize(
    ("text", "first_line", "snippet", "citation", "shown"),
    [
        pytest.param(
            "# A\n\nrouter\nb\n", 2, "\nrouter\nb\n", "memory/a.md#L3-L4", "router\nb", id="blank lines trimmed"
        ),
        pytest.param("new\n# A\nrouter\n", 1, "# A\nrouter", "memory/a.md#L2-L3", "# A\nrouter", id="moved down"),
        pytest.param("router\n", 9, "router", "memory/a.md#L1", "router", id="moved up"),
        pytest.param("a\nb\na\nb\n", 3, "a\nb", "memory/a.md#L3-L4", "a\nb", id="the same text twice"),
        pytest.param("x\ny\n", 1, "\ufeffx\r\ny\r\n", "memory/a.md#L1-L2", "x\ny", id="byte order mark and CRLF"),
        pytest.param("a router\nb", 1, "outer\nb", "memory/a.md#L1-L2", "a router\nb", id="begins within a line"),
        pytest.param(
            "router " * 60, 1, ("router " * 60)[:297] + "...", "memory/a.md#L1", "router " * 60, id="shortened"
        ),
    ],
)
def test_a_hit_cites_the_note_as_it_is_now(text, first_line, snippet, citation, shown):
    found = hit(text, first_line, snippet)
    assert (found.citation, found.snippet, found.score, found.found_by) == (citation, shown, 0.5, "keyword")
    assert found.explanation == {"qmd": 0.5}


def test_a_snippet_is_at_most_as_long_as_every_other():
    line = "word " * 400 + "router" + " word" * 400
    found = hit(line, 1, line[:297] + "...")
    assert "router" in found.snippet
    assert len(found.snippet) <= 700


@pytest.mark.parametrize("snippet", ["switch", ""])
def test_what_is_no_longer_in_the_note_is_no_hit(snippet):
    assert hit("\n\nrouter\n", 1, snippet) is None
