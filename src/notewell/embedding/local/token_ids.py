"""Turns text into token ids, with the `tokenizers` library or, for short text, without it.

The library takes 90 ms to load the packaged vocabulary, a third of a cold search; reading the file into dictionaries
takes 30 ms. Long texts and rare characters need the library; otherwise both agree.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

from notewell.embedding.local import import_package
from notewell.text import valid_unicode

Window = list[int]  # token ids, the model's start and end tokens included

# A word of n letters takes n squared steps; questions are shorter than this. There are never more tokens than bytes, so
# such a text fits into one window.
MAX_SHORT_CHARACTERS = 400
MAX_SHORT_BYTES = 500

# What Unicode calls white space. Python's \s has four control characters more.
_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

# The split of GPT-2, as in byte-level tokenizers: letters, numbers, white space and the rest. Python's re lacks the
# classes L and N; in text that `is_short_and_plain` accepts, these are equivalent.
_PIECES = re.compile(
    rf"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:(?![{_SPACE}])[\W_])+|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
)
_TRAILING_SPACE = re.compile(rf"[{_SPACE}]*\Z")

# Numbers that are no digits count as letters in Python's re; code points without a meaning differ between Unicode
# versions; circled letters are parts of words for the library only.
_RARE_CATEGORIES = {"No", "Nl", "Cn", "Co", "Cs"}
_CIRCLED = re.compile("[\u24b6-\u24e9\U0001f130-\U0001f189]")
_WORD_CATEGORIES = {"Mn", "Mc", "Me", "Pc"}  # parts of words, beside letters and digits
_JOINERS = "\u200c\u200d"


def _visible_bytes() -> list[str]:
    """Return the character of each byte in byte-level vocabularies: itself, or one from U+0100 on."""
    shown = {*range(33, 127), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in shown else chr(next(others)) for byte in range(256)]


class WindowTokenizer:
    """A `tokenizers` tokenizer that splits long texts into several windows."""

    def __init__(self, tokenizer_json: bytes, *, max_tokens: int) -> None:
        self._tokenizer: Any = import_package("tokenizers").Tokenizer.from_buffer(tokenizer_json)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)

    def windows(self, text: str) -> list[Window]:
        """Return one or more windows; every token of `text` is in exactly one of them."""
        encoding = self._tokenizer.encode(valid_unicode(text))
        return [encoding.ids, *(rest.ids for rest in encoding.overflowing)]

    def token_id(self, token: str) -> int | None:
        found: int | None = self._tokenizer.token_to_id(token)
        return found

    def plain_ids(self, text: str) -> list[int]:
        """Return the ids of the text's own tokens in the first window."""
        ids: list[int] = self._tokenizer.encode(valid_unicode(text), add_special_tokens=False).ids
        return ids


class _AddedToken(msgspec.Struct, frozen=True, gc=False):
    id: int
    content: str
    single_word: bool
    lstrip: bool


class _Model(msgspec.Struct, frozen=True):
    vocab: dict[str, int]
    merges: list[str]


class _TokenizerFile(msgspec.Struct, frozen=True):
    added_tokens: list[_AddedToken]
    model: _Model


def is_short_and_plain(text: str) -> bool:
    """Return whether `ShortTextTokenizer` agrees with the full tokenizer."""
    if len(text) > MAX_SHORT_CHARACTERS:
        return False
    if text.isascii():
        return not _has_separators(text)
    categories = {unicodedata.category(character) for character in set(text)}
    if categories & _RARE_CATEGORIES or _has_separators(text) or _CIRCLED.search(text):
        return False
    return len(text.encode()) <= MAX_SHORT_BYTES


def _has_separators(text: str) -> bool:
    """Return whether there are control characters that are white space in Python only."""
    return any(separator in text for separator in "\x1c\x1d\x1e\x1f")


class ShortTextTokenizer:
    """Byte-level byte-pair encoding with added tokens, for texts that `is_short_and_plain` accepts.

    It reads a `tokenizer.json` without normalizer whose added tokens are neither normalized nor stripped on the right:
    Granite's, and those with added words of other languages.
    """

    def __init__(self, tokenizer_json: bytes) -> None:
        file = msgspec.json.decode(tokenizer_json, type=_TokenizerFile)
        self._vocabulary = file.model.vocab
        self._merge_order = dict(zip(file.model.merges, range(len(file.model.merges)), strict=True))
        self._added = {token.content: token for token in file.added_tokens}
        self._longest: dict[str, int] = {}  # the length of the longest added token, by its first character
        for content in self._added:
            if len(content) > self._longest.get(content[0], 0):
                self._longest[content[0]] = len(content)
        self._visible = _visible_bytes()

    def encode(self, text: str) -> Window:
        """Return the token ids with the start and end token around them."""
        return [self._vocabulary["<s>"], *self.plain_ids(text), self._vocabulary["</s>"]]

    def plain_ids(self, text: str) -> Window:
        """Return the ids of the text's own tokens."""
        ids = []
        begun = 0
        for start, token in self._added_tokens_in(text):
            before = text[begun:start]
            if token.lstrip:  # it takes the white space before it along
                before = _TRAILING_SPACE.sub("", before)
            ids += [*self._merged_ids(before), token.id]
            begun = start + len(token.content)
        return ids + self._merged_ids(text[begun:])

    def _added_tokens_in(self, text: str) -> Iterator[tuple[int, _AddedToken]]:
        """Yield the start of each added token: the leftmost match, and of those the longest."""
        at = 0
        while at < len(text):
            found = None
            for length in range(self._longest.get(text[at], 0), 0, -1):
                found = self._added.get(text[at : at + length])
                if found is not None:
                    break
            if found is None:
                at += 1
                continue
            end = at + len(found.content)
            if not found.single_word or not (_is_word(text[at - 1 : at]) or _is_word(text[end : end + 1])):
                yield at, found
            at = end  # part of a longer word: nothing shorter is looked for within

    def _merged_ids(self, text: str) -> list[int]:
        pieces = _PIECES.findall(text)
        return [self._vocabulary[token] for piece in pieces for token in self._merged(piece)]

    def _merged(self, piece: str) -> list[str]:
        parts = [self._visible[byte] for byte in piece.encode()]
        never = len(self._merge_order)
        while len(parts) > 1:
            orders = [self._merge_order.get(f"{left} {right}", never) for left, right in pairwise(parts)]
            order = min(orders)
            if order == never:
                break
            at = orders.index(order)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return parts


def _is_word(character: str) -> bool:
    """Return whether there is a character and it is part of a word."""
    if not character:
        return False
    return character.isalnum() or character in _JOINERS or unicodedata.category(character) in _WORD_CATEGORIES
