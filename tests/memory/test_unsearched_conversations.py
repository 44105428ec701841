"""Conversations that are there and not searched are offered, and never read before somebody asks for it."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import pytest

from notewell import Memory
from notewell.cli.main import run
from notewell.sessions import import_lines, merge

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


OFFER = "12 conversations of OpenClaw are not searched: run `notewell sessions enable ~/.openclaw/agents/main/sessions`"


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
        assert note == OFFER


def test_an_agent_is_offered_its_own(home, workspace):
    with Memory.open(workspace, agent="work", provider="hashing") as memory:
        (note,) = memory.index().notes
        assert note.startswith("1 conversation of OpenClaw is not searched: run `notewell sessions enable ")
        assert note.endswith(" ~/.openclaw/agents/work/sessions`")
    with Memory.open(workspace, agent="third", provider="hashing") as memory:
        (note,) = memory.index().notes
        assert note.startswith(
            "13 conversations of OpenClaw are not searched: run `notewell sessions enable ~/.openclaw/"
        )


def test_they_are_found_where_openclaw_was_told_to_keep_them(home, workspace, monkeypatch, tmp_path):
    folder = tmp_path / "state" / "sessions" / "groups"
    folder.mkdir(parents=True)
    (folder / "120363@g.us.json5").write_text("{}")
    (folder.parent / "registry.json5").write_text("{}")
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "state"))
    with Memory.open(workspace, provider="hashing") as memory:
        (note,) = memory.index().notes
        assert note == f"1 conversation of OpenClaw is not searched: run `notewell sessions enable {folder.parent}`"


def test_the_offer_can_be_declined(home, workspace):
    with Memory.open(workspace, provider="hashing", sessions__offer=False) as memory:
        assert memory.index().notes == ()
        assert memory.status().notes == ()


def test_conversations_of_the_agent_itself_are_not_left_out_in_silence(workspace):
    told = "1 conversation of this agent is not searched: run `notewell sessions enable`"
    with Memory.open(workspace, provider="hashing") as memory:
        memory.conversations.create("chat")
        memory.conversations.append("chat", {"role": "user", "content": "quuxown"})
        assert memory.index().notes == (told,)
        assert told in memory.search("quuxown").notes
        assert told in memory.search("printer").notes, "every answer says so, also one with hits"
        assert told not in memory.search("printer", chat="group").notes
        assert told in memory.status().notes
    with Memory.open(workspace, provider="hashing", sources=["memory", "sessions"]) as memory:
        assert memory.index().notes == ()
        assert memory.search("quuxown").hits


def test_paths_without_the_source_are_told(workspace, tmp_path):
    with Memory.open(workspace, provider="hashing", sources=["memory"], sessions__paths=[str(tmp_path)]) as memory:
        told = "sessions.paths has no effect while `sources` leaves out conversations: run `notewell sessions enable`"
        assert memory.index().notes == (told,)
        assert told in memory.search("quuxown").notes


# --- other programs ------------------------------------------------------------------------------

CLAUDE = (
    '{{"type":"user","sessionId":"{id}","uuid":"u1","timestamp":"2026-03-04T10:00:01Z",'
    '"message":{{"role":"user","content":"{text}"}}}}\n'
)
SESSION = "5f1c2d3e-0000-4000-8000-000000000001"


@pytest.fixture
def programs(tmp_path, workspace, monkeypatch) -> Path:
    """Claude Code's conversations of this project and of another one, and two of Codex."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / ".codex"))
    projects = tmp_path / ".claude" / "projects"
    for name in (re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(workspace)), "-elsewhere"):
        (projects / name).mkdir(parents=True)
        (projects / name / f"{SESSION}.jsonl").write_text(CLAUDE.format(id=SESSION, text=f"quux{name[-9:]}"))
    days = tmp_path / ".codex" / "sessions" / "2026" / "03" / "04"
    days.mkdir(parents=True)
    for number in (1, 2):
        (days / f"rollout-2026-03-04T10-00-00-{number:08}-0000-4000-8000-000000000001.jsonl").write_text(RECORD)
    return tmp_path


def test_those_of_claude_code_and_codex_are_offered(programs, workspace):
    own = re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(workspace))
    with Memory.open(workspace, provider="hashing") as memory:
        assert memory.index().notes == (
            f"1 conversation of Claude Code is not searched: run `notewell sessions enable ~/.claude/projects/{own}`",
            "2 conversations of Codex are not searched: run `notewell sessions enable ~/.codex/sessions`",
        )
    other = programs / "other"
    other.mkdir()
    with Memory.open(other, provider="hashing") as memory:
        assert "2 conversations of Claude Code are not searched: run `notewell sessions enable ~/.claude/projects`" in (
            memory.index().notes
        )


@pytest.fixture
def config(tmp_path, monkeypatch) -> Path:
    file = tmp_path / "config.toml"
    file.write_text('# mine\nprovider = "hashing"\n\n[query]\nmax_results = 7\n')
    monkeypatch.setenv("NOTEWELL_CONFIG", str(file))
    return file


