from __future__ import annotations

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.embedding.local.token_ids import (
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


@pytest.mark.slow
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


# --- windows -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def window_tokenizer(pack):
    return WindowTokenizer(pack.tokenizer_json, max_tokens=16)


@pytest.mark.parametrize("words", [0, 1, 13, 14, 15, 28, 29, 100])
def test_windows_hold_every_token_once_between_start_and_end(window_tokenizer, words):
    text = " ".join(["word"] * words)
    windows = window_tokenizer.windows(text)
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
def test_odd_texts_have_windows(window_tokenizer, text):
    assert len(window_tokenizer.windows(text)[0]) > 2
