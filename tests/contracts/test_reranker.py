"""What every reranker must do; a plug-in passes by adding itself to `OPENERS`."""

from __future__ import annotations

import math
from contextlib import contextmanager

import pytest

from notewell.search.rerankers import BUILT_IN, open_reranker
from notewell.settings import QuerySettings, RerankSettings, Settings
from tests.search.rerankers.provider import running

pytest.importorskip("httpx", reason="the extra `remote` is not installed")

QUERY = "guest wifi password"
TEXTS = ["the cat sleeps", "guest wifi password is heron", "wifi channel 6", "", "wifi password \ud800 数据库"]


def over_http(name):
    @contextmanager
    def opened():
        with running(name) as provider:
            rerank = RerankSettings(provider=name, base_url=provider.url)
            yield open_reranker(Settings(query=QuerySettings(rerank=rerank)))

    return opened


OPENERS = {name: over_http(name) for name in BUILT_IN}


@pytest.fixture(params=OPENERS, ids=str)
def reranker(request, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    with OPENERS[request.param]() as opened:
        yield opened


def test_it_says_who_it_is(reranker):
    assert isinstance(reranker.name, str)
    assert reranker.name


def test_one_finite_score_a_text(reranker):
    scores = reranker.rerank(QUERY, TEXTS)
    assert len(scores) == len(TEXTS)
    assert all(map(math.isfinite, scores))


def test_higher_is_better(reranker):
    scores = reranker.rerank(QUERY, TEXTS)
    assert scores[1] == max(scores)
    assert scores[1] > scores[0]


def test_a_score_belongs_to_its_text_wherever_that_stands(reranker):
    scores = reranker.rerank(QUERY, TEXTS)
    assert list(reranker.rerank(QUERY, TEXTS[::-1])) == pytest.approx(list(scores)[::-1])


def test_no_texts_no_scores(reranker):
    assert list(reranker.rerank(QUERY, [])) == []
