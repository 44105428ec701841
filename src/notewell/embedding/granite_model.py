"""The loaded packaged model: texts come in, raw vectors go out, by the cheaper of two ways to compute them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from notewell.embedding.byte_pairs import MOST_CHARACTERS, ShortTextTokenizer, is_short_and_plain
from notewell.embedding.forward import NumpyForward
from notewell.embedding.windows import Window, WindowTokenizer, vectors_of

if TYPE_CHECKING:
    from notewell.embedding.granite_graph import GraniteSession
    from notewell.embedding.pack import FloatArray, ModelPack

MAX_TOKENS = 512  # what the model was trained for, start and end token included

# What a session takes to open (0.2 s with the import of onnxruntime) is what NumPy takes for about this many tokens: a
# process that has spent that much is going to ask for more.
MOST_TOKENS_WITHOUT_SESSION = 256


class GraniteModel:
    """Tokenizers, weights and session of one pack, each opened when it is first needed."""

    def __init__(self, pack: ModelPack) -> None:
        self._pack = pack
        self._forward = NumpyForward(pack)
        self._opening = threading.Lock()
        self._short_tokenizer: ShortTextTokenizer | None = None
        self._tokenizer: WindowTokenizer | None = None
        self._session: GraniteSession | None = None
        self._tokens_without_session = 0

    def vectors(self, texts: Sequence[str]) -> FloatArray:
        """Return one row a text, not yet of unit length."""
        return vectors_of(self._windows(texts), self._vectors_of_windows)

    def _windows(self, texts: Sequence[str]) -> list[list[Window]]:
        few = sum(map(len, texts)) <= MOST_CHARACTERS
        if self._tokenizer is None and few and all(map(is_short_and_plain, texts)):
            short = self._opened_short_tokenizer()
            return [[short.encode(text)] for text in texts]
        tokenizer = self._opened_tokenizer()
        return [tokenizer.windows(text) for text in texts]

    def _vectors_of_windows(self, windows: Sequence[Window]) -> list[FloatArray]:
        if self._session is None:
            self._tokens_without_session += sum(map(len, windows))
            if self._tokens_without_session <= MOST_TOKENS_WITHOUT_SESSION:
                return [self._forward.vector(window) for window in windows]
        return self._opened_session().vectors(windows, self._forward.token_sums)

    def _opened_short_tokenizer(self) -> ShortTextTokenizer:
        with self._opening:
            if self._short_tokenizer is None:
                self._short_tokenizer = ShortTextTokenizer(self._pack.tokenizer_json)
            return self._short_tokenizer

    def _opened_tokenizer(self) -> WindowTokenizer:
        with self._opening:
            if self._tokenizer is None:
                self._tokenizer = WindowTokenizer(self._pack.tokenizer_json, max_tokens=MAX_TOKENS)
                self._short_tokenizer = None
            return self._tokenizer

    def _opened_session(self) -> GraniteSession:
        from notewell.embedding.granite_graph import GraniteSession  # a single query does without it

        with self._opening:
            if self._session is None:
                self._session = GraniteSession(self._pack)
            return self._session
