"""Codes: what is estimated from them is close to the cosine, for any length of vector."""

from __future__ import annotations

import numpy as np
import pytest

from notewell.store.vector_codes import BitsCodec, Int8Codec, codec_of


def unit_rows(count, dimensions, seed=0):
    rows = np.random.default_rng(seed).normal(size=(count, dimensions)) + 0.4
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("dimensions", [8, 63, 64, 65, 384, 1536, 6000])
@pytest.mark.parametrize(("name", "least"), [("bits", 0.5), ("int8", 0.99)])
def test_estimates_go_with_the_cosine(dimensions, name, least):
    rows = unit_rows(400, dimensions)
    codec = codec_of(name, dimensions, rows.mean(axis=0))
    codes = codec.encode(rows)
    assert codes.shape == (400, codec.code_bytes)
    query = unit_rows(1, dimensions, seed=1)[0]
    estimates = codec.scan(query).estimates(codec.ready(codes))
    assert np.corrcoef(estimates, rows @ query)[0, 1] > least


def test_bits_estimate_without_bias():
    rows = unit_rows(2000, 384)
    mean = rows.mean(axis=0)
    codec = BitsCodec(384, mean)
    query = unit_rows(1, 384, seed=1)[0]
    constant = query @ mean  # the part of the cosine that is the same for all rows
    estimates = codec.scan(query).estimates(codec.ready(codec.encode(rows))) + constant
    assert np.mean(estimates - rows @ query) == pytest.approx(0, abs=0.005)


def test_a_row_equal_to_the_mean_is_no_trouble():
    rows = np.tile(unit_rows(1, 64), (3, 1))
    codec = BitsCodec(64, rows[0])
    estimates = codec.scan(rows[0]).estimates(codec.ready(codec.encode(rows)))
    assert np.isfinite(estimates).all()


def test_no_rows_give_no_estimates():
    for codec in (BitsCodec(64, np.zeros(64, np.float32)), Int8Codec(64)):
        codes = codec.encode(np.empty((0, 64), np.float32))
        assert len(codec.scan(unit_rows(1, 64)[0]).estimates(codec.ready(codes))) == 0
