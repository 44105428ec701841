"""Turns text into token ids: with the `tokenizers` library, and without it for short English text.

The library needs 80 ms to start with Granite's vocabulary, a third of what a cold search may take; reading the same
file into two dictionaries takes 20. Other texts go to the library; on short English text the two agree.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec

from notewell.embedding.input_text import valid_unicode
from notewell.embedding.local import import_package

Window = list[int]  # token ids, the model's start and end tokens included

# A word of n letters costs n squared steps here; questions are shorter than this, and tokens never outnumber letters.
MAX_SHORT_CHARACTERS = 400

# The split of GPT-2, which byte-level tokenizers share, narrowed to ASCII.
_PIECES = re.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+",
    re.ASCII,
)

# Byte-level vocabularies write control characters, blank and DEL as the letters from U+0100 on.
_VISIBLE = {code: 0x100 + number for number, code in enumerate([*range(33), 127])}


class WindowTokenizer:
    """A `tokenizers` tokenizer that loses nothing: a text over the limit becomes several windows."""

    def __init__(self, tokenizer_json: bytes, *, max_tokens: int) -> None:
        self._tokenizer: Any = import_package("tokenizers").Tokenizer.from_buffer(tokenizer_json)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)

    def windows(self, text: str) -> list[Window]:
        """Return at least one window; every token of `text` is in exactly one of them."""
        encoding = self._tokenizer.encode(valid_unicode(text))
        return [encoding.ids, *(rest.ids for rest in encoding.overflowing)]

    def token_id(self, token: str) -> int | None:
        found: int | None = self._tokenizer.token_to_id(token)
        return found

    def plain_ids(self, text: str) -> list[int]:
        """Return the ids of the text's own tokens in the first window."""
        ids: list[int] = self._tokenizer.encode(valid_unicode(text), add_special_tokens=False).ids
        return ids


class _Model(msgspec.Struct, frozen=True):
    vocab: dict[str, int]
    merges: list[str]


class _TokenizerFile(msgspec.Struct, frozen=True):
    model: _Model


def is_short_and_plain(text: str) -> bool:
    """Tell whether `ShortTextTokenizer` gives what the full tokenizer gives."""
    # A text that spells out `<s>` or `<mask>` gets that token.
    return len(text) <= MAX_SHORT_CHARACTERS and text.isascii() and "<" not in text


class ShortTextTokenizer:
    """Byte-pair encoding for texts that `is_short_and_plain` accepts."""

    def __init__(self, tokenizer_json: bytes) -> None:
        model = msgspec.json.decode(tokenizer_json, type=_TokenizerFile).model
        self._vocabulary = model.vocab
        self._merge_order = dict(zip(model.merges, range(len(model.merges)), strict=True))

    def encode(self, text: str) -> Window:
        """Return the token ids with the start and end token around them."""
        tokens = [token for piece in _PIECES.findall(text) for token in self._merged(piece.translate(_VISIBLE))]
        return [self._vocabulary["<s>"], *(self._vocabulary[token] for token in tokens), self._vocabulary["</s>"]]

    def _merged(self, piece: str) -> list[str]:
        parts = list(piece)
        never = len(self._merge_order)
        while len(parts) > 1:
            orders = [self._merge_order.get(f"{left} {right}", never) for left, right in pairwise(parts)]
            order = min(orders)
            if order == never:
                break
            at = orders.index(order)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return parts
