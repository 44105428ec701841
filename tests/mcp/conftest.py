"""Servers as real processes, for clients as real as they come."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from notewell import Memory
from tests.cli.conftest import notewell

__all__ = ["notewell"]

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")


__all__ = ["notewell"]

COMMAND = [sys.executable, "-m", "notewell", "mcp"]


@pytest.fixture
def indexed(workspace: Path) -> Path:
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
    return workspace


def server_environment(**more: str) -> dict[str, str]:
    return {**os.environ, "NOTEWELL_CONFIG": os.devnull, "NOTEWELL_PROVIDER": "none", **more}


@contextmanager
def http_server(workspace: Path, *words: str, **environ: str) -> Iterator[str]:
    """Run `notewell mcp --http` on a free port and yield its address; it must end cleanly when asked to."""
    process = subprocess.Popen(
        [*COMMAND, "--http", "--port", "0", "-w", str(workspace), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=server_environment(**environ),
        text=True,
    )
    assert process.stderr is not None
    try:
        first = process.stderr.readline()
        address = re.search(r"http://\S+", first)
        assert address, first + process.stderr.read()
        yield address[0]
    finally:
        process.terminate()
        out, err = process.communicate(timeout=30)
    assert (out, err) == ("", "")
    if os.name != "nt":  # Windows knows no way to ask
        assert process.returncode == 0
