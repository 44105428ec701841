"""What a client sees of the background sync: instructions and progress from the live state."""

from __future__ import annotations

import asyncio
import threading

import pytest

from mcp import Client
from notewell import Memory
from notewell.agents.tools import MemoryTools
from notewell.embedding.hashing import HashingEmbedder
from notewell.mcp.server import MemoryServer

BATCH_WAIT_S = 20  # never reached: the test opens the gate


class GatedEmbedder(HashingEmbedder):
    """Embeds a batch, then waits at a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0
        self.gate = threading.Event()

    def embed_documents(self, texts):
        self.batches += 1
        if self.batches > 1:
            self.gate.wait(BATCH_WAIT_S)
        return super().embed_documents(texts)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_progress_while_indexing(tmp_path, mode):
    (tmp_path / "memory").mkdir()
    for number in range(150):
        text = f"# Note {number}\n\nThe heron of pond {number} eats fish {number}.\n"
        (tmp_path / "memory" / f"note{number}.md").write_text(text, encoding="utf-8")
    embedder = GatedEmbedder()
    steps: list[tuple[float, float | None, str | None]] = []

    async def seen(progress, total, message):
        steps.append((progress, total, message))
        if total:
            embedder.gate.set()

    async def talk(server):
        async with Client(server.protocol, mode=mode) as client:
            await client.list_tools()  # with the first request the server begins to index
            found = await client.call_tool("memory_search", {"query": "heron pond 149"}, progress_callback=seen)
            await asyncio.to_thread(memory.wait_until_synced, 60)
            done = await client.call_tool("memory_search", {"query": "heron pond 149"})
            return found, done

    with Memory.open(tmp_path, embedder=embedder, sync__watch=False, sync__search_budget_ms=20_000) as memory:
        found, done = asyncio.run(asyncio.wait_for(talk(MemoryServer(MemoryTools(memory))), 120))
    embedder.gate.set()
    assert not found.is_error
    assert steps
    for progress, total, message in steps:
        if total is None:
            assert message == "indexing started"
        else:
            assert 0 <= progress <= total <= 150
            assert f"of {total:,.0f} chunks embedded" in message
    assert [step[0] for step in steps] == sorted({step[0] for step in steps})
    assert done.structured_content["index"]["pending"] == 0


def test_the_instructions_follow_the_state(workspace):
    async def instructions(server):
        async with Client(server.protocol) as client:
            return client.instructions

    with Memory.open(workspace, provider="hashing", sync__watch=False, sync__on_session_start=False) as memory:
        server = MemoryServer(MemoryTools(memory))
        assert "not indexed yet" in asyncio.run(instructions(server))
        memory.index()
        assert "holds 7 files of notes. Search is hybrid (semantic and keyword)." in asyncio.run(instructions(server))


def test_an_index_that_cannot_be_used_is_told_in_the_instructions(workspace):
    import apsw

    with Memory.open(workspace, provider="none") as memory:
        memory.index()
        database = apsw.Connection(str(memory._components.folder.current()))
        database.execute("PRAGMA user_version = 999")
        database.close()
    with Memory.open(workspace, provider="none", sync__watch=False) as memory:
        told = MemoryServer(MemoryTools(memory)).instructions()
    assert "cannot be used at the moment" in told
    assert "upgrade notewell" in told
