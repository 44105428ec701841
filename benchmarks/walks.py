"""Counts the frames between a public call and the work it causes; started by `benchmarks.house`, prints JSON.

It imports nothing but the package that its path leads to, so that it can measure another checkout.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import notewell
from notewell import Memory

PACKAGE = str(Path(notewell.__file__).parent)
NOTE = "# Network\n\nThe guest network is VLAN 30, its name is heron-guest.\n"
SESSIONS = {"sources": ["memory", "sessions"], "experimental__session_memory": True}
SEARCHERS = {"search.searcher.find", "search.searcher.search", "search.searcher.Searcher.search"}
WAIT_S = 30  # for a thread to do its work; it takes milliseconds


def is_ours(code: CodeType) -> bool:
    """Tell whether code belongs to the package."""
    return code.co_filename.startswith(PACKAGE)


def named(code: CodeType) -> str:
    """Return a frame as people read it: module and function."""
    module = Path(code.co_filename).relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
    return f"{module}.{code.co_qualname}"


def stack(frame: FrameType | None, until: Callable[[str], bool] = lambda _: False) -> list[str]:
    """Return the package's frames from the outermost, or the innermost for which `until` holds, to this one."""
    frames = []
    while frame is not None:
        if is_ours(frame.f_code):
            frames.append(named(frame.f_code))
            if until(frames[-1]):
                break
        frame = frame.f_back
    return frames[::-1]


@contextmanager
def watching(seen: Callable[[FrameType], None]) -> Iterator[None]:
    """Call `seen` for every call of a Python function, in every thread that starts meanwhile."""

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen(frame)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def shortest(walks: list[list[str]], what: str) -> list[str]:
    """Return the shortest of several walks to the same work."""
    if not walks:
        raise SystemExit(f"nothing led to {what}")
    return min(walks, key=len)


def walk_of_a_note(folder: Path) -> tuple[list[str], list[str]]:
    """From Memory.index to the store's put_document; also every module that is entered on the way."""
    walks: list[list[str]] = []
    entered: set[str] = set()

    def seen(frame: FrameType) -> None:
        if not is_ours(frame.f_code):
            return
        if not walks:
            entered.add(Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix())
        if frame.f_code.co_name == "put_document":
            walks.append(stack(frame, lambda name: name.endswith("Memory.index")))

    with Memory.open(folder, provider="hashing") as memory, watching(seen):
        memory.index()
    return shortest(walks, "put_document"), sorted(entered)


def walk_of_a_question(folder: Path) -> list[str]:
    """From Memory.search to the searcher."""
    walks: list[list[str]] = []

    def seen(frame: FrameType) -> None:
        if is_ours(frame.f_code) and named(frame.f_code) in SEARCHERS:
            walks.append(stack(frame, lambda name: name.endswith("Memory.search")))

    with Memory.open(folder, provider="hashing") as memory:
        memory.index()
        with watching(seen):
            memory.search("guest network")
    return shortest(walks, "the searcher")


def walk_of_a_message(folder: Path) -> list[str]:
    """From the append of a message, or the thread it wakes, to the store's append_document."""
    walks: list[list[str]] = []

    def seen(frame: FrameType) -> None:
        if is_ours(frame.f_code) and frame.f_code.co_name == "append_document":
            walks.append(stack(frame))

    sync = {"sync__sessions__debounce_ms": 0, "sync__sessions__delta_messages": 1}
    with Memory.open(folder, provider="hashing", **SESSIONS, **sync) as memory:
        session = memory.conversations.create().session_id
        said = [{"role": "user", "content": f"subject{number} about the harbour " * 9} for number in range(200)]
        memory.conversations.append(session, *said)
        settle(memory)
        memory.index()
        with watching(seen):
            memory.conversations.append(session, {"role": "user", "content": "subject200 about the harbour"})
            settle(memory)
    return shortest(walks, "append_document")


def settle(memory: Memory) -> None:
    """Wait until what was appended is indexed."""
    for thread in threading.enumerate():
        if thread.name.startswith("notewell"):
            thread.join(WAIT_S)
    memory.wait_until_synced(WAIT_S)


def walk_of_an_mcp_call(folder: Path) -> list[str]:
    """From the handler of a tool call to Memory.search; the thread that the handler waits for counts as one walk."""
    from mcp import Client
    from notewell.agents.tools import MemoryTools
    from notewell.mcp.server import MemoryServer

    handlers: list[list[str]] = []
    walks: list[list[str]] = []

    def seen(frame: FrameType) -> None:
        if frame.f_code.co_name in {"run_sync", "to_thread"} and (
            frames := stack(frame, lambda name: "call_tool" in name)
        ):
            handlers.append(frames)
        elif is_ours(frame.f_code) and frame.f_code.co_qualname == "Memory.search":
            walks.append((handlers[-1] if handlers else []) + stack(frame))

    async def talk(server: Any) -> None:
        async with Client(server.protocol) as client:
            await client.call_tool("memory_search", {"query": "guest network"})

    with Memory.open(folder, provider="hashing", sync__watch=False, sync__on_session_start=False) as memory:
        memory.index()
        with watching(seen):
            asyncio.run(asyncio.wait_for(talk(MemoryServer(MemoryTools(memory))), WAIT_S))
    return shortest(walks, "Memory.search")


def count_settings() -> int:
    """Return how many settings there are."""
    package = importlib.import_module("notewell.settings")
    for name in [
        "notewell.settings",
        *(each.name for each in pkgutil.iter_modules(package.__path__, "notewell.settings.")),
    ]:
        if options := getattr(importlib.import_module(name), "OPTIONS", None):
            return len(options)
    raise SystemExit("no module of notewell.settings lists the settings as OPTIONS")


def main() -> None:
    """Walk, each in a workspace of its own."""
    folder = Path(sys.argv[1])
    workspaces = [folder / name for name in ("note", "question", "message", "mcp")]
    for workspace in workspaces:
        (workspace / "memory").mkdir(parents=True)
        (workspace / "memory/network.md").write_text(NOTE, encoding="utf-8")
    note, entered = walk_of_a_note(workspaces[0])
    figures = {
        "a note (Memory.index to put_document)": note,
        "modules entered on a note's way": len(entered),
        "a question (Memory.search to the searcher)": walk_of_a_question(workspaces[1]),
        "a message (its append to append_document)": walk_of_a_message(workspaces[2]),
        "an MCP call (its handler to Memory.search)": walk_of_an_mcp_call(workspaces[3]),
        "settings": count_settings(),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
