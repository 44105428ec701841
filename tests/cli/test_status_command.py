"""`notewell status`: every field of OpenClaw's `MemoryProviderStatus`, and what they say when something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from notewell import Memory
from tests.fakes.openai import FakeOpenAI

from .conftest import run_process

FIELDS = {
    "backend": str,
    "provider": str,
    "model": str,
    "requestedProvider": str,
    "files": int,
    "chunks": int,
    "dirty": bool,
    "workspaceDir": str,
    "dbPath": str,
    "extraPaths": list,
    "sources": list,
    "sourceCounts": list,
    "cache": {"enabled": bool, "entries": int, "maxEntries": int},
    "fts": {"enabled": bool, "available": bool, "error": str},
    "fallback": type(None),
    "vector": {"enabled": bool, "available": bool, "extensionPath": str, "loadError": str, "dims": int},
    "batch": {
        "enabled": bool,
        "failures": int,
        "limit": int,
        "wait": bool,
        "concurrency": int,
        "pollIntervalMs": int,
        "timeoutMs": int,
        "lastError": str,
        "lastProvider": str,
    },
}


def fits(value, expected) -> bool:
    if isinstance(expected, dict):
        return all(name in value and fits(value[name], kind) for name, kind in expected.items())
    return type(value) is expected


def test_every_field_of_openclaw_is_there(notewell, indexed):
    document = notewell("status", "-w", indexed, "--json").document
    assert [name for name, kind in FIELDS.items() if name not in document or not fits(document[name], kind)] == []
    assert (document["backend"], document["provider"], document["requestedProvider"]) == (
        "builtin",
        "hashing",
        "hashing",
    )
    assert document["embedder"].startswith(f"{document['provider']}/{document['model']}")
    assert (document["dirty"], document["workspaceDir"]) == (False, str(indexed))
    assert Path(document["dbPath"]).is_file()
    counted = document["sourceCounts"][0]
    assert counted == {"source": "memory", "files": document["files"], "chunks": document["chunks"]}
    assert document["cache"]["entries"] == document["chunks"]
    assert document["fts"] == {"enabled": True, "available": True, "error": ""}
    assert document["vector"]["dims"] > 0
    assert (document["batch"]["limit"], document["batch"]["timeoutMs"]) == (2, 3_600_000)


def test_settings_show_in_it(notewell, indexed):
    flags = ("cache.max_entries=7", "extra_paths=docs", "store.vector.enabled=false", "remote.batch.concurrency=3")
    words = [word for flag in flags for word in ("--set", flag)]
    document = notewell("status", "-w", indexed, *words, "--json").document
    assert document["cache"]["maxEntries"] == 7
    assert document["extraPaths"] == [str(indexed / "docs")]
    assert (document["vector"]["enabled"], document["vector"]["available"]) == (False, False)
    assert document["batch"]["concurrency"] == 3


def test_before_the_first_index(notewell, workspace):
    document = notewell("status", "-w", workspace, "--json").document
    assert (document["dbPath"], document["dirty"], document["sourceCounts"]) == (None, True, [])
    needs_extension = notewell("status", "-w", workspace, "--set", "store.vector.driver=sqlite-vec", "--json").document
    assert needs_extension["vector"]["available"] is None


def test_a_provider_that_fell_back_is_named_with_the_reason(notewell, indexed, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    words = ("--set", "provider=openai", "--set", "fallback=hashing")
    document = notewell("status", "-w", indexed, *words, "--json").document
    assert (document["provider"], document["requestedProvider"]) == ("hashing", "openai")
    assert document["fallback"]["from"] == "openai"
    assert "needs an API key" in document["fallback"]["reason"]
    found = notewell("search", "printer address", "-w", indexed, *words, "--json").document
    assert (found["provider"], found["fallback"]) == ("hashing", document["fallback"])


@pytest.mark.slow
def test_another_process_sees_which_batch_jobs_failed(example):
    with FakeOpenAI() as fake:
        fake.inject("batch_failed", times=1)
        remote = {"remote__base_url": fake.base_url, "remote__api_key": fake.key}
        batch = {"remote__batch__enabled": True, "remote__batch__poll_interval_ms": 100}
        with Memory.open(example, provider="openai", **remote, **batch) as memory:
            memory.index()
            told = run_process("status", "-w", example, "--json").document["batch"]
            assert (told["failures"], told["lastProvider"]) == (1, "openai")
            assert "failed" in told["lastError"]
            memory.index(force=True)
    assert run_process("status", "-w", example, "--json").document["batch"]["failures"] == 0


# --- answers ---------------------------------------------------------------------------------------


def test_an_answer_names_the_provider_and_model_of_the_query(notewell, indexed):
    status = notewell("status", "-w", indexed, "--json").document
    found = notewell("search", "printer address", "-w", indexed, "--json").document
    assert (found["provider"], found["model"]) == (status["provider"], status["model"])
    words = notewell("search", "printer address", "-w", indexed, "--mode", "keyword", "--json").document
    assert (words["provider"], words["model"]) == (None, None)
