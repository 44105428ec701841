"""A workspace whose memory is searched by QMD: the stand-in, and the real program from npm."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notewell import Memory
from tests.cli.conftest import notewell
from tests.end_to_end.clients import node
from tests.fakes.qmd import install_stand_in

collect_ignore_glob = ["test_*"] if sys.platform == "win32" else []  # the QMD backend does not run there

__all__ = ["notewell"]

OpenMemory = Callable[..., Memory]


@pytest.fixture
def stand_in(tmp_path: Path) -> str:
    return str(install_stand_in(tmp_path))


@pytest.fixture(params=["stand-in", "real"])
def program(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Either program; what is asked of one is asked of the other."""
    return real_program(monkeypatch, node.QMD) if request.param == "real" else str(install_stand_in(tmp_path))


def real_program(monkeypatch: pytest.MonkeyPatch, package: str) -> str:
    """Return QMD from npm, with its Node on the PATH, or skip with the reason."""
    try:
        folder = node.install(package)
    except node.Unavailable as reason:
        pytest.skip(str(reason))
    monkeypatch.setenv("PATH", node.environment()["PATH"])
    return str(folder / "qmd")


@pytest.fixture
def open_memory(workspace: Path) -> Iterator[OpenMemory]:
    opened: list[Memory] = []

    def open_with(program: str, *, index: bool = True, **options: Any) -> Memory:
        defaults: dict[str, Any] = {"provider": "none", "qmd__on_start": False, "qmd__timeout_ms": 20_000}
        memory = Memory.open(workspace, backend="qmd", qmd__command=program, **(defaults | options))
        opened.append(memory)
        if index:
            memory.index()
        return memory

    yield open_with
    for memory in opened:
        memory.close()


@pytest.fixture
def state(workspace: Path) -> Path:
    """The folder of everything that is QMD's."""
    return workspace / ".notewell" / "main" / "qmd"


@pytest.fixture
def calls(state: Path) -> Callable[[], list[list[str]]]:
    """Return a function that lists what the stand-in was called with, without the words that are always there."""

    def listed() -> list[list[str]]:
        log = state / "xdg-cache.calls"
        lines = log.read_text().splitlines() if log.exists() else []
        return [json.loads(line)["words"][2:] for line in lines]

    return listed
