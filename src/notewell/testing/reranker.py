"""Checks a reranker: one finite score a text, higher is better."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from notewell.protocols import Reranker

QUERY = "guest wifi password"
TEXTS = ["the cat sleeps", "guest wifi password is heron", "wifi channel 6", "", "wifi password \ud800 数据库"]


class RerankerContract:
    """What a reranker must do; name yours in `open_reranker`."""

    def open_reranker(self) -> AbstractContextManager[Reranker]:
        """Return your reranker for a `with` block; `contextlib.nullcontext` makes one of any object."""
        raise NotImplementedError

    @pytest.fixture
    def reranker(self) -> Iterator[Reranker]:
        """Return the reranker."""
        with self.open_reranker() as opened:
            yield opened

    def test_it_says_who_it_is(self, reranker: Reranker) -> None:
        assert isinstance(reranker.name, str)
        assert reranker.name

    def test_one_finite_score_a_text(self, reranker: Reranker) -> None:
        scores = reranker.rerank(QUERY, TEXTS)
        assert len(scores) == len(TEXTS)
        assert all(map(math.isfinite, scores))

    def test_higher_is_better(self, reranker: Reranker) -> None:
        scores = reranker.rerank(QUERY, TEXTS)
        assert scores[1] == max(scores)
        assert scores[1] > scores[0]

    def test_a_score_belongs_to_its_text_wherever_that_stands(self, reranker: Reranker) -> None:
        scores = reranker.rerank(QUERY, TEXTS)
        assert list(reranker.rerank(QUERY, TEXTS[::-1])) == pytest.approx(list(scores)[::-1])

    def test_no_texts_no_scores(self, reranker: Reranker) -> None:
        assert list(reranker.rerank(QUERY, [])) == []
