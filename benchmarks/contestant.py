"""The seam of the benchmark: what every way of keeping notes must be able to do to be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from benchmarks.corpus import load_questions
from benchmarks.vectors import BenchEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from benchmarks.corpus import Question
    from notewell.protocols import Vector
    from notewell.types import EmbedderIdentity

MAX_RESULTS = 6
CANDIDATES = 24  # four times the results, as the OpenClaw's layout asks for
VECTOR_WEIGHT = 0.7
TEXT_WEIGHT = 0.3

Place = tuple[str, int, int]  # path, first and last line (1-based, inclusive)


class Contestant(Protocol):
    """One way to keep and search the notes of a workspace; opened on a folder of its own, closed at the end."""

    name: str
    embedder: BenchEmbedder  # what it embeds with; its time is not counted

    def build(self) -> None:
        """Index every note into an empty folder."""
        ...

    def sync(self) -> bool:
        """Bring the index up to date with the files; False when it has no way to do that by itself."""
        ...

    def update(self, path: Path) -> None:
        """Bring the index up to date after this one note changed."""
        ...

    def hybrid(self, query: str, vector: Vector) -> Sequence[Place]: ...

    def keyword_leg(self, query: str) -> Sequence[Place]: ...

    def vector_leg(self, vector: Vector) -> Sequence[Place]:
        """Return what the hybrid search asks its vectors for, nearest first; at least CANDIDATES places."""
        ...

    def chunks(self) -> Iterable[tuple[Place, str]]:
        """Yield every indexed chunk with the text that was embedded."""
        ...

    def disk_bytes(self) -> tuple[int, int]:
        """Return the size after closing, without and with the cache of vectors."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Ground:
    """Where a contestant works: the notes, the questions about them and their vectors."""

    folder: Path

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def questions_file(self) -> Path:
        return self.folder / "questions.json"

    @property
    def vectors_file(self) -> Path:
        return self.folder / "question_vectors.npy"

    def state(self, contestant: str) -> Path:
        """Return the folder this contestant keeps its index in."""
        path = self.folder / contestant
        path.mkdir(exist_ok=True)
        return path

    def questions(self) -> list[Question]:
        return load_questions(self.questions_file)

    def question_vectors(self) -> dict[str, Vector]:
        return dict(zip((question.text for question in self.questions()), np.load(self.vectors_file), strict=True))

    def embedder(self, identity: EmbedderIdentity | None = None) -> BenchEmbedder:
        return BenchEmbedder(self.question_vectors(), identity=identity)


def merged(
    by_vector: Iterable[tuple[Place, float]], by_keyword: Iterable[tuple[Place, float]], *, min_score: float = 0.35
) -> list[Place]:
    """Return the best places by 0.7 times the cosine plus 0.3 times the text score, as the OpenClaw's layout merges."""
    scores: dict[Place, float] = {}
    for place, cosine in by_vector:
        scores[place] = VECTOR_WEIGHT * cosine
    for place, text_score in by_keyword:
        scores[place] = scores.get(place, 0.0) + TEXT_WEIGHT * text_score
    ranked = sorted(scores, key=scores.__getitem__, reverse=True)
    return [place for place in ranked if scores[place] >= min_score][:MAX_RESULTS]
