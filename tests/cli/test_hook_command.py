"""`notewell hook` as real processes: what a session gets at its start, what is kept at its end, and no harm ever."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from notewell import Memory

pytest.importorskip("pyjson5", reason="needs the extra `sessions`")

SEARCHED = {"sources": ("memory", "sessions")}


def hook(name: str, event: object, *words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "notewell", "hook", name, "--set", "provider=none", *words],
        input=event if isinstance(event, str) else json.dumps(event),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        **options,
    )


def record(kind: str, number: int, content: object, **more: object) -> dict:
    message = {"role": kind, "content": content}
    stamp = f"2026-11-16T10:00:{number:02d}.000Z"
    return {"type": kind, "uuid": f"u{number}", "sessionId": "5f1c", "timestamp": stamp, "message": message, **more}


@pytest.fixture
def transcript(tmp_path):
    """A transcript as Claude Code writes it, with recalled memory in it."""
    recalled = '<recalled-memory origin="MEMORY.md#L1-L4">\nthe zeppelin flies on Tuesdays\n</recalled-memory>'
    lines = [
        {"type": "attachment", "uuid": "a0", "sessionId": "5f1c", "attachment": {"type": "hook", "content": recalled}},
        record("user", 1, f"{recalled}\nMy cat is called Pixel."),
        record("assistant", 2, [{"type": "text", "text": "A fine name for a cat."}]),
        record("assistant", 3, [{"type": "tool_use", "id": "t1", "name": "memory_search", "input": {"query": "cat"}}]),
        record("user", 4, [{"type": "tool_result", "tool_use_id": "t1", "content": recalled}]),
    ]
    file = tmp_path / "5f1c.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


@pytest.mark.slow
def test_a_session_starts_with_the_curated_memory_and_the_latest_notes(workspace):
    today = datetime.now().astimezone()
    for days, text in ((0, "met Rosa"), (1, "the boiler is mended"), (2, "too long ago")):
        note = workspace / "memory" / f"{(today - timedelta(days=days)).date()}.md"
        note.write_text(f"# day\n\n{text}\n", encoding="utf-8")
    done = hook("session-start", {"hook_event_name": "SessionStart", "source": "startup", "cwd": str(workspace)})
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert said["hookEventName"] == "SessionStart"
    context = said["additionalContext"]
    assert '<recalled-memory origin="MEMORY.md#L1-L4">' in context
    order = [context.index(text) for text in ("lives in Lisbon", "met Rosa", "the boiler is mended")]
    assert order == sorted(order)
    assert "too long ago" not in context


@pytest.mark.slow
def test_it_fits_into_the_budget_in_whole_lines(workspace):
    (workspace / "MEMORY.md").write_text("".join(f"- fact number {n}\n" for n in range(1000)), encoding="utf-8")
    done = hook("session-start", {"cwd": str(workspace)})
    context = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    fenced = context[context.index("<recalled-memory") :]
    assert 3500 < len(fenced) <= 4000
    last = fenced.splitlines()[-2]
    assert last.startswith("- fact number ")
    assert f'#L1-L{int(last.rsplit(" ", 1)[1]) + 1}"' in fenced


@pytest.mark.slow
def test_the_event_may_be_in_a_file(workspace, tmp_path):
    (tmp_path / "event.json").write_text(json.dumps({"cwd": str(workspace)}), encoding="utf-8")
    done = hook("session-start", "", "--event", str(tmp_path / "event.json"))
    assert "lives in Lisbon" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    done = hook("session-start", "", "--event", str(tmp_path / "gone.json"))
    assert (done.returncode, done.stdout) == (0, "")
    assert "gone.json" in done.stderr


@pytest.mark.slow
def test_a_resumed_session_has_it_already(workspace):
    done = hook("session-start", {"source": "resume", "cwd": str(workspace)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_a_finished_session_is_kept_and_found_without_what_was_recalled(workspace, transcript):
    done = hook(
        "session-end", {"session_id": "5f1c", "transcript_path": str(transcript), "cwd": str(workspace)}, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"sessionId": "5f1c", "added": 4, "known": 0}
    with Memory.open(workspace, provider="none", **SEARCHED) as memory:
        memory.index()
        assert [hit.path for hit in memory.search("cat called Pixel").hits] == ["sessions/chats/5f1c.json5"]
        assert memory.search("zeppelin").hits == ()
        assert memory.conversations.entry("5f1c").channel == "claude-code"


@pytest.mark.slow
def test_a_session_that_went_on_gets_only_what_is_new(workspace, transcript):
    event = {"session_id": "5f1c", "transcript_path": str(transcript), "cwd": str(workspace)}
    hook("session-end", event)
    with transcript.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record("user", 5, "And my dog is Voxel.")) + "\n")
    assert json.loads(hook("session-end", event, "--json").stdout) == {"sessionId": "5f1c", "added": 1, "known": 4}
    assert json.loads(hook("session-end", event, "--json").stdout)["added"] == 0
    with Memory.open(workspace, provider="none") as memory:
        said = [message.text for message in memory.conversations.get("5f1c").messages]
    assert len(said) == 5
    assert said[-1] == "And my dog is Voxel."


NOWHERE = Path.cwd().anchor


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "event", "words", "reason"),
    [
        pytest.param("session-start", "not json", [], "not valid JSON", id="no JSON"),
        pytest.param("session-start", "[1]", [], "not a JSON object", id="no object"),
        pytest.param("session-start", {}, ["-w", "/nowhere/at/all"], "there is no folder", id="a folder that is gone"),
        pytest.param("session-start", {"cwd": "@"}, ["--set", "no.such=1"], "no.such", id="a wrong setting"),
        pytest.param("session-end", {"cwd": "@"}, [], "names no transcript", id="no transcript"),
        pytest.param("session-end", {"cwd": "@", "transcript_path": "/nowhere.jsonl"}, [], "nowhere.jsonl", id="gone"),
        pytest.param("session-end", {"cwd": "@", "transcript_path": "@"}, [], "rror", id="a folder as transcript"),
        pytest.param(
            "session-end", {"cwd": "@", "transcript_path": "@/MEMORY.md"}, [], "no message to import", id="no messages"
        ),
        pytest.param("session-end", {"cwd": "@", "transcript_path": "\0"}, [], "null", id="a path that cannot be"),
    ],
)
def test_a_failure_is_said_and_breaks_nothing(name, event, words, reason, workspace):
    if isinstance(event, dict):
        event = {key: value.replace("@", str(workspace)) for key, value in event.items()}
    done = hook(name, event, *words, cwd=NOWHERE)
    assert done.returncode == 0
    assert done.stdout == ""
    assert reason in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["session-start", "session-end"])
def test_in_a_project_without_a_workspace_it_is_idle(name, transcript):
    event = {"cwd": NOWHERE, "session_id": "5f1c", "transcript_path": str(transcript)}
    done = hook(name, event, cwd=NOWHERE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
