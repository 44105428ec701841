from __future__ import annotations

import numpy as np
import pytest

from notewell.embedding.unit_vectors import embed_windows, unit_rows
from notewell.errors import BadVectorError


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param([[3.0, 4.0], [0.0, -2.0]], id="lists"),
        pytest.param(np.array([[3, 4], [0, -2]], np.int8), id="integers"),
        pytest.param(np.array([[3e30, 4e30], [0, -2e30]], np.float32), id="huge"),
        pytest.param(np.array([[3e-40, 4e-40], [0, -2e-40]], np.float64), id="tiny"),
        pytest.param(np.array([[3, 4], [0, -2]], np.float32)[:, ::1].T.copy().T, id="column order in memory"),
    ],
)
def test_rows_become_unit_float32(raw):
    rows = unit_rows(raw, count=2, dimensions=2)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, -1.0]], atol=1e-6)


def test_the_input_stays_as_it_was():
    raw = np.array([[3.0, 4.0]])
    unit_rows(raw, count=1, dimensions=2)
    assert raw.tolist() == [[3.0, 4.0]]


def test_no_texts_give_an_empty_matrix_of_the_right_width():
    assert unit_rows([], count=0, dimensions=7).shape == (0, 7)


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        pytest.param([[1.0, 0.0]], "expected 2 vectors", id="too few rows"),
        pytest.param([[1.0, 0.0]] * 3, "expected 2 vectors", id="too many rows"),
        pytest.param([1.0, 0.0], "expected 2 vectors", id="a single flat vector"),
        pytest.param([], "expected 2 vectors", id="nothing at all"),
        pytest.param([[1.0, 0.0, 0.0]] * 2, "3 dimensions, expected 2", id="too wide"),
        pytest.param([[1.0, 0.0], [1.0]], "not rows of numbers", id="ragged"),
        pytest.param([[1.0, 0.0], ["x", "y"]], "not rows of numbers", id="text"),
        pytest.param([[1.0, 0.0], [float("nan"), 1.0]], "vector 1 contains NaN", id="NaN"),
        pytest.param([[float("inf"), 0.0], [1.0, 1.0]], "vector 0 contains NaN or infinity", id="infinity"),
        pytest.param([[1.0, 0.0], [0.0, 0.0]], "vector 1 is zero", id="zero"),
        pytest.param([[1.0, None], [0.0, 1.0]], "vector 0 contains NaN", id="a hole"),
    ],
)
def test_bad_vectors_are_named(raw, complaint):
    with pytest.raises(BadVectorError, match=complaint):
        unit_rows(raw, count=2, dimensions=2)


def test_a_long_text_is_the_mean_of_its_windows_by_length():
    def vectors(windows):
        return [np.array([5.0, 0.0]) if window[0] == 1 else np.array([0.0, 0.1]) for window in windows]

    rows = embed_windows([[[1, 1, 1], [2]], [[2, 2]], [[1]]], vectors)
    np.testing.assert_allclose(rows, [[3, 1], [0, 2], [1, 0]])
