"""Conversations on the command line: search, get, index and what is said when they are not part of the memory."""

from __future__ import annotations

import pytest

from tests.indexing.transcripts import append, lines


@pytest.fixture
def talks(tmp_path, monkeypatch):
    """A folder of conversations that the settings name."""
    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(b'{"type":"session"}\n' + lines(0, 5) + b"{bad\n")
    monkeypatch.setenv("NOTEWELL_SOURCES", "memory,sessions")
    monkeypatch.setenv("NOTEWELL_EXPERIMENTAL__SESSION_MEMORY", "true")
    monkeypatch.setenv("NOTEWELL_SESSIONS__PATHS", str(folder))
    return folder


def test_search_get_and_index(notewell, workspace, talks):
    first = notewell("index", "-w", workspace, "--json").document
    assert (first["added"], first["bytesRead"]) == (8, first["bytesRead"])
    assert first["problems"] == [{"path": "sessions/@talks/a.jsonl", "reason": "left out: line 7 is not a JSON record"}]
    found = notewell("search", "subject3", "-w", workspace, "--source", "sessions", "--json").document
    assert [(hit["source"], hit["citation"]) for hit in found["hits"]] == [
        ("sessions", "sessions/@talks/a.jsonl#L3-L6")
    ]
    notes = notewell("search", "subject3", "-w", workspace, "--source", "memory", "--json").document
    assert {hit["source"] for hit in notes["hits"]} <= {"memory"}
    shown = notewell("get", "sessions/@talks/a.jsonl", "-w", workspace, "--from", 5, "--lines", 1, "--json").document
    assert shown["text"].startswith("Assistant: subject3 ")
    assert (shown["from"], shown["lines"], shown["nextFrom"]) == (5, 1, 6)
    append(talks / "a.jsonl", lines(5, 6))
    stale = notewell("search", "subject5", "-w", workspace, "--json").document
    assert stale["index"]["stale"] is True
    assert "subject5 " not in str(stale["hits"])
    again = notewell("sessions", "index", "-w", workspace, "--json").document
    assert (again["changed"], again["added"]) == (1, 0)
    assert "subject5 " in str(notewell("search", "subject5", "-w", workspace, "--json").document["hits"])


@pytest.mark.parametrize(
    "path", ["sessions/../secret.jsonl", "sessions/@talks/../../x.jsonl", "sessions/@other/a.jsonl"]
)
def test_escapes_are_refused(notewell, workspace, talks, path):
    outcome = notewell("get", path, "-w", workspace, "--json")
    assert (outcome.code, outcome.document["error"]["kind"]) == (1, "path_refused")


def test_conversations_that_are_not_part_of_the_memory(notewell, indexed):
    outcome = notewell("search", "x", "-w", indexed, "--source", "sessions", "--json")
    assert (outcome.code, outcome.document["error"]["kind"]) == (1, "settings")
    assert outcome.document["error"]["hint"] == 'set sources = ["memory", "sessions"] in your settings'
