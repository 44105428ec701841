from __future__ import annotations

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.embedding.local.tokenizing import (
    MAX_SHORT_CHARACTERS,
    ShortTextTokenizer,
    WindowTokenizer,
    is_short_and_plain,
)

ALPHABET = st.sampled_from([*string.printable, "\x00", "\x1c", "\x1f", "\x7f"])
WORDS = st.sampled_from(
    ["the", "Guest", "wifi's", "don't", "we'll", "I'M", "HTTP/2", "v1.2.3", "a@b.c", "foo_bar", "   "]
)


@pytest.fixture(scope="module")
def both(pack):
    return ShortTextTokenizer(pack.tokenizer_json), WindowTokenizer(pack.tokenizer_json, max_tokens=512)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(" ", id="blank"),
        pytest.param("what is the guest wifi password?", id="question"),
        pytest.param("  two  spaces\t\ttabs\n\nlines  ", id="white space"),
        pytest.param("it's we're they'd I'll 'tis 'S", id="apostrophes"),
        pytest.param("x" * MAX_SHORT_CHARACTERS, id="one long word"),
        pytest.param("a\x00b\x1cc\x7f", id="control characters"),
        pytest.param("def f(x): return {x: [1, 2.5e-3]}  # comment", id="code"),
    ],
)
def test_agrees_with_the_full_tokenizer(both, text):
    short, full = both
    assert is_short_and_plain(text)
    assert [short.encode(text)] == full.windows(text)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.text(ALPHABET, max_size=12), WORDS), max_size=12).map(" ".join))
def test_agrees_on_any_text_it_accepts(both, text):
    short, full = both
    if is_short_and_plain(text):
        assert [short.encode(text)] == full.windows(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("café", id="not ASCII"),
        pytest.param("a <mask> in the text", id="special token"),
        pytest.param("x" * (MAX_SHORT_CHARACTERS + 1), id="too long"),
    ],
)
def test_leaves_the_rest_to_the_full_tokenizer(text):
    assert not is_short_and_plain(text)


def test_every_special_token_starts_with_what_is_refused(pack):
    added = json.loads(pack.tokenizer_json)["added_tokens"]
    assert added
    assert not any(is_short_and_plain(token["content"]) for token in added)
