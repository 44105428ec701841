"""A small memory with keyword search only, for every adapter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell import Memory


@pytest.fixture
def memory(workspace: Path) -> Iterator[Memory]:
    with Memory.open(workspace, provider="none") as opened:
        yield opened
