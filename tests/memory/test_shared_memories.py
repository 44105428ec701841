"""One open memory for each agent, workspace and settings; closed cleanly, and never shared across a fork."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from notewell import Settings, close_shared_memories, shared_memory


@pytest.fixture(autouse=True)
def closed_afterwards():
    yield
    close_shared_memories()


def test_the_same_names_give_the_same_memory(workspace, tmp_path):
    first = shared_memory(workspace, provider="hashing")
    (tmp_path / "link").symlink_to(workspace)
    assert shared_memory(str(workspace), provider="hashing") is first
    assert shared_memory(tmp_path / "link", provider="hashing") is first


def test_another_agent_or_setting_gives_another_memory(workspace):
    memories = {
        shared_memory(workspace, provider="hashing"),
        shared_memory(workspace, provider="hashing", agent="other"),
        shared_memory(workspace, provider="none"),
        shared_memory(workspace, provider="hashing", query__max_results=3),
        shared_memory(workspace, provider="hashing", chat="group"),
        shared_memory(workspace, provider="hashing", chat="group", session="one"),
    }
    assert len(memories) == 6
    assert shared_memory(workspace, settings=Settings(provider="hashing")) in memories  # the same, said otherwise


def test_many_threads_that_ask_at_once_get_one(workspace):
    with ThreadPoolExecutor(16) as pool:
        memories = set(pool.map(lambda _: shared_memory(workspace, provider="hashing"), range(64)))
    assert len(memories) == 1


def test_after_closing_a_new_one_is_opened(workspace):
    first = shared_memory(workspace, provider="hashing")
    first.index()
    close_shared_memories()
    second = shared_memory(workspace, provider="hashing")
    assert second is not first
    assert second.search("guest network name").hits[0].path == "memory/network.md"


def test_one_that_a_caller_closed_goes_on(workspace):
    with shared_memory(workspace, provider="hashing") as memory:
        memory.index()
    assert memory.search("guest network name").hits


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_opens_its_own_and_the_parent_goes_on(workspace):
    memory = shared_memory(workspace, provider="hashing")
    memory.index()
    child = os.fork()
    if child == 0:
        own = shared_memory(workspace, provider="hashing")
        found = own.search("guest network name").hits
        (workspace / "memory/child.md").write_text("# Child\n\nWritten by the child.\n", encoding="utf-8")
        added = own.index().added
        close_shared_memories()
        os._exit(0 if own is not memory and found and added == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert memory.search("written by the child").hits[0].path == "memory/child.md"
    assert memory.verify().equal
