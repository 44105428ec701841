"""`remember`: written with its provenance, found at once, not twice, private where it must be, on every surface."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pytest

from notewell import AsyncMemory, Memory, PathRefusedError
from notewell.cli.main import run
from notewell.embedding.hashing import HashingEmbedder
from notewell.memory.remember import remember

FACT = "The ferry to Almada leaves from pier four"


@pytest.fixture
def memory(workspace):
    with Memory.open(workspace, provider="none") as opened:
        yield opened


def test_it_is_written_and_found_at_once(memory, workspace):
    done = memory.remember(FACT)
    assert done.written
    assert done.path == f"memory/{datetime.now().astimezone().date().isoformat()}.md"
    text = (workspace / done.path).read_text()
    assert text.split("\n")[done.first_line - 1] == FACT
    assert "by main, from the library._" in text
    (hit, *_) = memory.search("ferry Almada", sync=False).hits
    assert hit.path == done.path


def test_with_vectors_it_is_a_hybrid_hit(workspace):
    with Memory.open(workspace, embedder=HashingEmbedder()) as memory:
        memory.remember(FACT, to="memory/boats.md", who="Dana", source="a letter")
        (hit, *_) = memory.search("ferry Almada", sync=False).hits
        assert hit.found_by == "hybrid"
        assert hit.path == "memory/boats.md"
    assert "by Dana, from a letter._" in (workspace / "memory/boats.md").read_text()


def test_what_is_known_is_pointed_out_and_not_written_twice(memory, workspace):
    before = {path: path.read_bytes() for path in workspace.rglob("*.md")}
    done = memory.remember("the guest network is VLAN 30, its name is heron-guest")
    assert not done.written
    assert done.citation == "memory/network.md#L5"
    assert done.known[0].same
    assert {path: path.read_bytes() for path in workspace.rglob("*.md")} == before
    assert memory.remember("the guest network is VLAN 30, its name is heron-guest", force=True).written


def test_what_is_only_similar_is_written_and_pointed_out(memory):
    done = memory.remember("The guest network is VLAN 31, its name is heron-guest.")
    assert done.written
    assert [known.same for known in done.known] == [False]
    assert done.known[0].citation == "memory/network.md#L5"


def test_the_day_is_that_of_the_user_s_zone(memory):
    late = datetime(2026, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    done = remember(memory._components, FACT, to=None, who="main", source="test", now=late)
    assert done.path == "memory/2026-03-01.md"


def test_a_search_that_cannot_index_does_not_undo_the_note(workspace, monkeypatch):
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
        (current,) = memory._components.folder.path.glob("index-*.sqlite")
    for side in ("-wal", "-shm"):
        current.with_name(current.name + side).unlink(missing_ok=True)
    current.write_bytes(b"damaged " * 500)
    with Memory.open(workspace, provider="none") as memory:
        assert memory.remember(FACT).written
        assert memory.search("ferry").hits


@pytest.mark.slow
def test_processes_at_once_write_it_once(workspace):
    script = (
        "import sys; from notewell import Memory\n"
        "with Memory.open(sys.argv[1], provider='none') as m: print(m.remember(sys.argv[2]).written)"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script, str(workspace), FACT], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = sorted(process.communicate(timeout=120)[0].strip() for process in started)
    assert answers == ["False", "False", "True"]


def test_a_group_neither_writes_nor_learns_private_notes(memory, workspace):
    for path in ("MEMORY.md", "memory/private/x.md"):
        with pytest.raises(PathRefusedError):
            memory.remember(FACT, to=path, chat="group")
    assert not (workspace / "memory/private/x.md").exists()
    done = memory.remember("Owner: Dana Whitfield, lives in Lisbon.", chat="group")
    assert done.written
    assert done.known == ()


def test_the_command(workspace, capsys):
    assert run(["remember", FACT, "--to", "memory/boats.md", "-w", str(workspace), "--set", "provider=none"]) == 0
    assert capsys.readouterr().out.startswith("memory/boats.md#L3-L5  written")
    assert run(["remember", FACT, "-w", str(workspace), "--set", "provider=none", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["written"] is False
    assert answer["citation"] == "memory/boats.md#L3"


def test_the_command_reads_standard_input(workspace, capsys, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("line one\nline two\n"))
    assert run(["remember", "-", "--to", "memory/in.md", "-w", str(workspace), "--set", "provider=none"]) == 0
    assert "line one\nline two\n" in (workspace / "memory/in.md").read_text()


def test_the_same_for_code_in_an_event_loop(workspace):
    async def both():
        async with await AsyncMemory.open(workspace, provider="none") as memory:
            done = await memory.remember(FACT)
            return done, await memory.forget(match="pier four")

    done, report = asyncio.run(both())
    assert done.written
    assert [each.path for each in report.forgotten] == [done.path]
