"""The contract of rerankers, run against every provider that is built in."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from notewell.search.rerankers import BUILT_IN, open_reranker
from notewell.settings import QuerySettings, RerankSettings, Settings
from notewell.testing import RerankerContract
from tests.search.rerankers.provider import running

pytest.importorskip("httpx", reason="the extra `remote` is not installed")


class OverHttp(RerankerContract):
    """A provider on the loopback interface."""

    name: str

    @pytest.fixture(autouse=True)
    def _without_proxy(self, monkeypatch):
        monkeypatch.setenv("NO_PROXY", "*")

    @contextmanager
    def open_reranker(self):
        with running(self.name) as provider:
            rerank = RerankSettings(provider=self.name, base_url=provider.url)
            yield open_reranker(Settings(query=QuerySettings(rerank=rerank)))


class TestCohere(OverHttp):
    name = "cohere"


class TestJina(OverHttp):
    name = "jina"


class TestVoyage(OverHttp):
    name = "voyage"


def test_every_built_in_reranker_is_checked():
    assert {each.name for each in OverHttp.__subclasses__()} == set(BUILT_IN)
