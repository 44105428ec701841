"""Contract suites: run the tests of our own embedders, stores, caches and rerankers against yours.

Subclass a suite in a test file, say how to open your part, and run pytest:

    from notewell.testing import EmbedderContract

    class TestMyEmbedder(EmbedderContract):
        def open_embedder(self, folder):
            return MyEmbedder()

The suites need pytest, which is imported when the first one is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from notewell.testing.cache import CacheContract
    from notewell.testing.embedder import EmbedderContract
    from notewell.testing.reranker import RerankerContract
    from notewell.testing.store import StoreContract

__all__ = ["CacheContract", "EmbedderContract", "RerankerContract", "StoreContract"]

_HOMES = {
    "CacheContract": "cache",
    "EmbedderContract": "embedder",
    "RerankerContract": "reranker",
    "StoreContract": "store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    import pytest

    modules = {*_HOMES.values(), "store_growth", "store_search"}
    pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in modules))  # a failing assert shows its values
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
