"""`notewell migrate`: an index goes to PostgreSQL and back, is not embedded again, and loses nothing when killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tomllib
from uuid import uuid4

import pytest

from notewell import Memory, SettingsError, StoreError, migrate_index
from notewell.embedding.hashing import HashingEmbedder
from notewell.files import faults
from tests.postgres_server import shared_database

pytest.importorskip("psycopg", reason="psycopg is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture
def url():
    return shared_database()


@pytest.fixture
def settings_file(tmp_path, monkeypatch):
    file = tmp_path / "config" / "config.toml"
    file.parent.mkdir()
    file.write_text('# mine\n[query]\nmax_results = 4\n\n[store]\ntenant = "t%s"\n' % uuid4().hex[:12])  # noqa: UP031
    monkeypatch.setenv("NOTEWELL_CONFIG", str(file))
    return file


@pytest.fixture
def never_embeds(monkeypatch):
    """Documents cannot be embedded any more; questions can."""

    embed = HashingEmbedder.embed_documents

    def embed_documents(self, texts):
        assert texts == ["printer address"], f"{len(texts)} texts were embedded again"
        return embed(self, texts)

    return lambda: monkeypatch.setattr(HashingEmbedder, "embed_documents", embed_documents)


def answers(notewell, workspace):
    found = notewell("search", "printer address", "--no-sync", "-w", workspace, "--json").document
    return [(hit["path"], hit["startLine"], round(hit["score"], 4)) for hit in found["hits"]]


def test_there_and_back_without_embedding(indexed, notewell, url, settings_file, never_embeds):
    before = answers(notewell, indexed)
    assert before
    never_embeds()
    there = notewell("migrate", "--to", url, "-w", indexed)
    assert there.code == 0, there.err
    assert "none embedded" in there.out
    assert tomllib.loads(settings_file.read_text())["store"]["url"] == url
    assert settings_file.read_text().startswith("# mine\n[query]\nmax_results = 4\n")
    assert settings_file.stat().st_mode & 0o777 == 0o600
    assert "127.0.0.1" in notewell("status", "-w", indexed).out
    assert answers(notewell, indexed) == before
    assert notewell("verify", "-w", indexed).code == 0
    assert notewell("index", "-w", indexed).code == 0

    back = notewell("migrate", "--to", "sqlite", "-w", indexed, "--json")
    assert back.code == 0, back.err
    assert back.document["vectors"] == back.document["chunks"]
    assert "url" not in tomllib.loads(settings_file.read_text())["store"]
    assert answers(notewell, indexed) == before
    assert notewell("verify", "-w", indexed).code == 0


def test_settings_can_be_left_alone(indexed, notewell, url, settings_file):
    text = settings_file.read_text()
    found = notewell("migrate", "--to", url, "--no-switch", "-w", indexed, "--json")
    assert found.document["settingsFile"] is None
    assert settings_file.read_text() == text


def test_a_url_in_the_environment_is_named(indexed, notewell, url, settings_file, monkeypatch):
    assert notewell("migrate", "--to", url, "--no-switch", "-w", indexed).code == 0
    monkeypatch.setenv("NOTEWELL_STORE__URL", url)
    back = notewell("migrate", "--to", "sqlite", "-w", indexed)
    assert back.code == 0, back.err
    assert "NOTEWELL_STORE__URL" in back.err


def test_pending_and_keyword_only_chunks_stay_so(workspace, url, settings_file):
    class OnlyLatin(HashingEmbedder):
        def knows(self, text):
            return text.isascii()

    with Memory.open(workspace, embedder=OnlyLatin()) as memory:
        memory.index()
        (workspace / "memory" / "later.md").write_text("# Later\n\nThe walrus waits for a vector.\n")
        memory.sync()
        expected = memory.status()
        found = migrate_index(memory, url)
    with Memory.open(workspace, embedder=OnlyLatin(), store__url=url) as moved:
        status = moved.status()
        assert moved.verify().findings == ()
    assert (found.files, found.chunks) == (expected.files, expected.chunks)
    assert (status.files, status.chunks, status.pending) == (expected.files, expected.chunks, expected.pending)


@pytest.mark.parametrize("to", ["postgresql://nobody@127.0.0.1:1/none", "mysql://x", "postgresql://u:secret@[/x"])
def test_a_wrong_url_changes_nothing(indexed, notewell, settings_file, to):
    text = settings_file.read_text()
    found = notewell("migrate", "--to", to, "-w", indexed)
    assert found.code in {1, 3}
    assert "secret" not in found.err + found.out
    assert settings_file.read_text() == text


def test_where_it_is_already_is_said(indexed, notewell, settings_file):
    found = notewell("migrate", "--to", "sqlite", "-w", indexed)
    assert found.code == 1
    assert "already kept in SQLite" in found.err


def test_nothing_indexed_is_said(workspace, notewell, url, settings_file):
    found = notewell("migrate", "--to", url, "-w", workspace)
    assert found.code == 3
    assert "run `notewell index` first" in found.err


def test_who_only_follows_does_not_migrate(workspace, url):
    memory = Memory.open(workspace, store__url=url, store__tenant="x", store__follow=True)
    with memory, pytest.raises(SettingsError, match="only follows"):
        migrate_index(memory, "sqlite")


STEPS = {  # a step, and which time it fails
    "index.list": 1,
    "index.read": 20,
    "index.put": 20,
    "embed.known": 1,
    "rebuild.verify": 1,
    "rebuild.finish": 1,
    "database.commit": 3,
}


@pytest.mark.parametrize("step", STEPS)
def test_a_failure_at_any_step_leaves_the_old_index_and_is_resumed(example, url, settings_file, step, monkeypatch):
    with Memory.open(example, provider="hashing") as memory:
        memory.index()
        before = memory.search("printer", sync=False).hits
        seen = []

        def fail(name):
            seen.append(name)
            if name == step and seen.count(step) == STEPS[step]:
                raise StoreError("pulled the plug", hint="")

        real = faults.reach
        for module in list(sys.modules.values()):
            if getattr(module, "reach", None) is real:
                monkeypatch.setattr(module, "reach", fail)
        with pytest.raises(StoreError, match="pulled the plug"):
            migrate_index(memory, url)
        monkeypatch.undo()
        assert memory.search("printer", sync=False).hits == before
        monkeypatch.setenv("NOTEWELL_CONFIG", str(settings_file))
        migrate_index(memory, url)
    with Memory.open(example, provider="hashing", store__url=url) as moved:
        assert moved.verify().findings == ()
        assert moved.status().pending == 0


def start(example, url, settings_file):
    command = [sys.executable, "-m", "notewell", "migrate", "--to", url, "-w", str(example), "--json"]
    environ = {**os.environ, "NOTEWELL_PROVIDER": "hashing", "NOTEWELL_CONFIG": str(settings_file)}
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_migrate_at_once(example, url, settings_file, notewell):
    assert notewell("index", "-w", example).code == 0
    both = [start(example, url, settings_file) for _ in range(2)]
    outcomes = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outcomes
    with Memory.open(example, provider="hashing") as moved:
        assert moved.settings.store.url == url
        assert moved.verify().findings == ()
        assert moved.status().files == 47


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_a_process_that_is_stopped_is_resumed(example, url, settings_file, notewell, how):
    assert notewell("index", "-w", example).code == 0
    for delay in (0.6, 0.9, 1.2):
        process = start(example, url, settings_file)
        time.sleep(delay)
        process.send_signal(how)
        process.communicate(timeout=60)
        text = settings_file.read_text()
        if "url" not in text:
            assert notewell("verify", "-w", example).code == 0
    if "url" not in settings_file.read_text():
        found = notewell("migrate", "--to", url, "-w", example)
        assert found.code == 0, found.err
    assert notewell("verify", "-w", example).code == 0
    assert notewell("status", "-w", example, "--json").document["files"] == 47
