"""A small memory with keyword search only, for every adapter."""

from __future__ import annotations

import pytest

from notewell import Memory


@pytest.fixture
def memory(workspace):
    with Memory.open(workspace, provider="none") as opened:
        yield opened
