"""What the tests of remote embedders share: every provider on the loopback interface, and no waits between tries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from notewell.embedding.providers.embedder import RemoteEmbedder
from tests.fakes.providers import PROVIDERS, FakeProvider

from .opening import open_embedder

stamina = pytest.importorskip("stamina", reason="the extra `remote` is not installed")
pytest.importorskip("httpx", reason="the extra `remote` is not installed")


@pytest.fixture(autouse=True)
def without_waits() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3, cap=True):
        yield


@pytest.fixture(params=sorted(PROVIDERS))
def fake(request: pytest.FixtureRequest) -> Iterator[FakeProvider]:
    """Each provider in turn."""
    with PROVIDERS[request.param]() as provider:
        yield provider


@pytest.fixture
def embedder(fake: FakeProvider) -> Iterator[RemoteEmbedder]:
    opened = open_embedder(fake)
    yield opened
    opened.close()
