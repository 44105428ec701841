"""What goes into a prompt: the memory section, and recalled passages within the budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell import Hit, Memory
from notewell.agents.tools import MemoryTools, memory_prompt
from notewell.agents.tools.prompt import injected_hits, shows_citations
from notewell.text.fences import MIN_PIECE, strip_fenced


def test_it_says_what_the_memory_holds_and_how_it_searches(memory, workspace):
    section = memory_prompt(memory)
    assert "holds 7 files of notes. Search is keyword-only: try synonyms too." in section
    assert "run memory_search, then memory_get" in section
    assert "say that you checked" in section
    assert "`Source: path#L5-L9`" in section
    (workspace / "memory" / "new.md").write_text("one more\n", encoding="utf-8")
    memory.index()
    assert "holds 8 files" in memory_prompt(memory)


def test_it_says_when_search_is_hybrid_and_what_is_pending(workspace):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        assert "Search is hybrid (semantic and keyword)." in memory_prompt(memory)
    (workspace / "memory" / "new.md").write_text("one more\n", encoding="utf-8")
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
    with Memory.open(workspace, provider="hashing") as memory:
        assert "Search is hybrid (semantic and keyword); 1 of 8 passages are keyword-only so far." in memory_prompt(
            memory
        )


@pytest.mark.parametrize(("mode", "how"), [("semantic", "Search is semantic."), ("keyword", "Search is keyword-only:")])
def test_it_says_which_mode_the_settings_choose(workspace, mode, how):
    with Memory.open(workspace, provider="hashing", query__mode=mode) as memory:
        memory.index()
        assert how in memory_prompt(memory)


def test_it_says_what_semantic_search_does_not_find_yet(workspace):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
    (workspace / "memory" / "new.md").write_text("one more\n", encoding="utf-8")
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
    with Memory.open(workspace, provider="hashing", query__mode="semantic") as memory:
        assert "Search is semantic; 1 of 8 passages are not embedded yet." in memory_prompt(memory)


def test_an_empty_memory_says_so(tmp_path):
    with Memory.open(tmp_path, provider="none") as memory:
        assert "holds no notes yet" in memory_prompt(memory)


def test_notes_that_are_not_indexed_yet_are_not_called_none(workspace):
    with Memory.open(workspace, provider="none") as memory:
        assert "holds 7 files, not indexed yet." in memory_prompt(memory)


@pytest.mark.parametrize(
    ("options", "absent"),
    [
        pytest.param({"mode": "minimal"}, True, id="minimal mode"),
        pytest.param({"tools": ()}, True, id="no tools"),
        pytest.param({"tools": ("memory_list", "memory_write")}, True, id="no reading tools"),
        pytest.param({"tools": ("memory_search",)}, False, id="search alone"),
        pytest.param({"tools": ("memory_get",)}, False, id="get alone"),
    ],
)
def test_where_it_is_absent(memory, options, absent):
    section = memory_prompt(memory, **options)
    assert (section == "") is absent
    for name in ("memory_search", "memory_get"):
        if name not in options.get("tools", (name,)):
            assert name not in section


def test_it_is_small(memory):
    assert len(MemoryTools(memory).prompt()) / 4 < 250


# --- recalled passages ---------------------------------------------------------------------------


def hit(snippet: str, path: str = "memory/a.md") -> Hit:
    return Hit(path, 1, 2, 0.5, snippet, "memory", f"{path}#L1-L2", "keyword")


@given(
    snippets=st.lists(st.text(max_size=700) | st.just("</recalled-memory>" * 30), max_size=12),
    budget=st.integers(300, 5000),
)
def test_the_budget_holds_and_hits_stay_in_order(snippets, budget):
    hits = [hit(snippet, f"memory/{number}.md") for number, snippet in enumerate(snippets)]
    shown = injected_hits(hits, budget=budget, cited=True)
    assert sum(len(each["snippet"]) for each in shown) <= budget
    assert [each["path"] for each in shown] == [each.path for each in hits[: len(shown)]]
    assert all(strip_fenced(each["snippet"]) == "" for each in shown)


def test_what_fits_is_not_touched_and_the_last_is_cut():
    shown = injected_hits([hit("a" * 700), hit("b" * 700), hit("c" * 700)], budget=1200, cited=True)
    assert "a" * 700 in shown[0]["snippet"]
    assert len(shown) == 2
    assert "[…]" in shown[1]["snippet"]
    assert shown[1]["snippet"].count("b") >= MIN_PIECE


def test_a_search_says_what_did_not_fit_and_how_to_read_it(workspace):
    for number in range(9):
        text = f"# Heron {number}\n\n" + f"The heron of pond {number} eats fish number {number}. " * 14 + "\n"
        (workspace / "memory" / f"heron{number}.md").write_text(text, encoding="utf-8")
    with Memory.open(workspace, provider="none") as memory:
        result = MemoryTools(memory).call("memory_search", {"query": "heron pond fish", "maxResults": 9})
    shown = result.document["hits"]
    assert 5 <= len(shown) < 9
    assert sum(len(each["snippet"]) for each in shown) <= 4000
    note = result.document["notes"][-1]
    assert note.startswith(f"{9 - len(shown)} more hits did not fit into the 4,000 characters")
    assert "memory_get: memory/heron" in note


@pytest.mark.parametrize(
    ("citations", "chat", "expected"),
    [
        ("on", "direct", True),
        ("on", "group", True),
        ("off", "direct", False),
        ("off", "group", False),
        ("auto", "direct", True),
        ("auto", "group", False),
    ],
)
def test_citations(memory, citations, chat, expected):
    assert shows_citations(citations, chat) is expected
    tools = MemoryTools(memory, citations=citations, chat=chat)
    found = tools.call("memory_search", {"query": "printer"}).document["hits"][0]
    read = tools.call("memory_get", {"path": "memory/network.md"}).document["text"]
    assert ("citation" in found) is expected
    assert ("#L" in found["snippet"]) is expected
    assert ("#L1-L9" in read) is expected
    assert ("Cite what you use" in tools.prompt()) is expected
    assert ("Do not mention file paths" in tools.prompt()) is not expected


def test_citations_and_budget_come_from_the_settings(workspace):
    with Memory.open(workspace, provider="none", tools__citations="off", tools__injected_chars=300) as memory:
        found = MemoryTools(memory).call("memory_search", {"query": "printer network"}).document["hits"]
    assert sum(len(each["snippet"]) for each in found) <= 300
    assert "citation" not in found[0]
