"""Conversations that are there and not searched are offered, and never read before somebody asks for it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from notewell import Memory
from notewell.cli.main import run

pytest.importorskip("pyjson5", reason="conversations need the extra `sessions`")

RECORD = '{"type":"message","timestamp":"2026-03-04T10:00:01Z","message":{"role":"user","content":"quuxclaw"}}\n'


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A home folder with twelve conversations of OpenClaw's agent main and one of another agent."""
    folder = tmp_path / "home"
    for agent, count in (("main", 12), ("work", 1)):
        sessions = folder / ".openclaw" / "agents" / agent / "sessions"
        sessions.mkdir(parents=True)
        (sessions / "sessions.json").write_text("{}")
        (sessions / "0.jsonl.lock").write_text("")
        for number in range(count):
            (sessions / f"{number}.jsonl").write_text(RECORD)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.delenv("OPENCLAW_STATE_DIR")
    return folder


OFFER = '12 conversations of OpenClaw are not searched: set sessions.paths = ["~/.openclaw/agents/main/sessions"]'


def test_they_are_offered_where_one_looks_for_them(home, workspace):
    with Memory.open(workspace, provider="hashing") as memory:
        assert OFFER in memory.index().notes
        assert OFFER in memory.status().notes
        assert OFFER in memory.search("quuxclaw").notes
        assert OFFER not in memory.search("printer").notes, "an answer with hits is not interrupted"
        assert OFFER not in memory.search("quuxclaw", chat="group").notes, "a group is told nothing of them"
        assert memory.index(source="memory").notes == ()


def test_the_command_offers_them(home, tmp_path, capsys):
    folder = tmp_path / "new"
    assert run(["init", str(folder)]) == 0
    assert f"note: {OFFER}\n" in capsys.readouterr().err
    assert run(["init", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == [OFFER]
    for command in (["index"], ["status"], ["search", "quuxclaw"]):
        assert run([*command, "-w", str(folder), "--set", "provider=hashing"]) == 0
        assert OFFER in "".join(capsys.readouterr())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs permissions that hold")
def test_what_cannot_be_listed_is_not_offered(home, workspace):
    (home / ".openclaw").chmod(0)
    try:
        with Memory.open(workspace, provider="hashing") as memory:
            assert memory.index().notes == ()
    finally:
        (home / ".openclaw").chmod(0o700)


def test_none_is_opened_before_it_is_asked_for(home, workspace):
    opened = []
    with Memory.open(workspace, provider="hashing") as memory:
        times = {file: file.stat().st_atime_ns for file in home.rglob("*") if file.is_file()}
        for file in times:
            os.utime(file, ns=(1, 1))  # a read within the same day sets the time of access, if this one is older
        memory.index()
        memory.search("quuxclaw")
        opened = [file for file in times if file.stat().st_atime_ns != 1]
    assert opened == []


def test_the_setting_that_is_named_includes_them(home, workspace):
    with Memory.open(workspace, provider="hashing", sessions__paths=["~/.openclaw/agents/main/sessions"]) as memory:
        report = memory.index()
        assert (report.notes, report.problems) == ((), ())
        assert {hit.path for hit in memory.search("quuxclaw", limit=20).hits} == {
            f"sessions/@main/{number}.jsonl" for number in range(12)
        }
        assert memory.status().sources == ("memory", "sessions")
        assert memory.status().notes == ()


def test_a_folder_above_them_is_enough_and_more_folders_are_added(home, workspace):
    with Memory.open(workspace, provider="hashing", sessions__paths=["~/.openclaw/agents"]) as memory:
        assert memory.index().notes == ()
    with Memory.open(workspace, provider="hashing", sessions__paths=["~/.openclaw/agents/work/sessions"]) as memory:
        (note,) = memory.index().notes
        assert note.endswith('not searched: add "~/.openclaw/agents/main/sessions" to sessions.paths')


def test_an_agent_is_offered_its_own(home, workspace):
    with Memory.open(workspace, agent="work", provider="hashing") as memory:
        (note,) = memory.index().notes
        assert (
            note
            == '1 conversation of OpenClaw is not searched: set sessions.paths = ["~/.openclaw/agents/work/sessions"]'
        )
    with Memory.open(workspace, agent="third", provider="hashing") as memory:
        (note,) = memory.index().notes
        assert note.startswith("13 conversations of OpenClaw are not searched: set sessions.paths = [")


def test_they_are_found_where_openclaw_was_told_to_keep_them(home, workspace, monkeypatch, tmp_path):
    folder = tmp_path / "state" / "sessions" / "groups"
    folder.mkdir(parents=True)
    (folder / "120363@g.us.json5").write_text("{}")
    (folder.parent / "registry.json5").write_text("{}")
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "state"))
    with Memory.open(workspace, provider="hashing") as memory:
        (note,) = memory.index().notes
        assert note == f'1 conversation of OpenClaw is not searched: set sessions.paths = ["{folder.parent}"]'


def test_the_offer_can_be_declined(home, workspace):
    with Memory.open(workspace, provider="hashing", sessions__offer=False) as memory:
        assert memory.index().notes == ()
        assert memory.status().notes == ()


def test_conversations_of_the_agent_itself_are_not_left_out_in_silence(workspace):
    told = '1 conversation of this agent is not searched: set sources = ["memory", "sessions"]'
    with Memory.open(workspace, provider="hashing") as memory:
        memory.conversations.create("chat")
        memory.conversations.append("chat", {"role": "user", "content": "quuxown"})
        assert memory.index().notes == (told,)
        assert told in memory.search("quuxown").notes
        assert told in memory.status().notes
    with Memory.open(workspace, provider="hashing", sources=["memory", "sessions"]) as memory:
        assert memory.index().notes == ()
        assert memory.search("quuxown").hits


def test_paths_without_the_source_are_told(workspace, tmp_path):
    with Memory.open(workspace, provider="hashing", sources=["memory"], sessions__paths=[str(tmp_path)]) as memory:
        told = (
            "sessions.paths has no effect while `sources` leaves out conversations: set "
            'sources = ["memory", "sessions"]'
        )
        assert memory.index().notes == (told,)
        assert told in memory.search("quuxown").notes
