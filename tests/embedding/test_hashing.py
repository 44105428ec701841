from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from notewell.embedding.hashing import HashingEmbedder, open_hashing
from notewell.settings import Settings

RECORDED = Path(__file__).parents[3] / "shared" / "golden" / "openclaw-2026.2"


def test_equals_the_recorded_vectors():
    if not (RECORDED / "embeddings.json").is_file():
        pytest.skip(f"no recorded vectors at {RECORDED}")
    chunks = json.loads((RECORDED / "chunks.json").read_text(encoding="utf-8"))
    recorded = json.loads((RECORDED / "embeddings.json").read_text(encoding="utf-8"))
    vectors = HashingEmbedder().embed_documents([chunk["text"] for chunk in chunks])
    expected = np.array([recorded[chunk["id"]] for chunk in chunks])
    np.testing.assert_allclose(vectors, expected, atol=1e-7)  # float32 against 8 decimals


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("Guest WIFI", "guest wifi", id="case"),
        pytest.param("guest, wifi!", "guest wifi", id="punctuation"),
        pytest.param("wifi guest", "guest wifi", id="order of words"),
        pytest.param("snake_case", "snake case", id="underscore separates"),
        pytest.param("", "...", id="nothing to count"),
    ],
)
def test_same_words_same_vector(one, other):
    first, second = HashingEmbedder().embed_documents([one, other])
    np.testing.assert_array_equal(first, second)


def test_cjk_text_shares_characters_and_pairs_with_its_substrings():
    embedder = HashingEmbedder()
    note, inside, outside = embedder.embed_documents(["访客网络的密码", "密码", "会议"])
    assert note @ inside > 0.3
    assert note @ outside == pytest.approx(0, abs=0.2)


def test_dimensions_are_part_of_the_identity():
    assert HashingEmbedder(384).identity != HashingEmbedder(64).identity
    assert HashingEmbedder(64).embed_query("wifi").shape == (64,)


def test_opens_from_settings():
    assert open_hashing(Settings()).identity == HashingEmbedder().identity
