"""Ctrl-C and a killed command: what was done is kept, and the next run does only the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from notewell import Memory
from notewell.indexing.embedding_run import EMBED_BATCH
from tests.indexing.contents import contents_of, faults_of, fresh_contents

from .plug_in import install

pytestmark = pytest.mark.slow

# The embedder says that it has come to its third batch, then waits to be stopped.
WAIT_AT_THIRD_BATCH = """
        import os, time
        from pathlib import Path
        self.batches = getattr(self, "batches", 0) + 1
        if self.batches == 3 and os.environ.get("WAIT"):
            Path(os.environ["WAIT"]).touch()
            time.sleep(300)
"""


@pytest.fixture
def many_notes(tmp_path):
    folder = tmp_path / "many"
    (folder / "memory").mkdir(parents=True)
    for i in range(100):
        (folder / f"memory/n{i}.md").write_text(f"# Note {i}\n\nThe harbour keeps subject{i} in shed {i}.\n")
    return folder


@pytest.fixture
def slow_index(many_notes, tmp_path):
    """Start `notewell index` with an embedder that waits in its third batch; return once it waits."""
    site = install(tmp_path, "waiting", before=WAIT_AT_THIRD_BATCH)
    flag = tmp_path / "waits"
    env = {**os.environ, "NOTEWELL_CONFIG": os.devnull, "NOTEWELL_PROVIDER": "waiting", "PYTHONPATH": str(site)}
    started = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "notewell", "index", "-w", str(many_notes), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**env, "WAIT": str(flag)},
        )
        started.append(process)
        while not flag.exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        return process

    def again() -> dict[str, object]:
        done = subprocess.run(
            [sys.executable, "-m", "notewell", "index", "-w", str(many_notes), "--json"],
            capture_output=True,
            env=env,
            check=True,
        )
        return json.loads(done.stdout)

    yield start, again
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signal that reaches one process as Ctrl-C does")
@pytest.mark.parametrize("words", [(), ("--json",)], ids=["in words", "as JSON"])
def test_ctrl_c_keeps_what_is_done(slow_index, many_notes, tmp_path, words):
    start, again = slow_index
    process = start(*words)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"stopped; what was done so far is kept" in err
    assert b"Traceback" not in err
    if words:
        assert json.loads(out)["error"]["kind"] == "stopped"
    else:
        assert out == b""
    with Memory.open(many_notes, provider="hashing") as memory:
        assert faults_of(memory) == []
        status = memory.status()
        assert (status.files, status.chunks - status.pending) == (100, 2 * EMBED_BATCH)
    report = again()
    assert (report["unchanged"], report["embedded"], report["pending"]) == (100, 100 - 2 * EMBED_BATCH, 0)
    with Memory.open(many_notes, provider="hashing") as memory:
        assert contents_of(memory) == fresh_contents(many_notes, tmp_path / "fresh")


def test_a_killed_command_keeps_what_is_done_and_its_lock_is_free(slow_index, many_notes):
    start, again = slow_index
    process = start()
    process.kill()
    process.communicate()
    report = again()
    assert (report["unchanged"], report["embedded"], report["pending"]) == (100, 100 - 2 * EMBED_BATCH, 0)
    with Memory.open(many_notes, provider="hashing") as memory:
        assert faults_of(memory) == []


def test_while_another_process_indexes_a_search_answers_at_once_and_says_so(slow_index, many_notes):
    start, _ = slow_index
    start()
    with Memory.open(many_notes, provider="hashing") as memory:
        answer = memory.search("subject42")
        assert answer.hits[0].path == "memory/n42.md"
        assert answer.index.stale
        assert any("another process is indexing" in note for note in answer.notes)
        assert any("until `notewell index` has embedded them" in note for note in answer.notes)
