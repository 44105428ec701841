"""Embedders that count, fail and stop on request; their vectors are those of the hashing embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from notewell.embedding.hashing import HashingEmbedder

if TYPE_CHECKING:
    from notewell.protocols import Matrix


class WatchedEmbedder(HashingEmbedder):
    """Hands every batch of texts to `before` first, which may raise; counts the texts it embedded."""

    def __init__(self, before: Callable[[Sequence[str]], None] = lambda texts: None, *, dimensions: int = 384) -> None:
        super().__init__(dimensions)
        self._before = before
        self.embedded = 0
        self.calls = 0

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self.calls += 1
        self._before(texts)
        vectors = super().embed_documents(texts)
        self.embedded += len(texts)
        return vectors


def failing_at_call(number: int, error: BaseException) -> Callable[[Sequence[str]], None]:
    """Return a `before` that raises at the call of this number (1 is the first) and at every later one."""
    calls = 0

    def before(texts: Sequence[str]) -> None:
        nonlocal calls
        calls += 1
        if calls >= number:
            raise error

    return before
