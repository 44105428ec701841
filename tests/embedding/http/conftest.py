"""What the tests of remote calls share: no real waits between tries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

stamina = pytest.importorskip("stamina", reason="the extra `remote` is not installed")
pytest.importorskip("httpx", reason="the extra `remote` is not installed")


@pytest.fixture(autouse=True)
def without_waits() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3, cap=True):
        yield
