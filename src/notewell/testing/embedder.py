"""Checks an embedder: unit vectors, one for each text, the same every time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from notewell.protocols import Embedder, Matrix

TEXTS = [
    "the guest wifi password is lighthouse",
    "a note",
    "",
    "what is the password : the guest wifi " * 20,
    "b",
    "the lighthouse " * 60,
    "the guest wifi password is lighthouse",
]
ODD_TEXTS = [
    pytest.param("", id="empty"),
    pytest.param(" \n\t ", id="white space"),
    pytest.param("a\x00b", id="NUL"),
    pytest.param("👨‍👩‍👧 🎉", id="emoji"),
    pytest.param("lone \udc80 surrogate", id="lone surrogate"),
    pytest.param("密码是什么", id="Chinese"),
    pytest.param("[CLS] <s> </s> <mask> [SEP]", id="special tokens spelled out"),
    pytest.param("%PDF-1.7 \x01\x02\x03 " * 20, id="binary"),
]


def assert_unit_rows(rows: Matrix, count: int, embedder: Embedder) -> None:
    """Fail unless there is this number of rows of length 1, as float32."""
    assert rows.shape == (count, embedder.identity.dimensions)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


class EmbedderContract:
    """What an embedder must do; name yours in `open_embedder`."""

    def open_embedder(self, folder: Path) -> Embedder:
        """Return your embedder; `folder` is empty and stays there for all tests of the class. It is closed after."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def opener(cls, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Embedder]:
        """Return what opens an embedder."""
        folder = tmp_path_factory.mktemp("embedder")
        return lambda: cls().open_embedder(folder)

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls, opener: Callable[[], Embedder]) -> Iterator[Embedder]:
        """Return one embedder for all tests of the class: a model may take seconds to load."""
        opened = opener()
        yield opened
        opened.close()

    def test_rows_are_unit_float32_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        rows = embedder.embed_documents(TEXTS)
        assert_unit_rows(rows, len(TEXTS), embedder)
        np.testing.assert_allclose(rows[0], rows[-1], atol=1e-6)
        assert rows[0] @ rows[1] < 0.999

    def test_no_texts_give_no_rows(self, embedder: Embedder) -> None:
        rows = embedder.embed_documents([])
        assert rows.shape == (0, embedder.identity.dimensions)
        assert rows.dtype == np.float32

    def test_a_query_is_one_row(self, embedder: Embedder) -> None:
        assert embedder.embed_query("guest wifi").shape == (embedder.identity.dimensions,)

    def test_one_equals_many(self, embedder: Embedder) -> None:
        for text, row in zip(TEXTS, embedder.embed_documents(TEXTS), strict=True):
            assert embedder.embed_query(text) @ row > 0.999
            np.testing.assert_allclose(embedder.embed_documents([text])[0], row, atol=1e-3)

    def test_neighbours_do_not_change_a_vector(self, embedder: Embedder) -> None:
        forwards = embedder.embed_documents(TEXTS)
        backwards = embedder.embed_documents(TEXTS[::-1])[::-1]
        np.testing.assert_allclose(forwards, backwards, atol=1e-3)

    def test_a_fresh_embedder_gives_the_same_vectors(self, opener: Callable[[], Embedder], embedder: Embedder) -> None:
        fresh = opener()
        assert fresh.identity == embedder.identity
        cosines = (fresh.embed_documents(TEXTS) * embedder.embed_documents(TEXTS)).sum(axis=1)
        assert cosines.min() > 0.999
        fresh.close()

    @pytest.mark.parametrize("text", ODD_TEXTS)
    def test_odd_texts_have_vectors(self, embedder: Embedder, text: str) -> None:
        assert_unit_rows(embedder.embed_documents([text]), 1, embedder)
        assert_unit_rows(embedder.embed_query(text)[np.newaxis], 1, embedder)
        assert type(embedder.knows(text)) is bool  # no number, array or None

    def test_a_text_of_100_kilobytes_has_a_vector(self, embedder: Embedder) -> None:
        text = (
            "password responsibilities " * 3900
        )  # words that are one token each: the longest way for the fewest windows
        assert len(text) > 100_000
        rows = embedder.embed_documents([text, "password responsibilities"])
        assert_unit_rows(rows, 2, embedder)
        assert rows[0] @ rows[1] > 0.5

    def test_threads_share_it(self, opener: Callable[[], Embedder]) -> None:
        embedder = opener()
        expected = embedder.embed_documents(TEXTS)
        embedder.close()
        answers: list[Matrix] = []
        start = threading.Barrier(4)

        def ask() -> None:
            start.wait(timeout=30)
            answers.append(embedder.embed_documents(TEXTS))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        embedder.close()
        assert len(answers) == 4
        for answer in answers:
            assert (answer * expected).sum(axis=1).min() > 0.999

    def test_it_may_be_closed_twice_and_used_again(self, opener: Callable[[], Embedder]) -> None:
        embedder = opener()
        embedder.close()
        embedder.close()
        assert_unit_rows(embedder.embed_documents(["a note"]), 1, embedder)
        embedder.close()

    def test_identity_is_stable_and_frozen(self, opener: Callable[[], Embedder], embedder: Embedder) -> None:
        identity = embedder.identity
        embedder.embed_query("anything")
        assert embedder.identity == identity == opener().identity
        assert identity.provider
        assert identity.model
        with pytest.raises(FrozenInstanceError):
            identity.dimensions = 1  # type: ignore[misc]

    def test_says_how_to_treat_its_vectors(self, embedder: Embedder) -> None:
        assert embedder.quantization in {"bits", "int8"}
        low, high = embedder.cosine_range
        assert -1 <= low < high <= 1

    def test_knows_plain_english(self, embedder: Embedder) -> None:
        assert embedder.knows("the guest wifi password is lighthouse")
