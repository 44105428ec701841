"""A sqlite-vec extension that is missing, is not one, or hangs: searches go on without it, and say so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from notewell.store.sqlite import sqlite_vec
from notewell.store.state_folder import StateFolder

WITH = ("--set", "store.vector.driver=sqlite-vec")
NOTE = "sqlite-vec cannot be used: "
needs_sqlite_vec = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import sqlite_vec"], capture_output=True, check=False).returncode != 0,
    reason="sqlite-vec is not installed",
)


@pytest.fixture
def without_package(monkeypatch):
    """`import sqlite_vec` fails, as where it is not installed."""
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)


def at(library: Path) -> tuple[str, ...]:
    return (*WITH, "--set", f"store.vector.extension_path={library}")


def answer_of(notewell, workspace, *words: str):
    found = notewell("search", "guest network", "-w", workspace, "--json", *words)
    assert found.code == 0, found.err
    return found.document


def test_a_missing_package_costs_nothing_but_a_note(workspace, notewell, without_package):
    indexed = notewell("index", "-w", workspace, *WITH, "--json")
    assert indexed.code == 0, indexed.err
    assert [note for note in indexed.document["notes"] if NOTE in note and "pip install" in note]
    answer = answer_of(notewell, workspace, *WITH)
    assert (answer["mode"], bool(answer["hits"])) == ("hybrid", True)
    assert [note for note in answer["notes"] if NOTE in note]
    assert NOTE in "".join(notewell("status", "-w", workspace, *WITH, "--json").document["notes"])
    checked = notewell("doctor", "-w", workspace, *WITH, "--json")
    (nearest,) = [check for check in checked.document["checks"] if check["name"] == "nearest"]
    assert (checked.code, nearest["ok"], NOTE in nearest["detail"]) == (1, False, True)


@needs_sqlite_vec
def test_an_index_made_with_it_answers_without_the_package(workspace, notewell, monkeypatch):
    assert notewell("index", "-w", workspace, *WITH).code == 0
    before = answer_of(notewell, workspace, *WITH)
    assert before["notes"] == []
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    keyword = answer_of(notewell, workspace, *WITH, "--mode", "keyword")
    assert keyword["hits"]
    after = answer_of(notewell, workspace, *WITH)
    assert [hit["citation"] for hit in after["hits"]] == [hit["citation"] for hit in before["hits"]]
    assert notewell("verify", "-w", workspace, *WITH).code == 0
    (workspace / "memory" / "new.md").write_text("# Attic\n\nThe ladder is behind the wardrobe.\n")
    assert notewell("index", "-w", workspace, *WITH).code == 0
    assert "memory/new.md" in str(notewell("search", "ladder", "-w", workspace, "--json", *WITH).document["hits"])
    monkeypatch.delitem(sys.modules, "sqlite_vec")
    assert answer_of(notewell, workspace, *WITH)["notes"] == []  # and back
    assert notewell("verify", "-w", workspace, *WITH).code == 0


@needs_sqlite_vec
def test_a_read_only_index_made_with_it_answers_without_the_package(workspace, notewell, monkeypatch):
    assert notewell("index", "-w", workspace, *WITH).code == 0
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    monkeypatch.setattr(StateFolder, "writable", lambda _: False)
    answer = answer_of(notewell, workspace, *WITH)
    assert (answer["mode"], bool(answer["hits"])) == ("hybrid", True)
    assert [note for note in answer["notes"] if NOTE in note]


def test_a_library_that_is_none(workspace, notewell, tmp_path):
    library = tmp_path / "vec0.so"
    library.write_bytes(b"\x7fELF and nothing more")
    answer = answer_of(notewell, workspace, *at(library))
    assert answer["hits"]
    assert [note for note in answer["notes"] if NOTE in note and "vec0.so cannot be loaded" in note]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes to hang on")
def test_a_library_that_does_not_load_in_time(workspace, notewell, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_vec, "LOAD_LIMIT_S", 0.2)
    library = tmp_path / "vec0.so"
    os.mkfifo(library)  # reading it waits for a writer that never comes
    try:
        answer = answer_of(notewell, workspace, *at(library))
        assert answer["hits"]
        assert [note for note in answer["notes"] if "did not load within 0.2 seconds" in note]
    finally:
        writer = os.open(library, os.O_RDWR | os.O_NONBLOCK)
        library.unlink()
        os.close(writer)  # lets the thread go


@needs_sqlite_vec
def test_a_process_with_it_follows_one_without(workspace, notewell, monkeypatch):
    """Two environments use one workspace: the server has the package, the command does not."""
    from notewell import Memory

    assert notewell("index", "-w", workspace, *WITH).code == 0
    with Memory.open(workspace, provider="hashing", store__vector__driver="sqlite-vec") as server:
        assert server.search("guest network", mode="semantic").hits
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
        (workspace / "memory" / "new.md").write_text("# Attic\n\nThe ladder is behind the wardrobe.\n")
        assert notewell("index", "-w", workspace, *WITH).code == 0
        monkeypatch.delitem(sys.modules, "sqlite_vec")
        found = server.search("The ladder is behind the wardrobe", mode="semantic")
        assert found.hits[0].path == "memory/new.md"
        (workspace / "memory" / "newer.md").write_text("# Cellar\n\nThe saw hangs beside the stove.\n")
        assert server.search("The saw hangs beside the stove", mode="semantic").hits[0].path == "memory/newer.md"
        assert server.verify().equal
