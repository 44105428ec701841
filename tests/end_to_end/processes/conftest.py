"""Workspaces for tests with real processes, and a worker that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SECTIONS = 4


def write_note(folder: Path, number: int, generation: int = 0) -> None:
    """Write one note of several sections; a later generation changes some of them."""
    parts = [f"# Note {number}\n"]
    for section in range(SECTIONS):
        changed = generation if (number + section) % 3 == 0 else 0
        parts.append(
            f"\n## Section {section}\n\nThe harbour keeps subject{number}x{section} in shed {changed}. "
            + f"Word{number} and word{section} tell of generation {changed}. " * 6
            + "\n"
        )
    (folder / f"note{number}.md").write_text("".join(parts), encoding="utf-8")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A workspace of 24 notes."""
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    for number in range(24):
        write_note(folder / "memory", number)
    return folder


class Worker:
    """A process that indexes on command and survives the killing of its children."""

    def __init__(self) -> None:
        env = {**os.environ, "NOTEWELL_CONFIG": os.devnull, "OPENBLAS_NUM_THREADS": "1"}
        script = str(Path(__file__).with_name("worker.py"))
        self._process = subprocess.Popen(
            [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def index(self, workspace: Path, **options: object) -> dict[str, object]:
        """Index once; returns whether it was killed, and how many calls it took if they were counted."""
        self._requests.write(json.dumps({"workspace": str(workspace), **options}) + "\n")
        self._requests.flush()
        told: dict[str, object] = {}
        while "done" not in told:
            line = self._answers.readline()
            assert line, "the worker ended"
            told |= json.loads(line)
        assert "failed" not in told, told["failed"]
        return told

    def close(self) -> None:
        self._requests.close()
        self._process.wait(timeout=60)
        self._answers.close()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    if not hasattr(os, "fork"):
        pytest.skip("killing so many processes needs fork; test_interrupts.py kills whole ones everywhere")
    started = Worker()
    yield started
    started.close()
