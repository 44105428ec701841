from __future__ import annotations

import numpy as np
import pytest

from notewell.embedding.local.tokenizing import WindowTokenizer
from notewell.embedding.vectors import embed_windows


@pytest.fixture(scope="module")
def tokenizer(pack):
    return WindowTokenizer(pack.tokenizer_json, max_tokens=16)


@pytest.mark.parametrize("words", [0, 1, 13, 14, 15, 28, 29, 100])
def test_windows_hold_every_token_once_between_start_and_end(tokenizer, words):
    text = " ".join(["word"] * words)
    windows = tokenizer.windows(text)
    assert all(window[0] == 0 and window[-1] == 2 and len(window) <= 16 for window in windows)
    assert sum(len(window) - 2 for window in windows) == words


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("lone \ud800 surrogate", id="lone surrogate"),
        pytest.param("nul \x00 byte", id="NUL"),
        pytest.param("\U0001f468\u200d\U0001f469\u200d\U0001f467", id="emoji family"),
    ],
)
def test_odd_texts_have_windows(tokenizer, text):
    assert len(tokenizer.windows(text)[0]) > 2


def test_a_long_text_is_the_mean_of_its_windows_by_length():
    def vectors(windows):
        return [np.array([5.0, 0.0]) if window[0] == 1 else np.array([0.0, 0.1]) for window in windows]

    rows = embed_windows([[[1, 1, 1], [2]], [[2, 2]], [[1]]], vectors)
    np.testing.assert_allclose(rows, [[3, 1], [0, 2], [1, 0]])
