"""Whatever is given to a call of OpenClaw's interface, its error is one of notewell's."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

import notewell.openclaw
from notewell import Memory, NotewellError, QueryError
from notewell.errors import BadVectorError
from notewell.openclaw import FallbackMemoryManager, MemoryIndexManager, chunk_markdown

BAD = (
    None, "", 7, -1, True, b"x", [], ["a", None], [7], 1.5, object(), "a\0b", "\ud800", "../../etc/passwd", "[" * 10**5,
)  # fmt: skip
FUNCTIONS = [name for name in notewell.openclaw.__all__ if inspect.isfunction(getattr(notewell.openclaw, name))]
METHODS = ["search", "read_file", "sync"]


def given_to(call: Callable[..., object], bad: dict[str, object]) -> dict[str, object]:
    """Return arguments for a call: good ones where it needs them, and the bad one."""
    good = {
        "workspace_dir": ".", "abs_path": "MEMORY.md", "content": "a", "chunk": chunk_markdown("a")[0], "raw": "[1.0]",
        "a": [1.0], "b": [1.0], "rank": 1, "vector": [], "keyword": [], "tasks": [threading.active_count], "limit": 1,
    }  # fmt: skip
    needed = [each.name for each in inspect.signature(call).parameters.values() if each.default is each.empty]
    return {name: good.get(name, "memory/birds.md") for name in needed} | bad


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_bad_argument_of_a_function_is_an_error_of_ours_or_does_no_harm(workspace, monkeypatch, function):
    monkeypatch.chdir(workspace)
    call = getattr(notewell.openclaw, function)
    for parameter in inspect.signature(call).parameters:
        for value in BAD:
            with suppress(NotewellError):
                call(**given_to(call, {parameter: value}))
    notewell.close_shared_memories()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("behind_a_fallback", [False, True])
def test_every_bad_argument_of_a_manager_is_an_error_of_ours_or_does_no_harm(workspace, method, behind_a_fallback):
    primary, fallback = (MemoryIndexManager(Memory.open(workspace, provider="none")) for _ in range(2))
    manager = FallbackMemoryManager(primary, fallback) if behind_a_fallback else primary
    call = getattr(manager, method)
    for parameter in inspect.signature(call).parameters:
        for value in BAD:
            with suppress(NotewellError):
                call(**given_to(call, {parameter: value}))
    manager.sync()
    assert primary.memory.verify().equal
    manager.close()
    fallback.close()


@pytest.mark.parametrize(
    ("function", "arguments", "error", "message"),
    [
        ("hash_text", (None,), QueryError, "text must be text, got None"),
        ("merge_hybrid_results", ([], ["a"]), QueryError, "keyword must be a list, got ['a']"),
        ("list_memory_files", (7,), QueryError, "workspace_dir must be text or a path, got 7"),
        ("parse_embedding", (None,), BadVectorError, "raw must be text or bytes or bytearray or memoryview, got None"),
        ("cosine_similarity", (None, [1.0]), BadVectorError, "a vector is a list of numbers"),
    ],
)
def test_the_error_says_what_is_expected(function, arguments, error, message):
    with pytest.raises(error) as caught:
        getattr(notewell.openclaw, function)(*arguments)
    assert caught.value.message.startswith(message)


def test_a_list_that_can_be_gone_through_once_is_not_used_up(workspace):
    listed = notewell.openclaw.list_memory_files(workspace, (path for path in [workspace / "MEMORY.md"]))
    assert listed == notewell.openclaw.list_memory_files(workspace)


@pytest.mark.skipif(sys.platform != "linux", reason="names of other systems are text")
def test_a_folder_whose_name_is_no_text_is_listed(tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    (folder / "MEMORY.md").write_text("heron")
    [file] = notewell.openclaw.list_memory_files(folder)
    assert notewell.openclaw.build_file_entry(file, folder)["path"] == "MEMORY.md"
