"""Files and folders that are swapped, moved or renamed under the eyes of the indexer: no escape, no crash, no ghost."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading

import pytest

from notewell import Memory
from notewell.files.faults import planted
from notewell.indexing.embedding_run import EMBED_BATCH
from tests.indexing.contents import contents_of, faults_of, fresh_contents
from tests.indexing.embedders import WatchedEmbedder

from .conftest import write_note

pytestmark = pytest.mark.slow

LINKS = hasattr(os, "symlink") and os.name != "nt"


def at_first_read(act):
    """Return a look that acts once, after the listing and before the first file is read."""
    done = threading.Event()

    def look(point: str) -> None:
        if point == "index.read" and not done.is_set():
            done.set()
            act()

    return look


@pytest.mark.skipif(not LINKS, reason="making links needs rights here")
def test_a_note_replaced_by_a_link_between_listing_and_reading_is_not_followed(workspace, tmp_path):
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n\nThe canary sings at midnight.\n", encoding="utf-8")

    def swap() -> None:
        for path in list((workspace / "memory").rglob("*.md")):
            path.unlink()
            path.symlink_to(secret)

    with Memory.open(workspace, provider="hashing") as memory, planted(at_first_read(swap)):
        report = memory.index()
        assert report.problems
        assert memory.search("canary midnight", sync=False).hits == ()
        memory.index()
        assert memory.search("canary midnight", sync=False).hits == ()
        assert faults_of(memory) == []


@pytest.mark.skipif(not LINKS, reason="making links needs rights here")
def test_a_folder_replaced_by_a_link_between_listing_and_reading_is_not_followed(workspace, tmp_path):
    outside = tmp_path / "outside"
    shutil.copytree(workspace / "memory", outside)
    for path in outside.rglob("*.md"):
        path.write_text("# Secret\n\nThe canary sings at midnight.\n", encoding="utf-8")

    def swap() -> None:
        shutil.rmtree(workspace / "memory")
        (workspace / "memory").symlink_to(outside)

    with Memory.open(workspace, provider="hashing") as memory, planted(at_first_read(swap)):
        memory.index()
        assert memory.search("canary midnight", sync=False).hits == ()


def test_a_note_that_becomes_a_folder_and_a_folder_that_becomes_a_note(workspace, tmp_path):
    def swap() -> None:
        (workspace / "memory/network.md").unlink()
        (workspace / "memory/network.md").mkdir()
        shutil.rmtree(workspace / "memory/projects")
        (workspace / "memory/projects").write_text("no folder any more", encoding="utf-8")

    with Memory.open(workspace, provider="hashing") as memory:
        with planted(at_first_read(swap)):
            memory.index()
        memory.index()
        assert contents_of(memory) == fresh_contents(workspace, tmp_path / "fresh")


def test_a_rename_in_case_only(workspace, tmp_path):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        (workspace / "memory/network.md").rename(workspace / "memory/Network.md")
        report = memory.index()
        assert report.embedded == 0
        paths = {chunk.path for chunk in contents_of(memory)}
        assert "memory/Network.md" in paths
        assert "memory/network.md" not in paths
        assert contents_of(memory) == fresh_contents(workspace, tmp_path / "fresh")


def test_a_tree_moved_at_once_is_embedded_no_second_time(notes, tmp_path):
    with Memory.open(notes, provider="hashing") as memory:
        memory.index()
        chunks = memory.status().chunks
        (notes / "memory").rename(notes / "moving")
        (notes / "memory").mkdir()
        (notes / "moving").rename(notes / "memory/deep")
        report = memory.index()
        assert (report.renamed, report.removed, report.embedded, report.reused) == (24, 0, 0, chunks)
        assert contents_of(memory) == fresh_contents(notes, tmp_path / "fresh")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_storm_of_checkouts_ends_like_a_fresh_index(notes, tmp_path):
    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words], cwd=notes, check=True,
            capture_output=True, timeout=60,
        )  # fmt: skip

    git("init", "-b", "one")
    git("add", "memory")
    git("commit", "-m", "one")
    git("checkout", "-b", "two")
    for number in range(0, 24, 2):
        write_note(notes / "memory", number, generation=5)
    (notes / "memory/note3.md").unlink()
    git("add", "-A", "memory")
    git("commit", "-m", "two")
    stop = threading.Event()

    def storm() -> None:
        for _ in range(15):
            for branch in ("one", "two"):
                git("checkout", branch)
        stop.set()

    thread = threading.Thread(target=storm)
    with Memory.open(notes, provider="hashing") as memory:
        memory.index()
        thread.start()
        runs = 0
        while not stop.is_set():
            memory.index()
            runs += 1
            assert faults_of(memory) == []
        thread.join()
        memory.index()
        assert runs
        assert contents_of(memory) == fresh_contents(notes, tmp_path / "fresh")


# --- rebuilds and those who read ------------------------------------------------------------------

READER = """
import sys
from notewell import Memory
with Memory.open(sys.argv[1], provider="hashing") as memory, memory._components.index.use() as store:
    with store.reading() as snapshot:
        print(snapshot.counts().chunks, flush=True)
        sys.stdin.readline()
    from concurrent.futures import ThreadPoolExecutor
    def ask(_):
        with store.reading() as snapshot:
            return snapshot.counts().chunks
    with ThreadPoolExecutor(4) as pool:  # threads that open connections of their own, to a file long replaced
        print(sum(pool.map(ask, range(8))) // 8, flush=True)
        sys.stdin.readline()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes no open file; its own rule is the same")
def test_an_old_index_is_deleted_when_its_last_reader_is_gone(notes):
    import sys

    with Memory.open(notes, provider="hashing") as memory:
        memory.index()
        old, chunks = memory._components.folder.current(), memory.status().chunks
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(notes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert int(reader.stdout.readline()) == chunks
        with Memory.open(notes, provider="hashing") as memory:
            memory.index(force=True)
            assert memory._components.folder.current() != old
            assert old.exists()
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert int(reader.stdout.readline()) == chunks
    finally:
        reader.communicate("\n", timeout=60)
    assert reader.returncode == 0
    assert not old.exists()  # the reader took it away when it closed
    left = {path.name for path in old.parent.iterdir()}
    assert not [name for name in left if name.startswith(old.name)], left


def test_a_killed_rebuild_embeds_at_most_one_batch_again(worker, notes, tmp_path):
    """Killed at many points of embedding; what the next run embeds is what was left, and one batch."""
    with Memory.open(notes, embedder=WatchedEmbedder(dimensions=128), cache__enabled=False) as memory:
        memory.index()
        chunks = memory.status().chunks
    calls = worker.index(
        shutil.copytree(notes, tmp_path / "counted"), profile=True, cache=False, count="embed_documents"
    )["calls"]
    assert calls == -(-chunks // EMBED_BATCH)
    for batch in range(1, calls + 1):
        folder = shutil.copytree(notes, tmp_path / f"batch{batch}")
        assert worker.index(folder, profile=True, cache=False, count="embed_documents", kill_at_call=batch)["killed"]
        embedder = WatchedEmbedder()
        with Memory.open(folder, embedder=embedder, cache__enabled=False) as memory:
            assert memory.search("subject5x2", sync=False).hits[0].path == "memory/note5.md"
            report = memory.index()
            assert (report.rebuilt, report.pending) == (True, 0)
            done = (batch - 1) * EMBED_BATCH
            assert chunks - done <= embedder.embedded <= chunks - done + EMBED_BATCH
            assert faults_of(memory) == []
