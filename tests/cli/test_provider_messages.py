"""What `index` and the tools say about a provider that cannot run, and about notes that are or are not there."""

from __future__ import annotations

import json

import pytest

from notewell import Memory
from notewell.agents.tools import MemoryTools
from notewell.agents.tools.calling import without_commands


@pytest.mark.parametrize(
    ("provider", "told"),
    [
        pytest.param("openai", "OpenAI needs an API key; set OPENAI_API_KEY", id="no key"),
        pytest.param("opnai", "there is no embedding provider 'opnai'", id="unknown name"),
    ],
)
def test_index_with_a_provider_that_cannot_run_exits_1(notewell, workspace, monkeypatch, provider, told):
    pytest.importorskip("httpx", reason="the extra `remote` is not installed")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = notewell("index", "-w", workspace, "--set", f"provider={provider}")
    assert done.code == 1
    assert told in done.err
    found = notewell("search", "guest network", "-w", workspace, "--mode", "keyword", "--json").document
    assert found["hits"]  # the words are indexed all the same


def test_index_without_a_provider_is_no_failure(notewell, workspace):
    assert notewell("index", "-w", workspace, "--set", "provider=none").code == 0


def test_no_notes_yet_is_said_only_when_there_are_none(notewell, tmp_path):
    (tmp_path / "memory").mkdir()
    assert "no notes yet" in notewell("index", "-w", tmp_path).err
    assert "no notes yet" in str(notewell("search", "harbour", "-w", tmp_path, "--json").document["notes"])
    (tmp_path / "memory/a.md").write_text("# Harbour\n\nThe gate is green.\n")
    notes = str(notewell("search", "harbour", "-w", tmp_path, "--no-sync", "--json").document["notes"])
    assert ("no notes yet" in notes, "nothing is indexed yet" in notes) == (False, True)


def test_a_local_model_that_fails_says_which_key_is_not_used(workspace, monkeypatch):
    pytest.importorskip("onnxruntime", reason="the extra `local` is not installed")
    import importlib

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    real = importlib.import_module

    def broken(name, *more):
        if name in {"onnxruntime", "tokenizers"}:
            raise ImportError("libonnxruntime.so: cannot open shared object file")
        return real(name, *more)

    monkeypatch.setattr("notewell.embedding.local.importlib.import_module", broken)
    (workspace / "memory/long.md").write_text("# Harbour\n\n" + "The harbour gate is green and the tide is low. " * 300)
    with Memory.open(workspace, provider="auto") as memory:
        report = memory.index()
        told = " ".join((*report.notes, *(problem.reason for problem in report.problems)))
    assert "OPENAI_API_KEY is set but not used" in told
    assert 'set provider = "openai" to use it' in told


def test_a_tool_shows_no_command(workspace):
    with Memory.open(workspace, provider="hashing", sync__on_search=False) as memory:
        answer = MemoryTools(memory).call("memory_search", {"query": "guest network"})
        assert answer.document["notes"] == ["nothing is indexed yet"]
        memory._components.folder.ensure()
    with Memory.open(workspace, provider="openai", remote__api_key="", sync__on_search=True) as memory:
        answer = MemoryTools(memory).call("memory_search", {"query": "guest network"})
        assert "`notewell" not in json.dumps(answer.document)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nothing is indexed yet: run `notewell index`", "nothing is indexed yet"),
        (
            "keyword search only: nothing is embedded yet; run `notewell index`",
            "keyword search only: nothing is embedded yet",
        ),
        (
            "3 chunks are found by keyword only until `notewell index` has embedded them",
            "3 chunks are found by keyword only until they are embedded",
        ),
        ("run `notewell index --force` to rebuild it", ""),
        ("memory/a.md: cannot be read: Permission denied", "memory/a.md: cannot be read: Permission denied"),
    ],
)
def test_commands_are_left_out(text, shown):
    assert without_commands(text) == shown
