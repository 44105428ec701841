"""Fits texts to a model: texts come in, windows of token ids go out, and the windows' vectors become one again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from notewell.embedding.extra import imported

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float32]

Window = list[int]  # token ids, the model's start and end tokens included


class WindowTokenizer:
    """A `tokenizers` tokenizer that loses nothing: a text over the limit becomes several windows."""

    def __init__(self, tokenizer_json: bytes, *, max_tokens: int) -> None:
        self._tokenizer: Any = imported("tokenizers").Tokenizer.from_buffer(tokenizer_json)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)

    def windows(self, text: str) -> list[Window]:
        """Return at least one window; every token of `text` is in exactly one of them."""
        encoding = self._tokenizer.encode(encodable(text))
        return [encoding.ids, *(rest.ids for rest in encoding.overflowing)]

    def token_id(self, token: str) -> int | None:
        found: int | None = self._tokenizer.token_to_id(token)
        return found

    def plain_ids(self, text: str) -> list[int]:
        """Return the ids of the text's own tokens in the first window."""
        ids: list[int] = self._tokenizer.encode(encodable(text), add_special_tokens=False).ids
        return ids


def vectors_of(
    windows_of_texts: Sequence[Sequence[Window]], vectors_of_windows: Callable[[Sequence[Window]], Sequence[FloatArray]]
) -> FloatArray:
    """Return one row a text: the mean direction of its windows, each weighing as much as it has tokens."""
    flat = [window for windows in windows_of_texts for window in windows]
    stacked = np.stack(vectors_of_windows(flat))
    lengths = np.linalg.norm(stacked, axis=1, keepdims=True)
    directions = np.divide(stacked, lengths, out=np.zeros_like(stacked), where=lengths > 0)
    weighted = directions * np.asarray([len(window) for window in flat], dtype=np.float32)[:, np.newaxis]
    first_windows = np.cumsum([0, *(len(windows) for windows in windows_of_texts[:-1])])
    rows: FloatArray = np.add.reduceat(weighted, first_windows, axis=0)
    return rows


def encodable(text: str) -> str:
    """Return `text` with lone surrogates replaced: tokenizers refuse them, and a note or a terminal may hold one."""
    return text.encode("utf-8", "replace").decode("utf-8")