def test_the_command_that_is_named_makes_them_searchable(programs, config, workspace, capsys):
    folder = programs / ".claude" / "projects" / "-elsewhere"
    assert run(["sessions", "enable", str(folder), "-w", str(workspace)]) == 0
    told = capsys.readouterr().out
    assert 'sources = ["memory", "sessions"]' in told
    assert "next:\n  notewell index" in told
    text = config.read_text()
    assert text.startswith(
        'sessions.paths = ["~/.claude/projects/-elsewhere"]\nsources = ["memory", "sessions"]\n# mine\n'
    )
    assert run(["sessions", "enable", "-w", str(workspace), "--json"]) == 0
    assert config.read_text() == text
    capsys.readouterr()
    assert run(["search", "quuxelsewhere", "-w", str(workspace), "--json"]) == 0
    (hit, *_) = json.loads(capsys.readouterr().out)["hits"]
    assert hit["source"] == "sessions"
    assert run(["search", "quuxelsewhere", "-w", str(workspace)]) == 0
    heading = capsys.readouterr().out.split("\n", 1)[0]
    with Memory.open(workspace) as memory:
        assert heading.endswith(f", {memory.search('quuxelsewhere').hits[0].dated}")
    assert run(["sessions", "list", "-w", str(workspace)]) == 0
    assert "`notewell list --source sessions` lists the conversations of other programs" in capsys.readouterr().err
    assert run(["sessions", "enable", str(programs / "nowhere"), "-w", str(workspace)]) == 1
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", {"sources": ["memory", "sessions"]}, id="an empty file"),
        pytest.param('sources = ["memory"]\n', {"sources": ["memory", "sessions"]}, id="sources that are set"),
        pytest.param(
            '[defaults]\nprovider = "none"\n',
            {"defaults": {"provider": "none", "sources": ["memory", "sessions"]}},
            id="a table of defaults",
        ),
    ],
)
def test_only_that_setting_changes(config, workspace, before, after):
    config.write_text(before)
    assert run(["sessions", "enable", "-w", str(workspace)]) == 0
    assert tomllib.loads(config.read_text()) == after


@pytest.mark.parametrize("before", ["sources = [\n", 'sources = "memory"\n'])
def test_a_file_that_cannot_be_changed_safely_stays(config, workspace, before, capsys):
    config.write_text(before)
    assert run(["sessions", "enable", "-w", str(workspace)]) == 1
    assert config.read_text() == before
    assert capsys.readouterr().err


def imported(workspace: Path, *words: object) -> int:
    return run(["sessions", "import", *map(str, words), "-w", str(workspace)])


def test_what_is_imported_is_found_at_once(programs, config, workspace, capsys):
    folder = programs / ".claude" / "projects" / "-elsewhere"
    assert imported(workspace, folder) == 0
    assert "conversations are searched from now on" in capsys.readouterr().err
    assert run(["search", "quuxelsewhere", "-w", str(workspace), "--json"]) == 0
    (hit, *_) = json.loads(capsys.readouterr().out)["hits"]
    assert hit["path"] == f"sessions/chats/{SESSION}.json5"


def test_who_declines_keeps_them_and_is_told_with_every_answer(programs, config, workspace, capsys):
    before = config.read_text()
    assert imported(workspace, programs / ".claude" / "projects" / "-elsewhere", "--no-search") == 0
    assert config.read_text() == before
    assert run(["search", "printer", "-w", str(workspace)]) == 0
    assert "1 conversation of this agent is not searched: run `notewell sessions enable`" in capsys.readouterr().err


def test_who_has_set_the_sources_is_not_overruled(programs, config, workspace, capsys):
    config.write_text('sources = ["memory"]\n')
    assert imported(workspace, programs / ".claude" / "projects" / "-elsewhere") == 0
    assert config.read_text() == 'sources = ["memory"]\n'
    assert "kept, but not searched: run `notewell sessions enable`" in capsys.readouterr().err


def test_a_captured_session_is_found_at_once(programs, config, workspace, capsys, tmp_path):
    transcript = programs / ".claude" / "projects" / "-elsewhere" / f"{SESSION}.jsonl"
    event = {"session_id": SESSION, "transcript_path": str(transcript), "cwd": str(workspace)}
    (tmp_path / "event.json").write_text(json.dumps(event))
    assert run(["hook", "session-end", "--event", str(tmp_path / "event.json")]) == 0
    capsys.readouterr()
    assert run(["search", "quuxelsewhere", "-w", str(workspace), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"]


@pytest.mark.parametrize("program", ["claude", "codex"])
def test_one_that_is_imported_and_watched_is_one_conversation(programs, workspace, program):
    folder = programs / (".claude/projects/-elsewhere" if program == "claude" else ".codex/sessions")
    file = min(folder.rglob("*.jsonl"))
    file.write_text(RECORD.replace("quuxclaw", "quuxboth"))
    options = {"provider": "hashing", "sources": ["memory", "sessions"], "sessions__paths": [str(folder)]}
    with Memory.open(workspace, **options) as memory:
        session_id = SESSION if program == "claude" else "00000001-0000-4000-8000-000000000001"
        with file.open() as lines:
            merge(memory.conversations, import_lines(lines, session_id=session_id).session)
        stored = memory.conversations.path_of(session_id)
        os.utime(file, (1_780_000_000, 1_780_000_000))
        memory.index()
        assert [hit.path for hit in memory.search("quuxboth", limit=20).hits] == [f"sessions/chats/{stored.name}"]
        file.write_text(file.read_text() + RECORD.replace("quuxclaw", "quuxlater"))  # the conversation goes on
        memory.index()
        (hit,) = memory.search("quuxboth", limit=20).hits
        assert hit.path.startswith("sessions/@")
        assert memory.search("quuxlater").hits
        assert len([path for path in memory.files("sessions") if session_id in path]) == 1
        file.unlink()  # the other program tidies up
        memory.index()
        assert [hit.path for hit in memory.search("quuxboth", limit=20).hits] == [f"sessions/chats/{stored.name}"]
