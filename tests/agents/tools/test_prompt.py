"""The section for the system prompt: what the memory really is, and absent where it would be of no use."""

from __future__ import annotations

import pytest

from notewell import Memory
from notewell.agents.tools import MemoryTools, memory_prompt


def test_it_says_what_the_memory_holds_and_how_it_searches(memory, workspace):
    section = memory_prompt(memory)
    assert "holds 7 files of notes, searched by words only" in section
    assert "run memory_search, then memory_get" in section
    assert "say that you checked" in section
    assert "`Source: path#L5-L9`" in section
    (workspace / "memory" / "new.md").write_text("one more\n", encoding="utf-8")
    memory.index()
    assert "holds 8 files" in memory_prompt(memory)


def test_it_says_when_meaning_is_searched_and_what_is_pending(workspace):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        assert "searched by meaning and words." in memory_prompt(memory)
    (workspace / "memory" / "new.md").write_text("one more\n", encoding="utf-8")
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
    with Memory.open(workspace, provider="hashing") as memory:
        assert "by meaning and words (1 of 8 passages by words only as yet)" in memory_prompt(memory)


@pytest.mark.parametrize(
    ("mode", "how"), [("semantic", "searched by meaning."), ("keyword", "searched by words only:")]
)
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
        assert "searched by meaning (1 of 8 passages not yet)." in memory_prompt(memory)


def test_an_empty_memory_says_so(tmp_path):
    with Memory.open(tmp_path, provider="none") as memory:
        assert "holds no notes yet" in memory_prompt(memory)


@pytest.mark.parametrize(
    ("options", "absent"),
    [
        pytest.param({"mode": "minimal"}, True, id="minimal mode"),
        pytest.param({"tools": ()}, True, id="no tools"),
        pytest.param({"tools": ("memory_status", "memory_append")}, True, id="no reading tools"),
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
    assert len(MemoryTools(memory, append=True).prompt()) / 4 < 250
