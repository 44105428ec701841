"""Several processes at once: two that write, several that read, one that rebuilds."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from notewell import Memory
from tests.indexing.contents import contents_of, faults_of, fresh_contents
from tests.soak.readers import measure

pytestmark = pytest.mark.slow

WRITER = """
import sys
from pathlib import Path
from notewell import Memory

folder, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with Memory.open(folder, provider="hashing") as memory:
    for i in range(rounds):
        (folder / f"memory/{name}{i}.md").write_text(f"# {name} {i}\\n\\nWritten by {name}: subject{name}{i}.\\n")
        report = memory.index(force=name == "two" and i % 4 == 3)
        assert report.complete and not report.problems, report
"""
READER = """
import json, sys
from pathlib import Path
from notewell import Memory

folder, stop = sys.argv[1], Path(sys.argv[2])
asked = 0
with Memory.open(folder, provider="hashing") as memory:
    while not stop.exists() or asked < 5:
        answer = memory.search("guest network name", sync=asked % 2 == 0)
        assert answer.hits and answer.hits[0].path == "memory/network.md", answer
        asked += 1
print(json.dumps({"asked": asked}))
"""
ROUNDS = 12


def start(script, *arguments):
    env = {**os.environ, "NOTEWELL_CONFIG": os.devnull, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    )


def end(process):
    """Wait for the end and return what was printed; fails with the traceback of the process."""
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err.decode()
    return out


def test_two_writers_and_several_readers_never_see_an_error_and_lose_nothing(workspace, tmp_path):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
    stop = tmp_path / "stop"
    readers = [start(READER, workspace, stop) for _ in range(4)]
    writers = [start(WRITER, workspace, name, ROUNDS) for name in ("one", "two")]
    try:
        for writer in writers:
            end(writer)
    finally:
        stop.touch()
    for reader in readers:
        assert json.loads(end(reader))["asked"] >= 5
    with Memory.open(workspace, provider="hashing") as memory:
        assert memory.index().embedded == 0  # every write was taken in by then
        assert memory.status().files == 7 + 2 * ROUNDS
        assert faults_of(memory) == []
        assert contents_of(memory) == fresh_contents(workspace, tmp_path / "fresh")
        for name in ("one", "two"):
            for i in range(ROUNDS):
                found = memory.search(f"subject{name}{i}", sync=False).hits
                assert f"memory/{name}{i}.md" in [hit.path for hit in found[:2]]
        assert not list(memory._components.folder.path.glob("*damaged*"))


def test_first_runs_that_start_together_make_one_index(workspace, tmp_path):
    env = {**os.environ, "NOTEWELL_CONFIG": os.devnull, "NOTEWELL_PROVIDER": "hashing"}
    command = [sys.executable, "-m", "notewell", "index", "-w", str(workspace), "--json"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) for _ in range(4)]
    reports = [json.loads(end(process)) for process in processes]
    assert sum(report["added"] for report in reports) == 7
    with Memory.open(workspace, provider="hashing") as memory:
        assert contents_of(memory) == fresh_contents(workspace, tmp_path / "fresh")
        assert len(list(memory._components.folder.path.glob("index-*.sqlite"))) == 1


def test_eight_readers_two_writers_and_rebuilds_for_a_while(tmp_path):
    """The short form of `python -m tests.soak readers`: no error, nothing lost."""
    figures = measure(tmp_path, 4.0)
    assert figures["reads"] > 8
    assert figures["writes"] > 2
    assert figures["late"] == 0
