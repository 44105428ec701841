"""Watching: every kind of change is seen, by events or by looking, and nothing is left running."""

from __future__ import annotations

import errno
import queue
import shutil
import threading
import time

import pytest

from notewell import Memory
from notewell.files.faults import failing
from notewell.indexing import watch
from notewell.indexing.watch import EventsUnavailableError, FileEvents, watched_places

from .contents import contents_of, fresh_contents

pytestmark = pytest.mark.slow

PATIENCE_S = 60  # for a busy machine; every wait ends as soon as the change is seen


@pytest.fixture(params=["events", "polling"])
def watched(request, workspace, monkeypatch):
    """A memory that watches its workspace in one of two ways."""
    if request.param == "events":
        pytest.importorskip("watchfiles")
    monkeypatch.setattr(watch, "POLL_EVERY_S", 0.1)
    with Memory.open(workspace, provider="hashing", sync__watch_debounce_ms=50) as memory:
        if request.param == "polling":
            with failing("watch.start", errno.ENOSPC):
                watching = memory.watch()
            assert "No space left" in watching.reason
        else:
            watching = memory.watch()
        assert watching.mode == request.param
        yield memory
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("notewell")]


def until(memory, wanted) -> None:
    """Wait until the index holds exactly these notes beside those of the workspace."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with memory._components.index.use() as store:
            if store is not None:
                with store.reading() as snapshot:
                    paths = {path for _, path in snapshot.documents()}
                if wanted(paths):
                    return
        assert time.monotonic() < deadline, f"not seen; indexed are {paths}"
        time.sleep(0.02)


def test_create_edit_rename_and_delete_are_seen(watched, workspace, tmp_path):
    until(watched, lambda paths: len(paths) == 7)
    note = workspace / "memory/fresh.md"
    note.write_text("# Fresh\n\nAbout a quokka.\n", encoding="utf-8")
    until(watched, lambda paths: "memory/fresh.md" in paths)
    note.write_text("# Fresh\n\nNow about a wombat.\n", encoding="utf-8")
    deadline = time.monotonic() + PATIENCE_S
    while not [hit for hit in watched.search("wombat", sync=False).hits if "wombat" in hit.snippet]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    note.rename(workspace / "memory/renamed.md")
    until(watched, lambda paths: {"memory/fresh.md", "memory/renamed.md"} & paths == {"memory/renamed.md"})
    (workspace / "memory/renamed.md").unlink()
    until(watched, lambda paths: "memory/renamed.md" not in paths)
    watched.wait_until_synced(PATIENCE_S)
    assert contents_of(watched) == fresh_contents(workspace, tmp_path / "fresh")


def test_included_notes_are_seen_and_ignored_ones_are_not(workspace, monkeypatch):
    monkeypatch.setattr(watch, "POLL_EVERY_S", 0.1)
    (workspace / ".gitignore").write_text("build/\n", encoding="utf-8")
    with Memory.open(workspace, provider="none", include=["**/*.md"], sync__watch_debounce_ms=50) as memory:
        memory.watch()
        until(memory, lambda paths: len(paths) == 7)
        for path in ("build/x.md", "docs/deep/new.md", "AGENTS.md"):
            (workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (workspace / path).write_text("# New\n\nAbout a quokka.\n", encoding="utf-8")
        until(memory, lambda paths: "docs/deep/new.md" in paths)
        shutil.rmtree(workspace / "docs")
        until(memory, lambda paths: len(paths) == 7)


def test_whole_folders_come_and_go(watched, workspace):
    until(watched, lambda paths: len(paths) == 7)
    aside = workspace.parent / "aside"
    (aside / "deep").mkdir(parents=True)
    for i in range(20):
        (aside / f"deep/n{i}.md").write_text(f"# N{i}\n", encoding="utf-8")
    shutil.move(aside, workspace / "memory/moved-in")
    until(watched, lambda paths: len(paths) == 27)
    (workspace / "memory/moved-in/deep/later.md").write_text("# Later\n", encoding="utf-8")  # in a folder new to us
    until(watched, lambda paths: "memory/moved-in/deep/later.md" in paths)
    shutil.rmtree(workspace / "memory/moved-in")
    until(watched, lambda paths: len(paths) == 7)


def test_the_notes_folder_itself_is_replaced(watched, workspace):
    until(watched, lambda paths: len(paths) == 7)
    (workspace / "memory").rename(workspace / "old-memory")
    until(watched, lambda paths: paths == {"MEMORY.md"})
    (workspace / "memory").mkdir()
    (workspace / "memory/again.md").write_text("# Again\n", encoding="utf-8")
    until(watched, lambda paths: paths == {"MEMORY.md", "memory/again.md"})
    (workspace / "memory/and-again.md").write_text("# And again\n", encoding="utf-8")
    until(watched, lambda paths: "memory/and-again.md" in paths)
    (workspace / "MEMORY.md").unlink()
    until(watched, lambda paths: "MEMORY.md" not in paths)


def test_what_changed_before_is_taken_in_at_the_start(workspace):
    with Memory.open(workspace, provider="hashing") as memory:
        heard = []
        with memory.watch(on_sync=heard.append) as watching:
            until(memory, lambda paths: len(paths) == 7)
            memory.wait_until_synced(PATIENCE_S)
            assert not watching.wait(0)
        assert heard[0].added == 7


def test_files_that_are_no_notes_start_nothing(workspace):
    pytest.importorskip("watchfiles")
    with FileEvents(lambda: watched_places(workspace, ())) as events:
        events.start()
        (workspace / "memory/picture.png").write_bytes(b"png")
        (workspace / "memory/.hidden.md").write_text("x", encoding="utf-8")
        (workspace / "main.py").write_text("x", encoding="utf-8")
        (workspace / ".notewell").mkdir()
        (workspace / ".notewell/index.sqlite").write_bytes(b"x")
        (workspace / "memory/last.md").write_text("x", encoding="utf-8")
        deadline = time.monotonic() + PATIENCE_S
        while not events.changed():  # only the last one counts, and it comes after the others
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_without_watchfiles_it_looks_every_few_seconds(workspace, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "watchfiles._rust_notify", None)
    events = FileEvents(lambda: watched_places(workspace, ()))
    with pytest.raises(EventsUnavailableError, match=r"notewell\[watch\]"):
        events.start()


def test_only_folders_with_notes_are_watched_whole(tmp_path):
    (tmp_path / "work/memory").mkdir(parents=True)
    (tmp_path / "work/node_modules").mkdir()
    (tmp_path / "vault").mkdir()
    (tmp_path / "one.md").touch()
    places = watched_places(tmp_path / "work", [tmp_path / "vault", tmp_path / "one.md", tmp_path / "not/there"])
    assert places.whole == {str(tmp_path / "work/memory"), str(tmp_path / "vault")}
    assert places.single == {str(tmp_path / "work"), str(tmp_path)}
    (tmp_path / "state/sessions").mkdir(parents=True)
    also = watched_places(tmp_path / "work", [], [tmp_path / "state/sessions", tmp_path / "state/none"])
    assert also.whole == {str(tmp_path / "work/memory"), str(tmp_path / "state/sessions")}
    assert also.single == {str(tmp_path / "work")}  # never the folder that the index itself is written to


def test_the_interval_starts_runs_by_itself(workspace):
    runs = threading.Semaphore(0)
    with Memory.open(workspace, provider="hashing") as memory:
        watching = watch.Watching(
            lambda: watched_places(workspace, ()),
            memory._components.sources,
            memory._components.sync.background,
            quiet_s=30,
            interval_s=0.05,
            on_sync=lambda outcome: runs.release(),
        )
        with watching.start():
            for _ in range(3):
                assert runs.acquire(timeout=PATIENCE_S)


def test_a_change_of_one_note_looks_at_that_note_only(workspace):
    pytest.importorskip("watchfiles")
    heard: queue.Queue[object] = queue.Queue()
    with Memory.open(workspace, provider="hashing", sync__watch_debounce_ms=50) as memory:
        memory.index()
        time.sleep(0.05)  # so that the times of the notes are trusted
        with memory.watch(on_sync=heard.put):
            assert heard.get(timeout=PATIENCE_S).changed == 0  # what changed before it began
            (workspace / "MEMORY.md").write_text("# About one note\n", encoding="utf-8")
            report = heard.get(timeout=PATIENCE_S)
            assert (report.changed, report.unchanged) == (1, 0)
            (workspace / "MEMORY.md").unlink()
            report = heard.get(timeout=PATIENCE_S)
            assert (report.removed, report.unchanged) == (1, 0)


def test_a_folder_that_came_is_not_named_by_its_files(workspace):
    pytest.importorskip("watchfiles")
    with FileEvents(lambda: watched_places(workspace, ())) as events:
        events.start()
        assert events.files() == frozenset()
        (workspace / "memory/new.md").write_text("x", encoding="utf-8")
        seen = _files_when_changed(events)
        assert seen == {str(workspace / "memory/new.md")}
        (workspace / "memory/folder.md").mkdir()  # a name like a note's
        assert _files_when_changed(events) is None
        assert events.files() == frozenset()


def _files_when_changed(events: FileEvents) -> frozenset[str] | None:
    deadline = time.monotonic() + PATIENCE_S
    while not events.changed():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return events.files()
