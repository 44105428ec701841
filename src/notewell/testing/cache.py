"""Checks an embedding cache: vectors come back, and spaces stay apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from notewell.errors import BadVectorError
from notewell.testing.samples import DIMENSIONS, IDENTITY, vector_for
from notewell.types import EmbedderIdentity, hash_text

if TYPE_CHECKING:
    from notewell.protocols import EmbeddingCache, Vector


def named(*texts: str) -> dict[str, Vector]:
    """Return the vectors of texts by the hashes of the texts."""
    return {hash_text(text): vector_for(text) for text in texts}


class CacheContract:
    """What an embedding cache must do; name yours in `open_cache`."""

    def open_cache(self, folder: Path) -> EmbeddingCache:
        """Return your cache, empty, with room for 100 vectors; it is closed afterwards."""
        raise NotImplementedError

    @pytest.fixture
    def cache(self, tmp_path: Path) -> Iterator[EmbeddingCache]:
        """Return the cache."""
        opened = self.open_cache(tmp_path)
        yield opened
        opened.close()

    def test_nothing_asked_nothing_given(self, cache: EmbeddingCache) -> None:
        assert cache.get_many(IDENTITY, []) == {}
        assert cache.known(IDENTITY, []) == set()
        cache.put_many(IDENTITY, {})
        assert cache.get_many(IDENTITY, [*named("one")]) == {}

    def test_it_knows_what_it_has(self, cache: EmbeddingCache) -> None:
        cache.put_many(IDENTITY, named("one", "two"))
        assert cache.known(IDENTITY, [*named("one", "three")]) == {hash_text("one")}
        assert cache.known(EmbedderIdentity("else", "m", "k", DIMENSIONS), [*named("one")]) == set()

    def test_it_keeps_what_it_is_told_to_keep(self, cache: EmbeddingCache) -> None:
        cache.put_many(IDENTITY, named("one", "two", "three"))
        assert cache.keep_only([hash_text("one"), hash_text("other")]) == 2
        assert cache.known(IDENTITY, [*named("one", "two", "three")]) == {hash_text("one")}

    def test_what_was_put_comes_back(self, cache: EmbeddingCache) -> None:
        cache.put_many(IDENTITY, named("one", "two"))
        found = cache.get_many(IDENTITY, [*named("one", "two", "three")])
        assert set(found) == set(named("one", "two"))
        for digest, vector in named("one", "two").items():
            assert found[digest] == pytest.approx(vector, abs=1e-3)
            assert found[digest].dtype == np.float32

    def test_it_says_how_much_it_holds_and_can_be_cleared(self, cache: EmbeddingCache) -> None:
        cache.put_many(IDENTITY, named("one", "two"))
        assert set(cache.peek_many(IDENTITY, [*named("one", "three")])) == set(named("one"))
        assert (cache.stats().entries, cache.stats().hits, cache.stats().misses) == (2, 0, 2)
        assert cache.prune(older_than_days=1) == 0
        assert cache.clear() == 2
        assert (cache.stats().entries, cache.stats().misses) == (0, 0)

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(EmbedderIdentity("else", IDENTITY.model, IDENTITY.key, DIMENSIONS), id="provider"),
            pytest.param(EmbedderIdentity(IDENTITY.provider, "else", IDENTITY.key, DIMENSIONS), id="model"),
            pytest.param(EmbedderIdentity(IDENTITY.provider, IDENTITY.model, "else", DIMENSIONS), id="key"),
            pytest.param(EmbedderIdentity(IDENTITY.provider, IDENTITY.model, IDENTITY.key, 8), id="dimensions"),
        ],
    )
    def test_spaces_are_apart_and_both_remembered(self, cache: EmbeddingCache, other: EmbedderIdentity) -> None:
        cache.put_many(IDENTITY, named("one"))
        assert cache.get_many(other, [*named("one")]) == {}
        cache.put_many(other, {hash_text("one"): np.eye(other.dimensions, dtype=np.float32)[0]})
        assert cache.get_many(IDENTITY, [*named("one")])[hash_text("one")] == pytest.approx(vector_for("one"), abs=1e-3)
        assert cache.get_many(other, [*named("one")])[hash_text("one")][0] == 1

    def test_a_bad_vector_is_refused(self, cache: EmbeddingCache) -> None:
        with pytest.raises(BadVectorError):
            cache.put_many(IDENTITY, {hash_text("x"): np.full(DIMENSIONS, np.nan, np.float32)})
        assert cache.get_many(IDENTITY, [hash_text("x")]) == {}

    def test_threads_share_a_cache(self, cache: EmbeddingCache) -> None:
        problems: list[Exception] = []

        def work(name: str) -> None:
            try:
                for number in range(15):
                    vectors = named(f"{name} {number}")
                    cache.put_many(IDENTITY, vectors)
                    assert set(cache.get_many(IDENTITY, [*vectors])) == set(vectors)
            except Exception as error:  # noqa: BLE001
                problems.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert problems == []
        every = [hash_text(f"{name} {number}") for name in "abcd" for number in range(15)]
        assert cache.known(IDENTITY, every) == set(every)
