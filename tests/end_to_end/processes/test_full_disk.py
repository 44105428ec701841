"""A full disk costs the work in flight: notes stay as they are, the index before it answers, and it recovers."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import pytest

from notewell import Memory
from tests.indexing.contents import contents_of, faults_of, fresh_contents

from .conftest import write_note
from .folders import small_disk

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("synced")]

SHARED_MEMORY_BYTES = 32_768  # SQLite's -shm file: to open an index in use, so much room is needed


def fingerprint(folder):
    """Return every note with the hash of its bytes."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*.md"))}


def run_notewell(*words, preexec=None, **environ):
    env = {**os.environ, "NOTEWELL_PROVIDER": "hashing", "NOTEWELL_CONFIG": os.devnull, **environ}
    return subprocess.run(
        [sys.executable, "-m", "notewell", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        preexec_fn=preexec,
        timeout=120,
    )


def fill(disk, *, leave_bytes):
    """Take all room of a disk but the last bytes."""
    free = os.statvfs(disk)
    (disk / "filler").write_bytes(b"\0" * max(0, free.f_bavail * free.f_frsize - leave_bytes))


@pytest.mark.parametrize("leave_kb", [0, 4, 40, 200])
def test_a_disk_that_fills_up_between_two_runs(notes, tmp_path, leave_kb):
    with small_disk(tmp_path / "disk", 8_192) as disk:
        store = f"store.path={disk / 'state'}"
        assert run_notewell("index", "-w", notes, "--set", store).returncode == 0
        for number in range(24, 120):
            write_note(notes / "memory", number)
        before = fingerprint(notes)
        fill(disk, leave_bytes=leave_kb * 1024)
        failed = run_notewell("index", "-w", notes, "--set", store, "--json")
        assert (failed.returncode, json.loads(failed.stdout)["error"]["kind"]) == (1, "disk_full"), failed.stderr
        assert "free some space" in failed.stderr
        assert "Traceback" not in failed.stderr
        assert fingerprint(notes) == before
        answered = run_notewell("search", "subject5x2", "-w", notes, "--set", store, "--no-sync", "--json")
        if leave_kb * 1024 < SHARED_MEMORY_BYTES and answered.returncode:
            assert json.loads(answered.stdout)["error"]["kind"] == "disk_full"
        else:
            assert json.loads(answered.stdout)["hits"][0]["path"] == "memory/note5.md", answered.stderr
        (disk / "filler").unlink()
        assert run_notewell("index", "-w", notes, "--set", store).returncode == 0
        with Memory.open(notes, provider="hashing", store__path=str(disk / "state")) as memory:
            assert faults_of(memory) == []
            assert contents_of(memory) == fresh_contents(notes, tmp_path / "fresh")


@pytest.mark.parametrize("size_kb", [16, 64, 300, 700])
def test_a_disk_too_small_for_the_first_index(notes, tmp_path, size_kb):
    before = fingerprint(notes)
    with small_disk(tmp_path / "disk", size_kb) as disk:
        failed = run_notewell("index", "-w", notes, "--set", f"store.path={disk}", "--json")
        assert (failed.returncode, json.loads(failed.stdout)["error"]["kind"]) == (1, "disk_full"), failed.stderr
        assert "Traceback" not in failed.stderr
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        assert run_notewell("index", "-w", notes, "--set", f"store.path={disk}").returncode == 0
        with Memory.open(notes, provider="hashing", store__path=str(disk)) as memory:
            assert faults_of(memory) == []
            assert contents_of(memory) == fresh_contents(notes, tmp_path / "fresh")
    assert fingerprint(notes) == before


def test_a_rebuild_without_room_leaves_the_old_index_in_use(notes, tmp_path):
    with small_disk(tmp_path / "disk", 8_192) as disk:
        store = f"store.path={disk / 'state'}"
        assert run_notewell("index", "-w", notes, "--set", store).returncode == 0
        fill(disk, leave_bytes=100_000)
        failed = run_notewell("index", "--force", "-w", notes, "--set", store, "--json")
        assert (failed.returncode, json.loads(failed.stdout)["error"]["kind"]) == (1, "disk_full"), failed.stderr
        answered = run_notewell("search", "subject5x2", "-w", notes, "--set", store, "--json")
        assert json.loads(answered.stdout)["hits"][0]["path"] == "memory/note5.md", answered.stderr
        (disk / "filler").unlink()
        rebuilt = run_notewell("index", "--force", "-w", notes, "--set", store, "--json")
        assert json.loads(rebuilt.stdout)["rebuilt"]
        with Memory.open(notes, provider="hashing", store__path=str(disk / "state")) as memory:
            assert faults_of(memory) == []
            assert len(list(memory._components.folder.path.glob("index-*.sqlite"))) == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on the size of a process's files")
@pytest.mark.parametrize("limit_kb", [0, 8, 64, 200])
def test_files_that_may_not_grow(notes, tmp_path, limit_kb):
    """A limit on file sizes needs no rights to set; the error is another one, but it is told, and nothing is lost."""
    import resource

    before = fingerprint(notes)
    with Memory.open(notes, provider="hashing") as memory:
        memory.index()
    for number in range(24, 60):
        write_note(notes / "memory", number)
    after = fingerprint(notes)

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_kb * 1024, limit_kb * 1024))

    failed = run_notewell("index", "--force", "-w", notes, "--json", preexec=limited)
    assert failed.returncode in {1, 3}
    assert json.loads(failed.stdout)["error"]["message"]
    assert "Traceback" not in failed.stderr
    assert fingerprint(notes) == after
    assert before.items() <= after.items()
    with Memory.open(notes, provider="hashing") as memory:
        assert faults_of(memory) == []
        assert memory.search("subject5x2", sync=False).hits[0].path == "memory/note5.md"
        memory.index()
        assert contents_of(memory) == fresh_contents(notes, tmp_path / "fresh")
