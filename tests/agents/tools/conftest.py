"""A real memory and its tools."""

from __future__ import annotations

import pytest

from notewell import Memory
from notewell.agents.tools import MemoryTools


@pytest.fixture
def memory(workspace):
    with Memory.open(workspace, provider="none") as opened:
        opened.index()
        yield opened


@pytest.fixture
def tools(memory) -> MemoryTools:
    return MemoryTools(memory)
