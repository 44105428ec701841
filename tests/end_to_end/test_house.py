"""`python -m benchmarks.house` measures a checkout, this one or another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_house_is_measured_from_the_outside():
    pytest.importorskip("mcp", reason="one of the walks is a call over MCP")
    pytest.importorskip("pyjson5", reason="one of the walks is a message of a session")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.house", str(REPOSITORY), "--json", "--list"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout)
    assert figures["modules"] == len(list((REPOSITORY / "src" / "notewell").rglob("*.py")))
    assert figures["lines of code (no blanks, comments, docstrings)"] < figures["lines"]
    assert figures["files at the top"] == len(figures["lists"]["files at the top"])
    walks = {name: frames for name, frames in figures["lists"].items() if name.startswith("frames: ")}
    assert [walk[-1].rpartition(".")[2] for walk in walks.values()][0::2] == ["put_document", "append_document"]
    assert all(figures[name] == len(frames) > 1 for name, frames in walks.items())
