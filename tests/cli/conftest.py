"""The command as a function, for tests of what it prints and returns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from notewell.cli.main import run


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout; fails on anything before or behind it."""
        return json.loads(self.out)


@pytest.fixture
def notewell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Run a command in this process; words come in, what it printed and returned goes out."""
    monkeypatch.setenv("NOTEWELL_PROVIDER", "hashing")

    def call(*words: object) -> Outcome:
        capsys.readouterr()
        code = run([str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def indexed(workspace: Path, notewell: Callable[..., Outcome]) -> Path:
    """The small workspace, indexed, and the current folder."""
    assert notewell("index", "-w", workspace).code == 0
    return workspace


def run_process(*words: object, cwd: Path | None = None, **environ: str) -> Outcome:
    """Run the command as a process of its own."""
    env = {**os.environ, "NOTEWELL_PROVIDER": "hashing", "NOTEWELL_CONFIG": os.devnull, **environ}
    done = subprocess.run(
        [sys.executable, "-m", "notewell", *map(str, words)],
        capture_output=True,
        env=env,
        cwd=cwd,
        check=False,
        timeout=120,
    )
    return Outcome(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))
