"""QMD that is dead, missing, hanging, noisy or of another version: the builtin index answers, and everybody is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from notewell import Memory
from notewell.search import qmd
from tests.end_to_end.clients import node
from tests.soak.fallback import Tally, search_with_random_failures

from .conftest import real_program

pytestmark = pytest.mark.slow

FAILURES = {
    "crash": "`qmd search` failed with exit code 1: Error: database disk image is malformed",
    "hang": "`qmd search` took longer than 1.0 s",
    "garbage": "`qmd search` printed no results that can be read",
    "flood": "`qmd search` printed more than 16 MB",
    "memory": "`qmd search` used more than 200 MB of memory",
    "killed": "`qmd search` failed with exit code -9: Cannot find package",
}


@pytest.mark.parametrize("how", FAILURES)
def test_the_builtin_index_answers_the_same_call(open_memory, stand_in, monkeypatch, how):
    memory = open_memory(stand_in, qmd__timeout_ms=20_000 if how == "memory" else 1000, qmd__max_rss_mb=200)
    memory.search("heron-guest")
    monkeypatch.setenv("QMD_STAND_IN", how)
    began = time.monotonic()
    answer = memory.search("heron-guest")
    assert time.monotonic() - began < (15 if how == "memory" else 4)
    assert (answer.backend, answer.fallback.instead_of) == ("builtin", "qmd")
    assert answer.fallback.reason.startswith(FAILURES[how])
    assert [hit.path for hit in answer.hits] == ["memory/network.md"]
    assert answer.notes[0] == f"QMD did not answer: {answer.fallback.reason}; the builtin index did"
    assert (memory.status().backend, memory.status().fallback) == ("builtin", answer.fallback)


@pytest.mark.parametrize("how", ["noise", "partial"])
def test_noise_is_survived(open_memory, stand_in, monkeypatch, how):
    memory = open_memory(stand_in)
    monkeypatch.setenv("QMD_STAND_IN", how)
    answer = memory.search("memory" if how == "partial" else "heron-guest")
    assert answer.backend == ("qmd" if how == "noise" else "builtin")
    assert answer.hits


def test_of_results_that_are_cut_off_those_before_the_cut_count(open_memory, stand_in, workspace, monkeypatch):
    for number in range(4):
        (workspace / f"memory/n{number}.md").write_text("tapir", encoding="utf-8")
    memory = open_memory(stand_in)
    monkeypatch.setenv("QMD_STAND_IN", "partial")
    answer = memory.search("tapir")
    assert (answer.backend, len(answer.hits)) == ("qmd", 2)
    assert "QMD's output was cut off after 2 results" in answer.notes


@pytest.mark.parametrize("command", ["no-such-qmd", "/nowhere/qmd", "~nobody-here/qmd"])
def test_missing(open_memory, command):
    memory = open_memory(command)
    answer = memory.search("heron-guest")
    assert answer.hits
    assert answer.fallback.reason == f"the program '{command}' was not found"
    assert memory.status().fallback == answer.fallback
    [check] = [check for check in memory.doctor() if check.name == "qmd"]
    assert (check.ok, check.detail) == (False, answer.fallback.reason)
    assert check.hint == "`npm install -g @tobilu/qmd`, or set qmd.command"


def test_it_disappears_and_comes_back(open_memory, stand_in, monkeypatch):
    monkeypatch.setattr(qmd, "FIRST_PAUSE_S", 0.05)
    memory = open_memory(stand_in)
    Path(stand_in).rename(f"{stand_in}-away")
    assert memory.search("heron-guest").backend == "builtin"
    Path(f"{stand_in}-away").rename(stand_in)
    time.sleep(0.1)
    assert memory.search("heron-guest").backend == "qmd"
    assert memory.status().fallback is None


def test_another_version(open_memory, stand_in, monkeypatch):
    monkeypatch.setenv("QMD_STAND_IN", "old")
    answer = open_memory(stand_in).search("heron-guest")
    assert (answer.backend, answer.fallback.reason) == ("builtin", "qmd 1.0.7 is not supported")


def test_another_version_put_in_its_place_later(open_memory, stand_in, monkeypatch):
    memory = open_memory(stand_in)
    monkeypatch.setenv("QMD_STAND_IN", "old")
    os.utime(stand_in, (1, 1))
    assert memory.search("heron-guest").fallback.reason == "qmd 1.0.7 is not supported"


def test_a_program_that_is_no_qmd(open_memory):
    answer = open_memory("true").search("heron-guest")
    assert answer.hits
    assert answer.fallback.reason == "the version of 'true' is not supported"


def test_a_real_qmd_that_is_too_old(open_memory, monkeypatch):
    answer = open_memory(real_program(monkeypatch, node.QMD_TOO_OLD)).search("heron-guest")
    assert answer.hits
    assert answer.fallback.reason == "qmd 1.0.7 is not supported"


def test_the_primary_is_tried_again_after_a_pause_that_grows(open_memory, stand_in, calls, state, monkeypatch):
    memory = open_memory(stand_in)
    monkeypatch.setenv("QMD_STAND_IN", "crash")
    pauses = []
    for _ in range(10):
        memory.search("heron-guest")
        values = json.loads((state / "notewell.json").read_text())
        pauses.append(round(values["troubles"]["search"]["retry_at"] - time.time()))
        asked = len(calls())
        assert memory.search("heron-guest").fallback.reason.startswith("`qmd search` failed")
        assert len(calls()) == asked  # not within the pause
        values["troubles"]["search"]["retry_at"] = 0
        (state / "notewell.json").write_text(json.dumps(values))
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    monkeypatch.delenv("QMD_STAND_IN")
    assert memory.search("heron-guest").backend == "qmd"
    assert json.loads((state / "notewell.json").read_text())["troubles"] == {}


def test_one_mode_that_fails_does_not_stop_the_others(open_memory, stand_in):
    memory = open_memory(stand_in)
    assert memory.search("heron-guest", mode="semantic").backend == "builtin"
    assert memory.search("heron-guest").backend == "qmd"
    assert (memory.status().backend, memory.status().fallback) == ("qmd", None)


def test_a_state_that_cannot_be_read_is_as_none(open_memory, stand_in, state):
    memory = open_memory(stand_in)
    for text in ("", "[]", "{", '{"troubles": 3}', '{"unknown": 1, "troubles": {}, "embedding": null}'):
        (state / "notewell.json").write_text(text)
        assert memory.search("heron-guest").hits
    memory.index()
    assert memory.search("heron-guest").backend == "qmd"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_folder_that_cannot_be_written(open_memory, stand_in, workspace):
    memory = open_memory(stand_in)
    memory.close()
    (workspace / ".notewell" / "main" / "qmd").chmod(0o500)
    try:
        assert memory.search("heron-guest").hits
    finally:
        (workspace / ".notewell" / "main" / "qmd").chmod(0o700)


def test_nothing_is_lost_when_it_fails_at_random(tmp_path):
    tally = search_with_random_failures(tmp_path, count=8, seed=7)
    assert tally.lost == 0
    assert set(tally.by_backend) == {"qmd", "builtin"}


def test_nothing_is_lost_in_1000_searches(tmp_path):
    tally: Tally = search_with_random_failures(tmp_path, count=1000, seed=1)
    assert tally.lost == 0
    assert tally.by_backend["qmd"] > 100
    assert tally.by_backend["builtin"] > 100


def test_many_threads_and_a_second_process_search_at_once(open_memory, stand_in, workspace, monkeypatch):
    memory = open_memory(stand_in, qmd__on_start=True)
    other = subprocess.Popen(
        [sys.executable, "-m", "notewell", "index", "-w", str(workspace)],
        env=os.environ | {"NOTEWELL_BACKEND": "qmd", "NOTEWELL_QMD__COMMAND": stand_in, "NOTEWELL_PROVIDER": "none"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    monkeypatch.setenv("QMD_STAND_IN", "random:3")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: memory.search("heron-guest"), range(40)))
    assert other.wait(60) == 0
    assert all([hit.path for hit in answer.hits] == ["memory/network.md"] for answer in answers)


def test_another_embedding_provider_is_a_fallback_too(workspace):
    with Memory.open(workspace, provider="openai", fallback="hashing") as memory:
        status = memory.status()
    assert status.backend == "builtin"
    assert status.fallback.instead_of == "openai"
    assert "needs an API key" in status.fallback.reason


# --- through the command -------------------------------------------------------------------------


def test_the_command_names_the_backend(notewell, open_memory, stand_in, workspace, monkeypatch):
    open_memory(stand_in).close()
    for key, value in {"BACKEND": "qmd", "QMD__COMMAND": stand_in, "PROVIDER": "none"}.items():
        monkeypatch.setenv(f"NOTEWELL_{key}", value)

    def run(*words: str):
        return notewell(*words, "-w", workspace)

    document = run("search", "heron-guest", "--json").document
    assert (document["backend"], document["fallback"]) == ("qmd", None)
    assert "answered by qmd 2.8.3 (search)" in run("search", "heron-guest").err
    status = run("status", "--json").document
    assert (status["backend"], status["fallback"]) == ("qmd", None)
    assert "backend    qmd" in run("status").out
    assert "qmd 2.8.3 (facd35e) answers" not in run("doctor").out

    monkeypatch.setenv("QMD_STAND_IN", "crash")
    document = run("search", "heron-guest", "--json").document
    reason = "`qmd search` failed with exit code 1: Error: database disk image is malformed"
    assert (document["backend"], document["fallback"]) == ("builtin", {"from": "qmd", "reason": reason})
    assert document["hits"]
    assert reason in run("search", "heron-guest").err
    status = run("status", "--json").document
    assert (status["backend"], status["fallback"]) == ("builtin", {"from": "qmd", "reason": reason})
    assert f"backend    builtin, in place of qmd: {reason}" in run("status").out
    assert reason in run("doctor").out
