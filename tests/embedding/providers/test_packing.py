"""Texts packed into requests: order and every word kept, every limit too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.embedding.providers.requests import estimate_tokens, pack_texts, pieces_of, split_text

LIMITS = {"inputs": 4, "input_tokens": 100, "request_tokens": 300, "tokens": 120}


def test_as_many_as_fit_in_order():
    texts = [f"{number:03} " * 40 for number in range(10)]  # 40 tokens each
    bundles = list(pack_texts(texts, **LIMITS))
    assert [len(bundle.pieces) for bundle in bundles] == [3, 3, 3, 1]
    assert [piece.text for bundle in bundles for piece in bundle.pieces] == texts
    assert [piece.position for bundle in bundles for piece in bundle.pieces] == list(range(10))


def test_the_provider_s_number_of_inputs_counts_too():
    assert [len(bundle.pieces) for bundle in pack_texts(["a"] * 10, **LIMITS)] == [4, 4, 2]


def test_texts_are_drawn_only_when_they_are_needed():
    drawn = []

    def texts():
        for number in range(100):
            drawn.append(number)
            yield "word " * 30

    next(pack_texts(texts(), **LIMITS))
    assert len(drawn) < 10


def test_a_text_over_the_limit_is_split_at_blanks_and_nothing_is_lost():
    text = " ".join(f"word{number}" for number in range(100))
    (bundle,) = pack_texts([text], **LIMITS)
    assert bundle.split == (0,)
    assert "".join(piece.text for piece in bundle.pieces) == text
    assert all(piece.text.split()[0].startswith("word") for piece in bundle.pieces)


def test_a_text_that_no_request_could_hold_keeps_its_beginning():
    (bundle,) = pack_texts(["word " * 5000], **LIMITS)
    assert bundle.split == (0,)
    assert sum(piece.tokens for piece in bundle.pieces) <= LIMITS["request_tokens"]
    assert len(bundle.pieces) <= LIMITS["inputs"]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 1, 1),
        ("the guest network is VLAN 30", 6, 9),
        ("服务器将在下周进行数据库迁移", 12, 16),
        ("naïve café", 2, 4),
        ("lone \udc80", 1, 4),
    ],
)
def test_about_as_many_tokens_as_a_model_sees(text, least, most):
    assert least <= estimate_tokens(text) <= most


@given(st.lists(st.text(max_size=800), max_size=30))
def test_whatever_the_texts_are(texts):
    bundles = list(pack_texts(texts, **LIMITS))
    seen: dict[int, str] = {}
    for bundle in bundles:
        assert 1 <= len(bundle.pieces) <= LIMITS["inputs"]
        for piece in bundle.pieces:
            seen[piece.position] = seen.get(piece.position, "") + piece.text
        positions = {piece.position for piece in bundle.pieces}
        assert set(bundle.split) <= positions
    assert list(seen) == list(range(len(texts)))
    for position, text in enumerate(texts):
        if len(pieces_of(position, text, input_tokens=LIMITS["input_tokens"])) == 1:
            assert seen[position] == text
        assert without_blanks(text).startswith(without_blanks(seen[position]))


@given(st.text(min_size=1, max_size=500), st.integers(1, 9))
def test_parts_are_the_whole(text, parts):
    found = split_text(text, parts)
    assert 1 <= len(found) <= parts
    assert without_blanks("".join(found)) == without_blanks(text)


def without_blanks(text):
    return "".join(text.split())
