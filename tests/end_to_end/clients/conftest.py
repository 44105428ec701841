"""Clients from npm, and the indexed workspace that they search."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

from tests.mcp.conftest import indexed

from .node import Unavailable, find_node, install

__all__ = ["indexed"]


@pytest.fixture
def client_from_npm() -> Callable[[str], None]:
    """Return a function that makes sure of an npm package, or skips with the reason."""

    def need(package: str) -> None:
        try:
            find_node()
            install(package)
        except Unavailable as reason:
            pytest.skip(str(reason))

    return need
