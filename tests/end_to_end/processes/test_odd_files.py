"""Files that change, vanish, block or are huge while they are indexed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

from notewell import Memory
from tests.indexing.contents import contents_of, faults_of, fresh_contents
from tests.indexing.embedders import WatchedEmbedder

pytestmark = pytest.mark.slow

REWRITER = """
import itertools, sys, time
from pathlib import Path

note, stop = Path(sys.argv[1]), Path(sys.argv[2])
for generation in itertools.count():
    word = f"generation{generation}"
    note.write_text(f"# Busy\\n\\n{word} begins.\\n" + "A line between.\\n" * (generation % 50) + f"\\n{word} ends.\\n")
    if stop.exists():
        break
print(word)
"""


def test_a_note_that_is_rewritten_all_the_time(workspace, tmp_path):
    note, stop = workspace / "memory/busy.md", tmp_path / "stop"
    note.write_text("# Busy\n", encoding="utf-8")
    rewriter = subprocess.Popen(
        [sys.executable, "-c", REWRITER, str(note), str(stop)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        while "generation" not in note.read_text(encoding="utf-8"):
            assert rewriter.poll() is None, rewriter.communicate()
            time.sleep(0.01)
        with Memory.open(workspace, provider="hashing") as memory:
            for _ in range(40):
                report = memory.index()
                assert report.problems == ()
                assert memory.search("guest network name", sync=False).hits[0].path == "memory/network.md"
                assert faults_of(memory) == []
            stop.touch()
            last, failure = rewriter.communicate(timeout=60)
            assert rewriter.returncode == 0, failure
            memory.index()
            assert memory.search(last.decode().strip(), sync=False).hits[0].path == "memory/busy.md"
            assert contents_of(memory) == fresh_contents(workspace, tmp_path / "fresh")
    finally:
        stop.touch()
        rewriter.communicate(timeout=60)


def test_notes_that_vanish_between_listing_and_reading(workspace, tmp_path):
    """The first progress report comes after the listing; from then on, notes that were listed are taken away."""
    for i in range(40):
        (workspace / f"memory/z{i:02}.md").write_text(f"# Z{i}\n\nText of subject{i}.\n", encoding="utf-8")
    doomed = [workspace / f"memory/z{i:02}.md" for i in range(20, 40)]

    def take_away(progress):
        for path in doomed:
            path.unlink(missing_ok=True)

    with Memory.open(workspace, provider="hashing") as memory:
        report = memory.index(progress=take_away)
        assert (report.added, report.problems) == (27, ())
        assert contents_of(memory) == fresh_contents(workspace, tmp_path / "fresh")


def test_known_notes_that_vanish_while_indexing_are_gone_after_the_next_run(workspace, tmp_path):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        for path in workspace.rglob("*.md"):
            path.write_text(path.read_text(encoding="utf-8") + "\nOne more line.\n", encoding="utf-8")

        def take_away(progress):
            (workspace / "memory/network.md").unlink(missing_ok=True)

        assert memory.index(progress=take_away).problems == ()
        assert "memory/network.md" not in [hit.path for hit in memory.search("guest network", sync=False).hits]
        memory.index()
        assert contents_of(memory) == fresh_contents(workspace, tmp_path / "fresh")


def test_notes_that_change_while_they_are_embedded(workspace, tmp_path):
    def change(texts):
        (workspace / "memory/network.md").write_text("# Network\n\nAll of it is new.\n", encoding="utf-8")

    with Memory.open(workspace, embedder=WatchedEmbedder(change)) as memory:
        memory.index()
        memory.index()
        assert contents_of(memory) == fresh_contents(workspace, tmp_path / "fresh")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
def test_a_pipe_with_the_name_of_a_note_is_reported_and_not_waited_for(workspace):
    os.mkfifo(workspace / "memory/x.md")
    with Memory.open(workspace, provider="hashing") as memory:
        report = memory.index()
    assert (report.added, report.complete) == (7, True)
    assert [(problem.path, problem.reason) for problem in report.problems] == [("memory/x.md", "is not a regular file")]


def test_a_note_that_turns_into_a_folder_and_back(workspace, tmp_path):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        note = workspace / "memory/network.md"
        note.unlink()
        note.mkdir()
        (note / "inner.md").write_text("# Inner\n\nAbout the quokka.\n", encoding="utf-8")
        assert memory.index().removed == 1
        assert memory.search("quokka").hits[0].path == "memory/network.md/inner.md"
        (note / "inner.md").unlink()
        note.rmdir()
        note.write_text("# Network\n\nBack again.\n", encoding="utf-8")
        memory.index()
        assert contents_of(memory) == fresh_contents(workspace, tmp_path / "fresh")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("The harbour of words goes on. " * 350_000, id="of words"),
        pytest.param("x" * 10_000_000, id="of one letter"),
    ],
)
def test_a_single_line_of_10_mb(workspace, line):
    (workspace / "memory/long.md").write_text(line + " quokka", encoding="utf-8")
    with Memory.open(workspace, provider="none") as memory:
        report = memory.index()
        assert (report.added, report.problems) == (8, ())
        assert memory.search("quokka", min_score=0).hits[0].path == "memory/long.md"
        assert memory.search("printer").hits[0].path == "memory/network.md"
        note = memory.get("memory/long.md")
        assert (len(note.text), note.truncated) == (12_000, True)


def test_2000_tiny_notes(tmp_path):
    for i in range(2_000):
        folder = tmp_path / f"memory/f{i % 20}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"n{i}.md").write_text(f"# N{i}\n\nsubject{i}\n", encoding="utf-8")
    with Memory.open(tmp_path, provider="hashing") as memory:
        report = memory.index()
        assert (report.added, report.embedded, report.pending) == (2_000, 2_000, 0)
        assert memory.index().unchanged == 2_000
        for i in range(0, 2_000, 333):
            assert f"memory/f{i % 20}/n{i}.md" in [hit.path for hit in memory.search(f"subject{i}").hits]
        assert faults_of(memory) == []


def test_the_state_folder_deleted_under_an_open_memory(workspace):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        memory.close()  # Windows does not let open files go
        shutil.rmtree(workspace / ".notewell")
        assert memory.search("printer").hits[0].path == "memory/network.md"
        assert memory.index().unchanged == 7


def test_an_open_memory_goes_on_when_another_process_deletes_the_index(workspace):
    if os.name == "nt":
        pytest.skip("Windows does not let open files go")
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        shutil.rmtree(workspace / ".notewell")
        answers = []
        threads = [
            threading.Thread(target=lambda: answers.append(memory.search("printer", keyword_only=True).hits))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 4
        assert memory.search("printer").hits[0].path == "memory/network.md"
