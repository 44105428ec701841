"""The folder of one agent: which index answers, and that a switch is whole."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from notewell import Memory, StoreError
from notewell.errors import IndexBusyError
from notewell.store.state_folder import InUse, StateFolder
from tests.store.other_user import run_as_other_user


@pytest.fixture
def folder(tmp_path) -> StateFolder:
    state = StateFolder(tmp_path / "workspace" / ".notewell" / "main")
    state.ensure()
    return state


def test_the_folder_keeps_itself_out_of_git(folder):
    folder.ensure()
    assert (folder.path.parent / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert not (folder.path.parent.parent / ".gitignore").exists()


def test_a_folder_elsewhere_writes_no_gitignore(tmp_path):
    StateFolder(tmp_path / "state" / "main").ensure()
    assert list(tmp_path.rglob(".gitignore")) == []


def test_a_gitignore_of_the_user_is_left_alone(tmp_path):
    own = tmp_path / ".notewell" / ".gitignore"
    own.parent.mkdir()
    own.write_text("index-*\n", encoding="utf-8")
    StateFolder(tmp_path / ".notewell" / "main").ensure()
    assert own.read_text(encoding="utf-8") == "index-*\n"


def test_nothing_is_current_at_first(folder):
    assert folder.current() is None
    assert folder.next_index_path().name == "index-1.sqlite"
    assert folder.unfinished() == []


def test_what_is_newer_than_the_current_one_was_cut_short(folder):
    for number in range(3):
        folder.next_index_path().touch()
        if number == 1:
            folder.switch_to(folder.path / "index-2.sqlite")
    assert [path.name for path in folder.unfinished()] == ["index-3.sqlite"]


def test_switching_names_the_new_index(folder):
    for number in (1, 2):
        path = folder.next_index_path()
        assert path.name == f"index-{number}.sqlite"
        path.touch()
        folder.switch_to(path)
        assert folder.current() == path
    assert folder.unfinished() == []  # the first one was replaced, and may go at any time
    assert {file.name for file in folder.path.iterdir()} == {"CURRENT", "index-1.sqlite", "index-2.sqlite"}


@pytest.mark.parametrize("name", ["", "index-1", "../index-1.sqlite", "/etc/passwd", "index-1.sqlite/x", "\0"])
def test_a_pointer_to_anything_but_an_index_is_not_followed(folder, name):
    (folder.path / "index-1.sqlite").touch()
    (folder.path / "CURRENT").write_text(name, encoding="utf-8")
    assert folder.current() is None


def test_a_deleted_index_is_not_current(folder):
    folder.switch_to(folder.next_index_path())
    assert folder.current() is None


def test_superseded_files_go_with_their_side_files_and_corrupt_ones_stay(folder):
    for name in ("index-9.sqlite", "index-10.sqlite", "index-11.sqlite", "cache.sqlite"):
        for suffix in ("", "-wal", "-shm"):
            (folder.path / (name + suffix)).touch()
    kept = folder.set_aside(folder.path / "index-9.sqlite")
    folder.switch_to(folder.path / "index-11.sqlite")
    folder.remove_superseded()
    left = {file.name for file in folder.path.iterdir()}
    expected = {"CURRENT"} | {
        name + suffix for name in (kept.name, "index-11.sqlite", "cache.sqlite") for suffix in ("", "-wal", "-shm")
    }
    assert left == expected


def test_what_is_set_aside_is_whole_and_no_longer_current(folder):
    path = folder.next_index_path()
    path.write_bytes(b"corrupt")
    path.with_name(path.name + "-wal").write_bytes(b"log")
    folder.switch_to(path)
    kept = folder.set_aside(path)
    assert kept.name.startswith("index-1.sqlite.corrupt-")
    assert kept.read_bytes() == b"corrupt"
    assert kept.with_name(kept.name + "-wal").read_bytes() == b"log"
    assert folder.current() is None
    assert folder.next_index_path().name == "index-2.sqlite"
    assert folder.unfinished() == []


def test_setting_aside_what_is_already_gone_is_no_error(folder):
    path = folder.next_index_path()
    folder.switch_to(path)
    folder.set_aside(path)
    assert folder.current() is None


def test_one_writer_at_a_time(folder):
    other = StateFolder(folder.path)
    with folder.write_lock(1), pytest.raises(IndexBusyError, match="another process is indexing"), other.write_lock(0):
        pass
    with StateFolder(folder.path).write_lock(0):
        pass


@pytest.mark.slow
def test_a_waiting_writer_waits_for_as_long_as_the_one_at_work_gets_on_with_it(folder):
    """The holder works for longer than the patience of the one who waits, but is seen to write."""
    index = folder.path / "index-1.sqlite"
    held, done = threading.Event(), threading.Event()

    def work() -> None:
        with StateFolder(folder.path).write_lock(0):
            held.set()
            for _ in range(300):
                index.write_bytes(b"x")
                os.utime(index)
                time.sleep(0.01)
            done.set()

    worker = threading.Thread(target=work)
    worker.start()
    assert held.wait(60)
    with folder.write_lock(1.5):
        assert done.is_set()
    worker.join()


@pytest.mark.slow
def test_a_waiting_writer_may_give_up(folder):
    other = StateFolder(folder.path)
    with folder.write_lock(0), pytest.raises(IndexBusyError), other.write_lock(600, give_up=lambda: True):
        pass


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes no open file")
def test_an_index_in_use_is_deleted_after_its_last_user(folder):
    old, new = folder.path / "index-1.sqlite", folder.path / "index-2.sqlite"
    old.touch()
    new.touch()
    folder.switch_to(new)
    marks = [InUse(old), InUse(old)]
    for mark in marks:
        folder.remove_superseded()
        folder.remove_if_superseded(old)
        assert old.exists()
        mark.release()
    folder.remove_if_superseded(new)
    folder.remove_if_superseded(old)
    assert {path.name for path in folder.path.iterdir()} >= {"CURRENT", "index-2.sqlite"}
    assert not old.exists()
    assert not list(folder.path.glob("index-1*"))


def test_leftovers_of_killed_processes_are_cleaned_up(folder):
    for name in ("CURRENT.77.tmp", "index-3.sqlite-wal", "index-3.sqlite.in-use", "index-4.sqlite"):
        (folder.path / name).touch()
    (folder.path / "index-5.sqlite").touch()
    folder.switch_to(folder.path / "index-5.sqlite")
    folder.remove_superseded()
    assert {path.name for path in folder.path.iterdir()} == {"CURRENT", "index-5.sqlite"}


HOLD_LOCK = """
import sys
from pathlib import Path
from notewell.store.state_folder import StateFolder
with StateFolder(Path(sys.argv[1])).write_lock(5):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_a_killed_holder_lets_go(folder):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, os.fspath(folder.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout.readline().strip() == b"held"
    with pytest.raises(IndexBusyError), folder.write_lock(0):
        pass
    holder.kill()
    holder.communicate()
    with folder.write_lock(2):
        pass


def test_a_folder_that_can_be_written_says_so(folder, tmp_path):
    assert folder.writable()
    assert StateFolder(tmp_path / "not" / "there" / "yet").writable()


ASK = """
from pathlib import Path
from notewell.store.state_folder import StateFolder
folder = Path(sys.argv[1])
print(StateFolder(folder).writable(), StateFolder(folder / "deeper").writable())
"""


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_says_so(folder):
    assert run_as_other_user(ASK, folder.path).split() == ["False", "False"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("name", ["CURRENT", "WORKSPACE"])
@pytest.mark.parametrize("words", [["search", "printer"], ["status"], ["index"]])
def test_a_pipe_in_place_of_a_file_is_an_error_and_waits_for_nothing(workspace, name, words):
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
    (workspace / ".notewell" / "main" / name).unlink(missing_ok=True)
    os.mkfifo(workspace / ".notewell" / "main" / name)
    command = [sys.executable, "-m", "notewell", *words, "-w", str(workspace), "--set", "provider=none"]
    environ = {**os.environ, "NOTEWELL_CONFIG": os.devnull}
    done = subprocess.run(command, check=False, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3, done.stderr
    assert "not a regular file" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["CURRENT", "WORKSPACE"])
def test_a_file_that_is_far_too_large_is_an_error(workspace, name):
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
    with (workspace / ".notewell" / "main" / name).open("wb") as file:
        file.truncate(2**32)
    with pytest.raises(StoreError, match="too large"), Memory.open(workspace, provider="none") as memory:
        memory.search("printer")
