"""A program in its own process group: what it printed, or why it was ended, and nothing of it left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from notewell.files.bounded_process import LimitExceededError, run_bounded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX")

GROWING = "kept = []\nwhile True: kept.append(b'x' * 1_000_000); __import__('time').sleep(0.001)"


def run(tmp_path: Path, *words: str, timeout_s: float = 20, max_rss_mb: int = 500, **options):
    return run_bounded(
        words, folder=tmp_path, environment=dict(os.environ), timeout_s=timeout_s, max_rss_mb=max_rss_mb, **options
    )


def ends(pid: int) -> bool:
    """Return whether a process ends soon: a killed one takes a moment, and its parent may not ask for its end."""
    for _ in range(100):
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout
        if not state.strip() or state.startswith("Z"):
            return True
        time.sleep(0.05)
    return False


def test_what_it_printed_and_how_it_ended(tmp_path):
    done = run(tmp_path, "sh", "-c", "pwd; printf 'f\\374r' >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{tmp_path}\n", "f\ufffdr")


def test_a_program_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError):
        run(tmp_path, str(tmp_path / "nothing"))


def test_its_whole_group_ends_at_the_time_limit(tmp_path):
    script = f"sleep 600 & echo $! > {tmp_path}/pid; sleep 600"
    began = time.monotonic()
    with pytest.raises(LimitExceededError, match=r"took longer than 0\.5 s"):
        run(tmp_path, "sh", "-c", script, timeout_s=0.5)
    assert time.monotonic() - began < 5
    assert ends(int((tmp_path / "pid").read_text()))


def test_a_process_that_it_left_behind_is_not_waited_for(tmp_path):
    began = time.monotonic()
    done = run(tmp_path, "sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; echo done")
    assert done.stdout == "done\n"
    assert time.monotonic() - began < 5
    assert ends(int((tmp_path / "pid").read_text()))


def test_a_program_that_closes_its_output_and_goes_on_is_ended_too(tmp_path):
    with pytest.raises(LimitExceededError, match="took longer"):
        run(tmp_path, "sh", "-c", "exec >&- 2>&-; sleep 600", timeout_s=0.3)


def test_what_it_prints_just_before_its_end_is_not_lost(tmp_path, monkeypatch):
    """As when it prints and ends after its pipes were looked at, and before it is asked whether it has ended."""
    monkeypatch.setattr(subprocess.Popen, "poll", lambda process: process.wait())
    assert run(tmp_path, "sh", "-c", "sleep 0.2; echo late").stdout == "late\n"


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_it_may_print_16_mb(tmp_path, stream):
    with pytest.raises(LimitExceededError, match="printed more than 16 MB"):
        run(tmp_path, "sh", "-c", f"yes {stream}")


@pytest.mark.slow
def test_its_memory_is_limited(tmp_path):
    with pytest.raises(LimitExceededError, match="used more than 100 MB of memory"):
        run(tmp_path, "sh", "-c", f'{sys.executable} -c "{GROWING}"', max_rss_mb=100)


def test_it_can_be_stopped(tmp_path):
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    with pytest.raises(LimitExceededError, match="was stopped"):
        run(tmp_path, "sleep", "600", stop=stop)
