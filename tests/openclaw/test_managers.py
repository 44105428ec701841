"""OpenClaw's search manager over a real memory: results, files, status, sync, probes, and the cache of managers."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from notewell import Memory, NoteNotFoundError, PathRefusedError, QueryError, Settings, close_shared_memories
from notewell.openclaw import MemoryIndexManager, MemorySearchManager, agent_of, get_memory_search_manager
from notewell.sessions import Message
from tests.fakes.providers import FakeOpenAI

HASHING = replace(Settings(), provider="hashing")


def managed(workspace: Path, **options) -> MemoryIndexManager:
    return MemoryIndexManager(Memory.open(workspace, **{"provider": "hashing", **options}))


@pytest.fixture
def manager(workspace):
    opened = managed(workspace)
    opened.sync()
    yield opened
    opened.close()


# --- search and read_file ------------------------------------------------------------------------


def test_results_have_the_fields_of_openclaw(manager):
    best = manager.search("guest network name", max_results=1)
    assert len(best) == 1
    assert set(best[0]) == {"path", "startLine", "endLine", "score", "snippet", "source", "citation"}
    assert (best[0]["path"], best[0]["source"]) == ("memory/network.md", "memory")
    assert best[0]["citation"] == f"memory/network.md#L{best[0]['startLine']}-L{best[0]['endLine']}"
    assert "heron-guest" in best[0]["snippet"]
    assert 0 < best[0]["score"] <= 1
    assert json.dumps(best)


def test_results_below_the_minimum_are_left_out(manager):
    assert manager.search("printer", min_score=0)
    assert manager.search("printer", min_score=1.0) == []


def test_a_search_finds_what_was_written_since_the_last_sync(manager, workspace):
    (workspace / "memory" / "quokka.md").write_text("The quokka lives on Rottnest Island.\n")
    assert manager.search("quokka island")[0]["path"] == "memory/quokka.md"


def test_status_says_how_the_last_search_was_done(workspace):
    manager = managed(workspace, provider="none")
    manager.search("printer")
    assert manager.status()["custom"]["lastSearch"]["mode"] == "keyword"
    manager.close()


def test_two_steps_search_then_read(manager):
    best = manager.search("guest network name")[0]
    read = manager.read_file(best["path"], from_line=best["startLine"], lines=best["endLine"] - best["startLine"] + 1)
    assert read["path"] == "memory/network.md"
    assert "heron-guest" in read["text"]


def test_a_file_is_read_to_its_end_however_long(manager, workspace):
    text = "\n".join(f"{number} " + "x" * 90 for number in range(1000))
    (workspace / "memory" / "long.md").write_text(text + "\n")
    assert manager.read_file("memory/long.md") == {"text": text, "path": "memory/long.md"}
    lines = manager.read_file("memory/long.md", from_line=100, lines=400)["text"].split("\n")
    assert (len(lines), lines[0].split()[0], lines[-1].split()[0]) == (400, "99", "498")


def test_a_line_that_had_to_be_cut_is_told(manager, workspace):
    (workspace / "memory" / "wide.md").write_text("short\n" + "y" * 20_000 + "\nend\n")
    read = manager.read_file("memory/wide.md")
    assert read["truncated"] is True
    assert read["text"].startswith("short\ny")
    assert read["text"].endswith("y\nend")


def test_an_uncut_line_near_the_limit_is_not_called_cut(manager, workspace):
    text = "a" * 11_990 + "\n" + "b" * 11_990
    (workspace / "memory" / "wide.md").write_text(text)
    assert manager.read_file("memory/wide.md") == {"text": text, "path": "memory/wide.md"}


@pytest.mark.parametrize(
    ("path", "error"),
    [("../secret.md", PathRefusedError), ("/etc/passwd", PathRefusedError), ("memory/no.md", NoteNotFoundError)],
)
def test_only_memory_files_are_read(manager, path, error):
    with pytest.raises(error):
        manager.read_file(path)


# --- session keys --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "agent"),
    [
        ("agent:main:main", "main"),
        ("agent:work:telegram:group:-1001234567890", "work"),
        (" Agent:Work:whatsapp:direct:+351910000000 ", "work"),
        ("agent:Team Blue!:main", "team-blue"),
        ("whatsapp:direct:+351910000000", "main"),
        ("agent:work", "main"),
        ("agent::main", "main"),
        ("agent:!!:main", "main"),
        ("main", "main"),
        ("", "main"),
        (None, "main"),
    ],
)
def test_agent_of(key, agent):
    assert agent_of(key) == agent


@pytest.mark.parametrize(
    "key", ["agent:main:telegram:group:-1001234567890", "agent:main:discord:channel:42:thread:7", "telegram:group:1"]
)
def test_a_group_sees_neither_memory_md_nor_other_conversations(manager, key):
    asked = "where does the owner live, Lisbon"
    assert manager.search(asked, min_score=0)[0]["path"] == "MEMORY.md"
    assert manager.search(asked, min_score=0, session_key="agent:main:main")[0]["path"] == "MEMORY.md"
    assert "MEMORY.md" not in [result["path"] for result in manager.search(asked, min_score=0, session_key=key)]
    assert manager.read_file("MEMORY.md", session_key="agent:main:main")["text"]
    with pytest.raises(NoteNotFoundError):
        manager.read_file("MEMORY.md", session_key=key)


def test_a_group_finds_its_own_conversation(workspace):
    manager = managed(workspace, sources=["memory", "sessions"])
    for group in ("120363@g.us", "999@g.us"):
        entry = manager.memory.conversations.create(kind="group", group_id=group)
        manager.memory.conversations.append(entry.session_id, Message("user", f"the quokka of {group}"))
    manager.sync()
    found = manager.search("quokka", min_score=0, session_key="agent:main:whatsapp:group:120363@g.us")
    assert ["120363@g.us" in result["snippet"] for result in found if result["source"] == "sessions"] == [True]
    counts = {each["source"]: each for each in manager.status()["sourceCounts"]}
    assert counts["sessions"] == {"source": "sessions", "files": 2, "chunks": 2}
    assert counts["memory"]["files"] == 7
    manager.close()


def test_the_session_of_another_agent_is_refused(manager):
    with pytest.raises(QueryError, match="belongs to the agent 'work', this memory to 'main'"):
        manager.search("printer", session_key="agent:work:main")


def test_an_agent_called_group_is_no_group(workspace):
    manager = managed(workspace, agent="group")
    assert manager.read_file("MEMORY.md", session_key="agent:group:main")["text"]
    manager.close()


def test_the_first_search_of_a_session_syncs_in_the_background(workspace):
    manager = managed(workspace, sync__on_search=False)
    manager.search("printer", session_key="agent:main:main")
    assert manager.memory.wait_until_synced(30)
    assert manager.search("printer")[0]["path"] == "memory/network.md"
    manager.close()


# --- sync ----------------------------------------------------------------------------------------


def test_sync_tells_its_progress_and_remembers_its_reason(workspace):
    manager = managed(workspace)
    told = []
    report = manager.sync(reason="session-start", progress=told.append)
    assert report.added == 7
    assert {update["label"] for update in told} == {"Reading memory files", "Embedding chunks"}
    assert all(set(update) == {"completed", "total", "label"} for update in told)
    assert [u["completed"] for u in told if u["label"] == "Reading memory files"][-1] == 7
    last = manager.status()["custom"]["lastSync"]
    assert (last["reason"], last["force"], last["complete"]) == ("session-start", False, True)
    manager.close()


def test_force_rebuilds(manager):
    assert not manager.sync().rebuilt
    assert manager.sync(force=True).rebuilt


def test_sync_reports_what_could_not_be_read(manager, workspace):
    (workspace / "memory" / "link.md").symlink_to(workspace / "MEMORY.md")
    assert [problem.path for problem in manager.sync().problems] == ["memory/link.md"]
    assert manager.status()["custom"]["lastSync"]["problems"][0].startswith("memory/link.md: ")


# --- status and probes ---------------------------------------------------------------------------


def test_status_has_the_fields_of_openclaw(manager, workspace):
    status = manager.status()
    chunks = status["chunks"]
    assert chunks >= 7
    assert Path(status.pop("dbPath")).is_file()
    assert status.pop("custom")["agent"] == "main"
    assert status == {
        "backend": "builtin",
        "provider": "hashing",
        "model": manager.memory.status().model,
        "requestedProvider": "hashing",
        "files": 7,
        "chunks": chunks,
        "dirty": False,
        "workspaceDir": str(workspace),
        "extraPaths": [],
        "sources": ["memory"],
        "sourceCounts": [{"source": "memory", "files": 7, "chunks": chunks}],
        "cache": {"enabled": True, "entries": chunks, "maxEntries": 50_000},
        "fts": {"enabled": True, "available": True},
        "vector": {"enabled": True, "available": True, "dims": manager.memory.status().vector.dims},
        "batch": {
            "enabled": False,
            "failures": 0,
            "limit": 2,
            "wait": True,
            "concurrency": 2,
            "pollIntervalMs": 2000,
            "timeoutMs": 3_600_000,
        },
    }
    assert status["vector"]["dims"] > 0


def test_status_before_the_first_sync_and_after_a_change(workspace):
    manager = managed(workspace, extra_paths=["docs"])
    status = manager.status()
    assert (status["files"], status["dirty"], status["sourceCounts"]) == (0, True, [])
    assert status["extraPaths"] == [str(workspace / "docs")]
    assert "dbPath" not in status
    manager.sync()
    assert not manager.status()["dirty"]
    (workspace / "MEMORY.md").write_text("# Memory\n\nSomething else.\n")
    assert manager.status()["dirty"]
    manager.close()


def test_status_names_the_fallback_of_the_provider(workspace):
    with FakeOpenAI() as fake:
        fake.inject("unauthorized", times=None)
        manager = managed(
            workspace,
            provider="openai",
            fallback="hashing",
            remote__base_url=fake.base_url,
            remote__api_key=fake.key,
        )
        manager.sync()
        status = manager.status()
        manager.close()
    assert (status["provider"], status["requestedProvider"]) == ("hashing", "openai")
    assert status["fallback"]["from"] == "openai"
    assert "401" in status["fallback"]["reason"]


def test_status_counts_the_failed_batch_jobs_of_the_last_sync(example):
    with FakeOpenAI() as fake:
        fake.inject("batch_failed", times=1)
        manager = managed(
            example,
            provider="openai",
            remote__base_url=fake.base_url,
            remote__api_key=fake.key,
            remote__batch__enabled=True,
            remote__batch__poll_interval_ms=100,
        )
        manager.sync()
        batch = manager.status()["batch"]
        manager.sync()
        assert manager.status()["batch"]["failures"] == 0
        manager.close()
    assert (batch["failures"], batch["lastProvider"]) == (1, "openai")
    assert "a batch job of" in batch["lastError"]
    assert "failed" in batch["lastError"]


def test_probes_of_a_memory_that_works(manager):
    assert manager.probe_embedding_availability() == {"ok": True}
    assert manager.probe_vector_availability() is True


def test_probes_of_a_memory_without_vectors(workspace):
    without = managed(workspace, provider="none")
    assert without.probe_embedding_availability() == {"ok": False, "error": "provider is none"}
    assert without.probe_vector_availability() is True  # they could be stored
    without.close()
    turned_off = managed(workspace, store__vector__enabled=False)
    assert turned_off.probe_embedding_availability()["ok"] is False
    assert turned_off.probe_vector_availability() is False
    assert turned_off.status()["vector"]["available"] is False
    turned_off.close()


def test_a_provider_that_fails_is_no_provider(workspace):
    with FakeOpenAI() as fake:
        options = {"provider": "openai", "remote__base_url": fake.base_url, "remote__api_key": fake.key}
        manager = managed(workspace, **options)
        assert manager.probe_embedding_availability() == {"ok": True}
        fake.inject("unauthorized", times=None)
        probe = manager.probe_embedding_availability()
        assert probe["ok"] is False
        assert "key" in probe["error"]
        manager.close()


# --- the cache of managers -----------------------------------------------------------------------


@pytest.fixture
def closed_afterwards():
    yield
    close_shared_memories()


@pytest.mark.usefixtures("closed_afterwards")
class TestCache:
    """`get_memory_search_manager`: one manager for an agent, a workspace and settings."""

    def test_the_same_names_give_the_same_manager(self, workspace, tmp_path):
        (tmp_path / "link").symlink_to(workspace)
        first = get_memory_search_manager(HASHING, workspace=workspace)
        assert get_memory_search_manager(replace(Settings(), provider="hashing"), workspace=tmp_path / "link") is first

    def test_another_agent_workspace_or_setting_gives_another(self, workspace, example):
        managers = {
            get_memory_search_manager(HASHING, workspace=workspace),
            get_memory_search_manager(HASHING, workspace=example),
            get_memory_search_manager(HASHING, workspace=workspace, agent="work"),
            get_memory_search_manager(replace(HASHING, provider="none"), workspace=workspace),
        }
        assert len(managers) == 4

    def test_the_agent_comes_from_the_session_key(self, workspace):
        by_key = get_memory_search_manager(HASHING, workspace=workspace, session_key="agent:work:main")
        assert by_key is get_memory_search_manager(HASHING, workspace=workspace, agent="work")
        assert by_key.memory.agent == "work"
        assert by_key.search("printer", session_key="agent:work:main")

    def test_the_settings_are_read_where_none_are_given(self, workspace, monkeypatch):
        monkeypatch.setenv("NOTEWELL_PROVIDER", "hashing")
        monkeypatch.chdir(workspace)
        assert get_memory_search_manager().status()["provider"] == "hashing"

    def test_memory_that_is_turned_off_has_no_manager(self, workspace):
        assert get_memory_search_manager(replace(HASHING, enabled=False), workspace=workspace) is None

    def test_a_closed_manager_is_replaced(self, workspace):
        first = get_memory_search_manager(HASHING, workspace=workspace)
        first.close()
        second = get_memory_search_manager(HASHING, workspace=workspace)
        assert second is not first
        assert second.search("printer")

    def test_after_all_memories_were_closed_there_is_a_new_one(self, workspace):
        first = get_memory_search_manager(HASHING, workspace=workspace)
        close_shared_memories()
        second = get_memory_search_manager(HASHING, workspace=workspace)
        assert second is not first
        assert second is get_memory_search_manager(HASHING, workspace=workspace)

    def test_many_threads_get_one(self, workspace):
        with ThreadPoolExecutor(8) as pool:
            got = set(pool.map(lambda _: get_memory_search_manager(HASHING, workspace=workspace), range(64)))
        assert len(got) == 1

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_a_forked_child_gets_its_own(self, workspace):
        first = get_memory_search_manager(HASHING, workspace=workspace)
        child = os.fork()
        if child == 0:
            other = get_memory_search_manager(HASHING, workspace=workspace)
            os._exit(0 if other is not first and other.memory is not first.memory else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_manager_has_the_interface(manager):
    as_protocol: MemorySearchManager = manager
    assert as_protocol.backend == "builtin"
