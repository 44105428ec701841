from __future__ import annotations

import _thread
import os
import subprocess
import sys
import threading
import time

import pytest

from notewell.embedding.local import inference
from notewell.embedding.local.inference import on_all_cores, usable_cores


@pytest.fixture(params=[1, 3], ids=["one core", "three cores"])
def cores(request, monkeypatch):
    monkeypatch.setattr(inference, "usable_cores", lambda: request.param)
    return request.param


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_results_keep_the_order_of_the_jobs(cores, count):
    assert on_all_cores(lambda job: job * 2, range(count)) == [job * 2 for job in range(count)]


def test_jobs_run_at_the_same_time(monkeypatch):
    monkeypatch.setattr(inference, "usable_cores", lambda: 3)
    together = threading.Barrier(3, timeout=30)  # breaks unless three jobs wait in it at once
    assert len(on_all_cores(lambda _: together.wait(), range(3))) == 3


def test_an_error_stops_the_rest(cores):
    started = []

    def work(job):
        started.append(job)
        if job == 0:
            raise ValueError("first")
        time.sleep(0.01)

    with pytest.raises(ValueError, match="first"):
        on_all_cores(work, range(500))
    assert len(started) < 500


def test_ctrl_c_stops_the_rest(cores):
    started = []

    def work(job):
        started.append(job)
        if job == 0:
            _thread.interrupt_main()
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        on_all_cores(work, range(500))
    assert len(started) < 500


def test_no_thread_is_left_behind(monkeypatch):
    monkeypatch.setattr(inference, "usable_cores", lambda: 3)
    before = set(threading.enumerate())
    on_all_cores(lambda job: job, range(10))
    assert set(threading.enumerate()) <= before  # threads of others may end meanwhile


def test_at_least_one_core():
    assert usable_cores() >= 1


@pytest.mark.slow
def test_onnxruntime_reports_its_use_to_nobody(tmp_path):
    """Its own telemetry keeps a device id and a database in the cache of the user, and sends what is in it."""
    pytest.importorskip("onnxruntime")
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    for number in range(30):
        (tmp_path / "notes" / "memory" / f"{number}.md").write_text(f"Ferry {number} leaves the harbour. " * 40)
    script = "from notewell import Memory; import sys\nwith Memory.open(sys.argv[1]) as memory: memory.index()"
    removed = {"ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"}
    environ = {name: value for name, value in os.environ.items() if name not in removed}
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\nassert 'onnxruntime' in sys.modules", str(tmp_path / "notes")],
        env=environ | {"HOME": str(home), "NOTEWELL_PROVIDER": "local"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in home.rglob("*") if "onnxruntime" in path.name or path.name == "deviceid"] == []
