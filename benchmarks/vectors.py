"""Texts of the corpus in, unit vectors shaped like a sentence encoder's out, without a model.

A vector is a direction common to all, the direction of the text's topic, and one that its own lines add up to, so that
chunks that overlap or differ in one line are near each other. Topics and lines have a power-law spectrum that is spread
over all dimensions by a rotation. Nothing here calls BLAS, whose threads would blur the measurements around it.
"""

from __future__ import annotations

import hashlib
import re
import time
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from benchmarks.words import TOPICS, vocabulary
from notewell.types import EmbedderIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from notewell.protocols import Matrix, Vector

DIMENSIONS = 384
COMMON_SHARE = 0.55  # cosine of unrelated texts; sentence encoders give 0.5 to 0.6
TOPIC_SHARE = 0.5  # of what is left; texts of one topic then have a cosine of about 0.78
_SPECTRUM_EXPONENT = 0.8  # variance of principal component i falls as i ** -0.8
_QUERY_OWN = 0.4  # how much of a question's own direction is that of its answer
_BLOCK = 128  # 384 = 3 blocks of a size that a Hadamard transform takes
_WORD = re.compile(r"[a-z]+")
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # splitmix64


class BenchEmbedder:
    """Implements `Embedder`; keeps account of its own time, so that it can be left out of what is measured."""

    def __init__(
        self, query_vectors: Mapping[str, Vector] | None = None, *, identity: EmbedderIdentity | None = None
    ) -> None:
        self._query_vectors = query_vectors or {}
        self._identity = identity or EmbedderIdentity("bench", "mixture", hash_of("mixture-1").hex(), DIMENSIONS)
        self.cpu_s = 0.0
        self.wall_s = 0.0

    @property
    def identity(self) -> EmbedderIdentity:
        return self._identity

    @property
    def quantization(self) -> Literal["bits", "int8"]:
        return "bits"

    @property
    def cosine_range(self) -> tuple[float, float]:
        return (COMMON_SHARE, 0.85)

    def knows(self, text: str) -> bool:
        return bool(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        cpu, wall = time.process_time(), time.perf_counter()
        topics = np.array([topic_of(text) for text in texts])
        matrix = _assembled(topics, self._own_directions(texts))
        self.cpu_s += time.process_time() - cpu
        self.wall_s += time.perf_counter() - wall
        return matrix

    def embed_query(self, text: str) -> Vector:
        known = self._query_vectors.get(text)
        return self.embed_documents([text])[0] if known is None else known

    def embed_questions(self, questions: Sequence[str], answers: Sequence[str]) -> Matrix:
        """Return the vectors of questions whose answers are known: same topic, partly the same direction."""
        topics = np.array([topic_of(answer) for answer in answers])
        noise = _directions(_hashes([f"question {text}" for text in questions]))
        own = _QUERY_OWN * self._own_directions(answers) + (1 - _QUERY_OWN**2) ** 0.5 * noise
        return _assembled(topics, own)

    def close(self) -> None:
        """Nothing is held open."""

    def _own_directions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        lines = [[line for line in text.split("\n") if line] or [""] for text in texts]
        starts = np.cumsum([0, *(len(some) for some in lines[:-1])])
        of_lines = _directions(_hashes([line for some in lines for line in some]))
        return _unit(np.add.reduceat(of_lines, starts, axis=0))


def topic_of(text: str) -> int:
    """Return the topic whose words the text uses most; a text without any gets one by its hash."""
    known = vocabulary().topic_of
    counts: dict[int, int] = {}
    for word in known.keys() & set(_WORD.findall(text)):
        counts[known[word]] = counts.get(known[word], 0) + 1
    if not counts:
        return int.from_bytes(hash_of(text), "little") % TOPICS
    return max(counts, key=lambda topic: (counts[topic], -topic))


def hash_of(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def _hashes(texts: Sequence[str]) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(map(hash_of, texts)), "<u8").astype(np.uint64)


def _assembled(topics: NDArray[np.int64], own: NDArray[np.float32]) -> Matrix:
    varied = TOPIC_SHARE**0.5 * _fixed.topics[topics] + (1 - TOPIC_SHARE) ** 0.5 * own
    return _unit(COMMON_SHARE**0.5 * _fixed.common + (1 - COMMON_SHARE) ** 0.5 * _rotated(_unit(varied)))


def _directions(seeds: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Return one unit row a seed with the power-law spectrum, not yet rotated: splitmix64, four draws added up."""
    with np.errstate(over="ignore"):
        bits = seeds[:, None] + np.arange(1, DIMENSIONS + 1, dtype=np.uint64) * _GOLDEN
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    draws = np.ascontiguousarray(bits).view(np.uint16).reshape(len(seeds), DIMENSIONS, 4)
    normal = draws.sum(axis=2, dtype=np.float32) - np.float32(2 * 65535)
    return _unit(normal * _fixed.spectrum)


def _rotated(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Spread every component over a third of the dimensions: random signs, then a Walsh-Hadamard transform."""
    blocks = (rows * _fixed.signs).reshape(len(rows), DIMENSIONS // _BLOCK, _BLOCK)
    half = 1
    while half < _BLOCK:
        pairs = blocks.reshape(len(rows), -1, 2, half)
        blocks = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        half *= 2
    spread: NDArray[np.float32] = blocks.reshape(len(rows), DIMENSIONS) / np.float32(_BLOCK**0.5)
    return spread


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    unit: NDArray[np.float32] = (rows / norms[:, None]).astype(np.float32)
    return unit


class _Fixed:
    """What all vectors share, computed when first needed."""

    @cached_property
    def spectrum(self) -> NDArray[np.float32]:
        scales = np.arange(1, DIMENSIONS + 1, dtype=np.float64) ** (-_SPECTRUM_EXPONENT / 2)
        # Strong and weak components are dealt out to the blocks in turn, so that all dimensions vary alike.
        dealt = np.concatenate([scales[start :: DIMENSIONS // _BLOCK] for start in range(DIMENSIONS // _BLOCK)])
        return dealt.astype(np.float32)

    @cached_property
    def signs(self) -> NDArray[np.float32]:
        draws = np.frombuffer(hashlib.shake_256(b"signs").digest(DIMENSIONS), np.uint8)
        return np.where(draws & 1, 1, -1).astype(np.float32)

    @cached_property
    def topics(self) -> NDArray[np.float32]:
        return _directions(_hashes([f"topic {topic}" for topic in range(TOPICS)]))

    @cached_property
    def common(self) -> NDArray[np.float32]:
        return _rotated(_directions(_hashes(["common"])))


_fixed = _Fixed()
