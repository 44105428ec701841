"""A remote run in a process of its own that is interrupted or killed: at most what was pending is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from tests.fakes.providers import FakeOpenAI

from .opening import open_memory

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals"),
]


@pytest.fixture
def many_notes(tmp_path):
    folder = tmp_path / "many"
    (folder / "memory").mkdir(parents=True)
    for number in range(400):
        text = f"# Note {number}\n\nThe harbour keeps subject{number} there. " + f"w{number} " * 300
        (folder / f"memory/n{number}.md").write_text(text + "\n")
    return folder


def indexing(folder, fake):
    command = [sys.executable, "-m", "notewell", "index", "-w", str(folder), "--json", "--set", "provider=openai"]
    environment = {**os.environ, "OPENAI_API_KEY": fake.key, "NOTEWELL_REMOTE__BASE_URL": fake.base_url}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_requests(fake, count, process):
    while len(fake.requests_to("embed")) < count:
        assert process.poll() is None, process.communicate()
        threading.Event().wait(0.005)


@pytest.mark.parametrize("after", [1, 6])
def test_a_killed_run_pays_again_only_for_what_was_pending(many_notes, after):
    with FakeOpenAI(latency=0.05) as fake:
        process = indexing(many_notes, fake)
        wait_for_requests(fake, after + 4, process)
        process.kill()
        process.communicate()
        # A request that the kill cut short came without its body: nobody pays for it.
        paid = sum(len(request.json["input"]) for request in fake.requests_to("embed") if request.json)
        with open_memory(many_notes, fake) as memory:
            report = memory.index()
            status = memory.status()
            assert (report.complete, status.pending) == (True, 0)
            with memory._components.index.use() as store:
                assert list(store.verify()) == []
        largest = max(len(request.json["input"]) for request in fake.requests_to("embed") if request.json)
        # Four pending and four that had come but were not stored yet.
        assert status.chunks - report.embedded >= paid - 8 * largest


def test_ctrl_c_ends_a_run_at_once_and_keeps_what_it_has(many_notes):
    with FakeOpenAI() as fake:
        process = indexing(many_notes, fake)
        wait_for_requests(fake, 3, process)
        fake.inject("hang", times=None)
        hanging = len(fake.requests_to("embed")) + 1
        try:
            wait_for_requests(fake, hanging, process)
        except AssertionError:
            pytest.skip("the run was over before the provider began to hang")
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)  # each of the requests would be waited for two minutes
        assert process.returncode == 130
        assert "error" in json.loads(told)
        fake.clear_faults()
        with open_memory(many_notes, fake) as memory:
            assert memory.search("subject7", sync=False).hits
            report = memory.index()
            assert report.pending == 0
            assert report.embedded < memory.status().chunks
