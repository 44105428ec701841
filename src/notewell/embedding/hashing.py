"""Embeds texts without a model, as signed bags of hashed words.

It compares words rather than meaning; for tests, demonstrations and machines that cannot run a model.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from notewell.types import EmbedderIdentity, hash_text

if TYPE_CHECKING:
    from notewell.protocols import Embedder, Matrix, Vector
    from notewell.settings import Settings

DIMENSIONS = 384  # the width of the small sentence models, so that sizes and timings compare

# Measured with questions on a few notes: half of the pairs share no word, a tenth of the first hits score higher.
COSINE_RANGE = (0.0, 0.45)

# Kana, Han, Hangul: written without blanks, so a run of them is not a word.
_CJK = r"぀-ヿ㐀-鿿가-힯豈-﫿"
_RUNS = re.compile(rf"(?P<cjk>[{_CJK}]+)|[^\W_]+")


class HashingEmbedder:
    """Counts words by hash, with a sign, so that collisions cancel out."""

    quantization: Literal["bits", "int8"] = "int8"
    cosine_range = COSINE_RANGE

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self.identity = EmbedderIdentity(
            provider="hashing",
            model="signed-word-bag",
            key=hash_text(f"crc32, CJK characters and pairs, other words, {dimensions}"),
            dimensions=dimensions,
        )

    def knows(self, text: str) -> bool:  # noqa: ARG002 - it counts words of every script alike
        return True

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        import numpy as np  # choosing an embedder must not import it

        from notewell.embedding.unit_vectors import unit_rows

        dimensions = self.identity.dimensions
        counts = np.zeros((len(texts), dimensions), dtype=np.float32)
        for row, text in zip(counts, texts, strict=True):
            for token in _tokens(text):
                code = zlib.crc32(token.encode("utf-8", "replace"))
                row[code % dimensions] += -1 if code >> 16 & 1 else 1
            if not row.any():
                row[0] = 1
        return unit_rows(counts, count=len(texts), dimensions=dimensions)

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def close(self) -> None:
        """Nothing is held."""


def open_hashing(settings: Settings) -> Embedder:  # noqa: ARG001 - the signature every embedder is opened with
    """Return the hashing embedder; the entry point `hashing` of `notewell.embedders`."""
    return HashingEmbedder()


def _tokens(text: str) -> Iterator[str]:
    for match in _RUNS.finditer(text.lower()):
        run = match[0]
        yield from run if match["cjk"] else (run,)
        if match["cjk"]:
            yield from (run[at : at + 2] for at in range(len(run) - 1))
