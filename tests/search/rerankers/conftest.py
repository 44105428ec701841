"""What the tests of rerankers share: nothing between them and the provider on the loopback interface."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
