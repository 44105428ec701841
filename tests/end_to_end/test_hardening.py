"""What an attack from outside found: size, moved workspaces, foreign locks, folders in the way, hard links, depth."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from contextlib import suppress

import apsw
import pytest

from notewell import Memory, NotewellError, RememberError, WorkspaceError
from notewell.cli.main import run
from notewell.embedding.hashing import HashingEmbedder
from notewell.errors import IndexReadOnlyError
from notewell.memory.note_files import MOST_FOLDERS, NoteFiles
from notewell.store.sqlite.snapshot import SqliteSnapshot

SESSIONS = {"sources": ["memory", "sessions"], "experimental__session_memory": True}


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Memory\n\nThe pelican lives at the harbour.\n")
    return folder


def everything_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


# --- size ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_note_beyond_the_limit_is_reported_and_not_read(notes):
    with (notes / "memory" / "huge.md").open("wb") as file:
        file.truncate(2 * 10**9)
    script = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 * 10**9 // 2, resource.RLIM_INFINITY))\n"
        "from notewell import Memory\n"
        "with Memory.open(sys.argv[1], provider='none') as memory:\n"
        "    print(memory.index().problems)\n"
        "    print(memory.search('pelican').hits[0].path)\n"
        "    print(memory.verify().findings)\n"
        "    try: memory.get('memory/huge.md')\n"
        "    except Exception as error: print(type(error).__name__, error, error.hint)\n"
        "    try: memory.remember('more', to='memory/huge.md')\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
        "    print(memory.forget(match='pelican', for_good=True).problems)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, notes], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    problems, hit, findings, got, remembered, forgotten = done.stdout.splitlines()
    for line in (problems, findings, forgotten):
        assert "memory/huge.md" in line
        assert "larger than 64 MB" in line
    assert hit == "MEMORY.md"
    assert got.startswith("NoteUnreadableError")
    assert got.endswith("split it into several notes")
    assert "too large" in remembered
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1_500_000  # kilobytes


def test_verify_reads_the_text_of_a_chunk_once(notes, monkeypatch):
    for number in range(60):
        (notes / "memory" / f"n{number}.md").write_text(f"# Note {number}\n\nthe same few words again\n")
    asked = 0
    chunks = SqliteSnapshot.chunks

    def counted(self, ids):
        nonlocal asked
        found = chunks(self, ids)
        asked += len(found)
        return found

    with Memory.open(notes, provider="none") as memory:
        memory.index()
        monkeypatch.setattr(SqliteSnapshot, "chunks", counted)
        verified = memory.verify()
    assert (verified.findings, verified.chunks) == ((), 61)
    assert asked <= 3 * verified.chunks


# --- a workspace that moved away -----------------------------------------------------------------


CALLS = {
    "search": lambda memory: memory.search("pelican"),
    "search without sync": lambda memory: memory.search("pelican", sync=False),
    "index": lambda memory: memory.index(),
    "sync": lambda memory: memory.sync(),
    "get": lambda memory: memory.get("MEMORY.md"),
    "files": lambda memory: memory.files(),
    "status": lambda memory: memory.status(),
    "doctor": lambda memory: memory.doctor(),
    "doctor, fixing": lambda memory: memory.doctor(fix=True),
    "verify": lambda memory: memory.verify(),
    "preview": lambda memory: memory.preview(),
    "remember": lambda memory: memory.remember("the wifi is heron"),
    "forget": lambda memory: memory.forget(match="pelican", for_good=True),
    "a conversation": lambda memory: memory.conversations.create("new"),
    "background sync": lambda memory: memory.begin_session(),
}


@pytest.mark.parametrize("elsewhere", [False, True], ids=["state inside", "state outside"])
@pytest.mark.parametrize("call", CALLS)
def test_a_workspace_that_moved_away_is_an_error(notes, tmp_path, call, elsewhere):
    options = {"store__path": str(tmp_path / "state" / "{agent}")} if elsewhere else {}
    with Memory.open(notes, provider="none", **SESSIONS, **options) as memory:
        memory.index()
        memory.conversations.create("old")
        notes.rename(tmp_path / "moved")
        with pytest.raises(WorkspaceError, match="is gone: it was moved"):
            CALLS[call](memory)
        assert not notes.exists()
        (tmp_path / "moved").rename(notes)
        assert memory.search("pelican").hits


KEPT_CALLS = {
    "list": lambda store: store.list(),
    "list, archived": lambda store: store.list(archived=True),
    "get": lambda store: store.get("old"),
    "exists": lambda store: store.exists("old"),
    "search": lambda store: store.search("pelican"),
    "ids": lambda store: store.ids(),
    "append": lambda store: store.append("old", {"role": "user", "content": "pelican"}),
    "compact": lambda store: store.compact("old", "summary"),
    "delete": lambda store: store.delete("old"),
    "archive": lambda store: store.archive("old"),
    "export": lambda store: list(store.export_jsonl("old")),
    "repair": lambda store: store.repair("old"),
    "sweep": lambda store: store.sweep(),
    "rebuild the registry": lambda store: store.rebuild_registry(),
}


@pytest.mark.parametrize("in_its_place", ["nothing", "an empty folder"])
@pytest.mark.parametrize("call", KEPT_CALLS)
def test_a_store_that_was_kept_knows_that_its_workspace_moved_away(notes, tmp_path, call, in_its_place):
    with Memory.open(notes, provider="none", **SESSIONS) as memory:
        memory.index()
        kept = memory.conversations
        kept.create("old")
        notes.rename(tmp_path / "moved")
        if in_its_place == "an empty folder":
            notes.mkdir()
        with pytest.raises(WorkspaceError, match="is gone: it was moved"):
            KEPT_CALLS[call](kept)
        assert not notes.exists() or list(notes.iterdir()) == []
        if notes.exists():
            notes.rmdir()
        (tmp_path / "moved").rename(notes)
        assert [entry.session_id for entry in kept.list()] == ["old"]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["state inside", "state outside"])
@pytest.mark.parametrize("call", CALLS)
def test_an_empty_folder_in_the_place_of_the_workspace_is_an_error(notes, tmp_path, call, elsewhere):
    options = {"store__path": str(tmp_path / "state" / "{agent}")} if elsewhere else {}
    with Memory.open(notes, provider="none", **SESSIONS, **options) as memory:
        memory.index()
        memory.conversations.create("old")
        notes.rename(tmp_path / "moved")
        notes.mkdir()
        with pytest.raises(WorkspaceError, match="a folder without notes is in its place"):
            CALLS[call](memory)
        assert not list(notes.iterdir())
        notes.rmdir()
        (tmp_path / "moved").rename(notes)
        assert memory.search("pelican").hits


def test_a_workspace_deleted_and_made_again_empty_is_an_error(notes):
    """File systems give the new folder the number of the old one."""
    with Memory.open(notes, provider="none") as memory:
        memory.index()
        shutil.rmtree(notes)
        notes.mkdir()
        with pytest.raises(WorkspaceError, match="a folder without notes is in its place"):
            memory.search("pelican")
        assert not list(notes.iterdir())


def test_a_workspace_restored_from_a_copy_is_used(notes, tmp_path):
    with Memory.open(notes, provider="none") as memory:
        memory.index()
        shutil.copytree(notes, tmp_path / "copy")
        shutil.rmtree(tmp_path / "copy" / ".notewell")
        notes.rename(tmp_path / "moved")
        (tmp_path / "copy").rename(notes)
        assert memory.search("pelican").hits


def test_deleting_index_or_notes_is_no_move(notes, tmp_path):
    with Memory.open(notes, provider="none") as memory:
        memory.index()
        shutil.rmtree(notes / ".notewell")
        assert memory.search("pelican").hits
    for path in notes.iterdir():
        if path.name != ".notewell":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    with Memory.open(notes, provider="none", store__path=str(tmp_path / "state")) as memory:
        assert not memory.search("pelican").hits
    empty = tmp_path / "new"
    empty.mkdir()
    with Memory.open(empty, provider="none") as memory:
        assert not memory.search("pelican").hits


def test_the_last_note_of_a_folder_with_its_state_elsewhere_can_be_deleted(tmp_path):
    (tmp_path / "notes").mkdir()
    note = tmp_path / "notes/MEMORY.md"
    note.write_text("a pelican\n", encoding="utf-8")
    with Memory.open(tmp_path / "notes", provider="none", store__path=str(tmp_path / "state")) as memory:
        assert memory.search("pelican").hits
        note.unlink()
        assert not memory.search("pelican").hits
        assert memory.status().files == 0


@pytest.mark.parametrize("elsewhere", [False, True], ids=["state inside", "state outside"])
def test_the_background_creates_and_removes_nothing_when_an_empty_folder_takes_the_place(notes, tmp_path, elsewhere):
    options = {"store__path": str(tmp_path / "state" / "{agent}")} if elsewhere else {}
    with Memory.open(notes, provider="none", **SESSIONS, **options) as memory:
        store, parts = memory.conversations, memory._components
        memory.index()
        indexed = memory.status().files
        notes.rename(tmp_path / "moved")
        notes.mkdir()
        for work in (
            lambda: store.create("new"),
            parts.sync.run,
            lambda: parts.sync.before_search(1.0, embed=False),
            lambda: parts.sync.background.request() or parts.sync.background.wait(5),
            lambda: NoteFiles(notes).append("MEMORY.md", "the wifi is heron"),
        ):
            with suppress(NotewellError):
                work()
            assert not list(notes.iterdir())
        notes.rmdir()
        (tmp_path / "moved").rename(notes)
        assert memory.status().files == indexed == 1


def test_parts_in_use_create_nothing_in_the_old_place(notes, tmp_path):
    with Memory.open(notes, provider="none", **SESSIONS) as memory:
        store = memory.conversations
        parts = memory._components
        memory.index()
        notes.rename(tmp_path / "moved")
        for work in (
            lambda: store.create("new"),
            parts.sync.run,
            lambda: parts.sync.before_search(1.0, embed=False),
            lambda: parts.sync.background.request() or parts.sync.background.wait(5),
        ):
            with suppress(NotewellError):
                work()
            assert not notes.exists()


# --- a long query --------------------------------------------------------------------------------


def test_a_long_query_is_not_echoed(notes, capsys):
    query = "pelican " * 20_000
    with Memory.open(notes, provider="none") as memory:
        answer = memory.search(query)
    assert len(answer.query) <= 400
    assert answer.hits
    assert run(["search", query[:100_000], "--json", "-w", str(notes), "--set", "provider=none"]) == 0
    assert len(capsys.readouterr().out) < 5_000


@pytest.mark.parametrize(
    "call",
    [
        lambda memory, text: memory.get(f"memory/{text}.md"),
        lambda memory, text: memory.remember("x", to=text),
        lambda memory, text: memory.conversations.get(text),
        lambda memory, text: memory.search("x", since=text),
        lambda memory, text: memory.forget(session=text),
        lambda memory, text: memory.forget(path=text),
    ],
)
def test_no_error_repeats_a_long_input(notes, call):
    with Memory.open(notes, provider="none") as memory, pytest.raises(NotewellError) as raised:
        call(memory, "q" * 1_000_000)
    assert len(str(raised.value)) + len(raised.value.hint) < 5_000


# --- media, folders, locks -----------------------------------------------------------------------


@pytest.mark.parametrize("call", [["cache", "clear"], ["cache", "prune", "--older-than", "0d"]])
def test_the_cache_of_a_read_only_medium_cannot_be_cleared(notes, capsys, monkeypatch, call):
    with Memory.open(notes, embedder=HashingEmbedder()) as memory:
        memory.index()
        cache = memory.cache
        held = cache.stats().entries
    assert held
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: not mode & os.W_OK and access(path, mode, **more))
    assert run([*call, "-w", str(notes)]) != 0
    told = capsys.readouterr()
    assert "read-only: nothing was deleted" in told.err
    assert "deleted" not in told.out
    with pytest.raises(IndexReadOnlyError):
        cache.keep_only([])
    monkeypatch.undo()
    with Memory.open(notes, provider="none") as memory:
        assert memory.cache.stats().entries == held


@pytest.mark.parametrize("name", ["CURRENT", "cache.sqlite", "write.lock", "index-1.sqlite"])
def test_doctor_fixes_a_folder_where_a_file_belongs(notes, name):
    with Memory.open(notes, embedder=HashingEmbedder()) as memory:
        memory.index()
        state = memory._components.folder.path
    for path in state.glob(f"{name}*"):
        path.unlink()
    (state / name).mkdir()
    (state / name / "mine.txt").write_text("of a person")
    with Memory.open(notes, embedder=HashingEmbedder()) as memory:
        checks = memory.doctor(fix=True)
        assert any("a folder was in the way" in check.detail for check in checks if check.name == "repaired")
        assert [check for check in memory.doctor() if not check.ok] == []
        assert memory.search("pelican").hits
    assert [path.read_text() for path in state.glob(f"{name}.corrupt-*/mine.txt")] == ["of a person"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes that have a name")
@pytest.mark.parametrize("name", ["CURRENT", "cache.sqlite", "write.lock", "index-1.sqlite"])
def test_doctor_fixes_a_pipe_where_a_file_belongs(notes, name):
    with Memory.open(notes, embedder=HashingEmbedder()) as memory:
        memory.index()
        state = memory._components.folder.path
    for path in state.glob(f"{name}*"):
        path.unlink()
    os.mkfifo(state / name)
    with Memory.open(notes, embedder=HashingEmbedder()) as memory:
        memory.doctor(fix=True)
        assert [check for check in memory.doctor() if not check.ok] == []
        assert memory.search("pelican").hits


@pytest.mark.parametrize("held", ["a pipe", "brackets"])
def test_a_search_does_not_wait_for_a_list_of_moved_lines_that_is_none(notes, held):
    with Memory.open(notes, embedder=HashingEmbedder()) as memory:
        memory.index()
        if held == "brackets":
            memory._parts.moved_file.write_text("[" * 100_000)
        elif hasattr(os, "mkfifo"):
            os.mkfifo(memory._parts.moved_file)
        assert memory.search("pelican").hits


@pytest.mark.slow
@pytest.mark.parametrize("database", ["index-1.sqlite", "cache.sqlite"])
def test_a_foreign_lock_holds_a_search_no_longer_than_its_budget(notes, database):
    with Memory.open(notes, embedder=HashingEmbedder(), sync__search_budget_ms=800) as memory:
        memory.index()
        foreign = apsw.Connection(str(memory._components.folder.path / database))
        foreign.execute("BEGIN IMMEDIATE")
        (notes / "memory" / "new.md").write_text("# New\n\nA heron came.\n")
        started = time.monotonic()
        answer = memory.search("pelican")
        assert time.monotonic() - started < 2.5
        assert answer.hits
        foreign.execute("ROLLBACK")
        foreign.close()
        memory.index()
        assert memory.search("heron").hits


# --- hard links and depth ------------------------------------------------------------------------


def test_forgetting_a_note_with_another_name_says_that_the_text_stays_there(notes, tmp_path):
    other = tmp_path / "other.md"
    os.link(notes / "MEMORY.md", other)
    with Memory.open(notes, provider="none") as memory:
        report = memory.forget(match="pelican", for_good=True)
    assert [problem.path for problem in report.problems] == ["MEMORY.md"]
    assert "hard link" in report.problems[0].reason
    assert "pelican" in other.read_text()


def test_a_file_with_two_names_is_indexed_once_and_written_under_one(notes):
    os.link(notes / "MEMORY.md", notes / "memory" / "again.md")
    with Memory.open(notes, provider="none") as memory:
        assert memory.index().added == 1
        memory.remember("the heron came", to="MEMORY.md")
    assert "heron" not in (notes / "memory" / "again.md").read_text()


def test_remember_makes_folders_up_to_a_depth(notes):
    with Memory.open(notes, provider="none") as memory:
        deepest = "memory/" + "d/" * (MOST_FOLDERS - 1) + "note.md"
        assert memory.remember("the heron came", to=deepest).path == deepest
        before = everything_below(notes / "memory")
        with pytest.raises(RememberError, match=f"at most {MOST_FOLDERS}"):
            memory.remember("the stork went", to="memory/" + "x/" * MOST_FOLDERS + "note.md")
        made = set(everything_below(notes / "memory")) - set(before)
        assert len(made) <= MOST_FOLDERS
        by_hand = notes / "memory" / ("y/" * MOST_FOLDERS)
        by_hand.mkdir(parents=True)
        assert memory.remember("a crane stands", to="memory/" + "y/" * MOST_FOLDERS + "note.md")
