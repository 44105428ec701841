"""`notewell watch`, `verify` and `doctor --fix` as people run them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import apsw
import pytest

from notewell import Memory


def test_verify_is_0_only_when_index_and_notes_are_equal(notewell, indexed):
    same = notewell("verify", "-w", indexed)
    assert (same.code, same.out.startswith("equal: 7 notes, ")) == (0, True)
    (indexed / "memory/new.md").write_text("# New\n", encoding="utf-8")
    other = notewell("verify", "-w", indexed)
    assert (other.code, "memory/new.md is not indexed" in other.out) == (1, True)
    assert "doctor --fix" in other.err
    document = notewell("verify", "-w", indexed, "--json").document
    assert (document["equal"], document["files"]) == (False, 7)
    assert "memory/new.md is not indexed" in document["findings"]


def test_verify_says_what_is_damaged(notewell, indexed):
    with Memory.open(indexed, provider="hashing") as memory:
        memory._components.folder.current().write_bytes(b"not a database " * 1000)
    done = notewell("verify", "-w", indexed, "--json")
    assert (done.code, done.document["equal"]) == (1, False)


def test_doctor_fix_mends_and_says_what_it_did(notewell, indexed):
    with Memory.open(indexed, provider="hashing") as memory:
        path = memory._components.folder.current()
    database = apsw.Connection(str(path))
    database.execute("DELETE FROM terms WHERE rowid = 2")
    database.close()
    assert notewell("doctor", "-w", indexed).code == 1
    done = notewell("doctor", "--fix", "-w", indexed)
    assert done.code == 0, done.out
    assert "have no keyword entry" in done.out.splitlines()[0]
    assert notewell("doctor", "-w", indexed).code == 0
    assert notewell("verify", "-w", indexed).code == 0


def test_doctor_fix_takes_in_what_changed(notewell, indexed):
    (indexed / "memory/new.md").write_text("# New\n\nAbout a quokka.\n", encoding="utf-8")
    done = notewell("doctor", "--fix", "-w", indexed)
    assert (done.code, done.out.splitlines()[0]) == (
        0,
        "ok   repaired  the index was brought up to date",
    )


@pytest.mark.slow
def test_watch_for_a_while_tells_what_it_did(notewell, workspace):
    done = notewell("watch", "--for", "0.3", "-w", workspace, "--json")
    assert done.code == 0, done.err
    document = done.document
    assert (document["added"], document["failures"]) == (7, 0)
    assert document["mode"] in {"events", "polling"}


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to send")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_watch_goes_on_until_it_is_stopped_and_ends_cleanly(workspace, how):
    env = {**os.environ, "NOTEWELL_PROVIDER": "hashing", "NOTEWELL_CONFIG": os.devnull}
    process = subprocess.Popen(
        [sys.executable, "-m", "notewell", "watch", "-w", str(workspace), "--set", "sync.watch_debounce_ms=50"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        text=True,
    )
    try:
        assert "7 new" in process.stdout.readline()
        (workspace / "memory/new.md").write_text("# New\n", encoding="utf-8")
        assert "1 new" in process.stdout.readline()
        process.send_signal(how)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, told
    assert "Traceback" not in told


@pytest.mark.slow
def test_watch_that_cannot_write_says_so(notewell, workspace):
    (workspace / ".notewell").write_text("in the way", encoding="utf-8")
    done = notewell("watch", "--for", "0.3", "-w", workspace, "--json")
    assert done.code == 1
    assert "cannot write to" in done.err
    assert json.loads(done.out)["failures"] >= 1
