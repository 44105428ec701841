"""A real memory and its tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell import Memory
from notewell.agents.tools import MemoryTools


@pytest.fixture
def memory(workspace: Path) -> Iterator[Memory]:
    with Memory.open(workspace, provider="none") as opened:
        opened.index()
        yield opened


@pytest.fixture
def tools(memory: Memory) -> MemoryTools:
    return MemoryTools(memory)
