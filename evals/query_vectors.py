"""Keeps the vectors of questions on disk, so that asking them again costs no time on the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from notewell.embedding.selection import select_embedder
from notewell.protocols import MeasuredLanguages
from notewell.settings import load_settings
from notewell.types import EmbedderIdentity, hash_text

if TYPE_CHECKING:
    from notewell.protocols import Embedder, Matrix, Vector


@contextmanager
def remembered_queries(work: Path) -> Iterator[Embedder | None]:
    """Yield the embedder of the settings with a memory for queries below `work`; None where there is no embedder.

    Memories may share it: closing one of them leaves it open.
    """
    inner = select_embedder(load_settings(work).settings).embedder
    if inner is None:
        yield None
        return
    embedder = RememberedQueries(inner, work / f"query-vectors-{inner.identity.key[:12]}.npz")
    try:
        yield embedder
    finally:
        embedder.save()
        inner.close()


class RememberedQueries:
    """Embeds as `inner` does, under its identity, and each query only once."""

    def __init__(self, inner: Embedder, file: Path) -> None:
        self._inner = inner
        self._file = file
        self._vectors: dict[str, Vector] = {}
        if file.exists():
            with np.load(file) as kept:
                self._vectors = dict(zip(kept["hashes"].tolist(), kept["vectors"], strict=True))
        self._saved = len(self._vectors)

    @property
    def identity(self) -> EmbedderIdentity:
        return self._inner.identity

    @property
    def quantization(self) -> Literal["bits", "int8"]:
        return self._inner.quantization

    @property
    def cosine_range(self) -> tuple[float, float]:
        return self._inner.cosine_range

    def knows(self, text: str) -> bool:
        return self._inner.knows(text)

    @property
    def language_weights(self) -> Mapping[str, float]:
        return self._inner.language_weights if isinstance(self._inner, MeasuredLanguages) else {}

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._inner.embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        name = hash_text(text)
        if name not in self._vectors:
            self._vectors[name] = self._inner.embed_query(text)
        return self._vectors[name]

    def close(self) -> None:
        """Save what is new; whoever opened the embedder closes it."""
        self.save()

    def save(self) -> None:
        """Write the vectors, if there are new ones."""
        if len(self._vectors) > self._saved:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(self._file, hashes=np.array(list(self._vectors)), vectors=np.stack(list(self._vectors.values())))
            self._saved = len(self._vectors)
