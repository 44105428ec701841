"""Splits short ASCII texts into the packaged model's tokens: text comes in, token ids go out.

The `tokenizers` library needs 80 ms to start with this vocabulary, a third of what a cold search may take; reading the
same file into two dictionaries takes 20. Texts it does not cover go to the library, and the two agree on all others.
"""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

# A word of n letters costs n squared steps here; questions are shorter than this, and tokens never outnumber letters.
MOST_CHARACTERS = 400

# The split of GPT-2, which byte-level tokenizers share, narrowed to ASCII.
_PIECES = re.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+",
    re.ASCII,
)

# Byte-level vocabularies write control characters, blank and DEL as the letters from U+0100 on.
_VISIBLE = {code: 0x100 + number for number, code in enumerate([*range(33), 127])}


_ANGLE = "<"  # a text that spells out `<s>` or `<mask>` gets that token


class _Model(msgspec.Struct, frozen=True):
    vocab: dict[str, int]
    merges: list[str]


class _TokenizerFile(msgspec.Struct, frozen=True):
    model: _Model


def is_short_and_plain(text: str) -> bool:
    """Say whether `ShortTextTokenizer` gives what the full tokenizer gives."""
    return len(text) <= MOST_CHARACTERS and text.isascii() and _ANGLE not in text


class ShortTextTokenizer:
    """Byte-pair encoding for texts that `is_short_and_plain` accepts."""

    def __init__(self, tokenizer_json: bytes) -> None:
        parsed = msgspec.json.decode(tokenizer_json, type=_TokenizerFile)
        self._vocabulary = parsed.model.vocab
        self._merge_order = dict(zip(parsed.model.merges, range(len(parsed.model.merges)), strict=True))

    def encode(self, text: str) -> list[int]:
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
