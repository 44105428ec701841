"""Gives every candidate one score between 0 and 1.

    score   = text_weight * text + (1 - text_weight) * vector
    text    = s / (s + half_match)      s: the share of the question's weight that the text matches by BM25
    vector  = 0 for unrelated texts, `answer_level` for a question and its answer, 1 for the same text

Both parts lie on scales that no question moves, so a score means the same from question to question; which cosines are
those of unrelated texts and of answers, each embedder says. A chunk without a vector is judged by its words alone, and
the score of a semantic search is the vector part. `weighted` and `rrf` are what other systems use.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from recollect.lexicon import fold
from recollect.types import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recollect.search.tuning import Tuning
    from recollect.types import ChunkPlace, SearchMode

Fusion = Literal["balanced", "weighted", "rrf"]


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each side counts in `weighted` and `rrf`; they sum to 1."""

    vector: float = 0.7
    text: float = 0.3


OPENCLAW_WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class Scale:
    """What the question as a whole says about its candidates."""

    full_weight: float  # BM25 weight of a chunk that matches the whole question
    cosine_range: tuple[float, float]  # cosine of unrelated texts, and of a question and its answer
    tuning: Tuning
    mode: SearchMode = "hybrid"
    fusion: Fusion = "balanced"
    weights: Weights = OPENCLAW_WEIGHTS

    @property
    def text_weight(self) -> float:
        """The share of the words in the mix: the tuned one, moved as far as the weights differ from the usual ones."""
        tuned, usual, asked = self.tuning.text_weight, OPENCLAW_WEIGHTS, self.weights
        for_text = tuned * asked.text / usual.text
        for_vector = (1 - tuned) * asked.vector / usual.vector
        return for_text / (for_text + for_vector)

    @property
    def full_match(self) -> float:
        """The text part of a chunk that matches the whole question and no more."""
        return 1 / (1 + self.tuning.half_match)


class Scored(NamedTuple):
    """A candidate with its score and what each side brought to it."""

    candidate: Candidate
    score: float
    vector_part: float | None
    text_part: float


def score_all(candidates: Sequence[Candidate], scale: Scale) -> list[Scored]:
    """Return every candidate with its score, best first; ties by chunk id, so the order never depends on the limit."""
    by_rank = scale.fusion == "rrf" and any(candidate.cosine is not None for candidate in candidates)
    scored = _rrf(candidates, scale) if by_rank else [score_one(candidate, scale) for candidate in candidates]
    return sorted(scored, key=lambda s: (-s.score, s.candidate.chunk_id))


def score_one(candidate: Candidate, scale: Scale) -> Scored:
    """Return the candidate with its score, whatever the others are."""
    text, vector = text_part(candidate, scale), vector_part(candidate, scale)
    if vector is None:
        return Scored(candidate, text * _unless_cut(candidate, scale), None, text)
    if scale.mode == "semantic":
        return Scored(candidate, vector, vector, text)
    if scale.fusion == "weighted":
        return _weighted(candidate, scale.weights)
    by_text = scale.text_weight
    score = by_text * text + (1 - by_text) * vector
    return Scored(candidate, score * _unless_cut(candidate, scale), vector, text)


def _unless_cut(candidate: Candidate, scale: Scale) -> float:
    """Return what a score is multiplied by: one of many parts has had many chances to match."""
    share = scale.tuning.part_share
    return 1 - share + share / candidate.parts


def text_part(candidate: Candidate, scale: Scale) -> float:
    """Return how much of the question the text matches, from 0 to 1; one half at `half_match` of its weight."""
    tuning, full = scale.tuning, scale.full_weight
    matched = candidate.bm25 or 0.0
    matched += tuning.pairs * candidate.pairs + tuning.function_words * candidate.function_words
    share = matched / full if full > 0 else 0.0
    return share / (share + tuning.half_match)


def vector_part(candidate: Candidate, scale: Scale) -> float | None:
    """Return how near the meaning is, from 0 for unrelated texts to 1 for the same text; None without a vector."""
    if candidate.cosine is None:
        return None
    floor, answer = scale.cosine_range
    level = scale.tuning.answer_level
    if candidate.cosine <= answer:
        return max(0.0, level * (candidate.cosine - floor) / (answer - floor))
    return min(1.0, level + (1 - level) * (candidate.cosine - answer) / (1 - answer))


def _weighted(candidate: Candidate, weights: Weights) -> Scored:
    """OpenClaw's formula with the sign of BM25 put right: weight x cosine + weight x bm25 / (1 + bm25)."""
    bm25 = candidate.bm25 or 0.0
    vector, text = max(0.0, candidate.cosine or 0.0), bm25 / (1 + bm25)
    return Scored(candidate, min(1.0, weights.vector * vector + weights.text * text), vector, text)


def _rrf(candidates: Sequence[Candidate], scale: Scale) -> list[Scored]:
    """Reciprocal rank fusion by the two weights, scaled so that first on both sides is 1."""
    offset = scale.tuning.rank_offset
    by_vector = _ranks(candidates, lambda c: c.cosine)
    by_text = _ranks(candidates, lambda c: c.bm25)
    scored = []
    for candidate in candidates:
        vector = _reciprocal(by_vector.get(candidate.chunk_id), offset)
        text = _reciprocal(by_text.get(candidate.chunk_id), offset)
        score = (scale.weights.vector * vector + scale.weights.text * text) * (offset + 1)
        scored.append(Scored(candidate, score, vector, text))
    return scored


def _ranks(candidates: Sequence[Candidate], value: Callable[[Candidate], float | None]) -> dict[int, int]:
    ranked = [(raw, c.chunk_id) for c in candidates if (raw := value(c)) is not None]
    ranked.sort(key=lambda pair: (-pair[0], pair[1]))
    return {chunk_id: rank for rank, (_, chunk_id) in enumerate(ranked, start=1)}


def _reciprocal(rank: int | None, offset: int) -> float:
    return 1 / (offset + rank) if rank else 0.0


# --- the best candidates, read -------------------------------------------------------------------


def function_word_scores(words: Sequence[str], texts: Sequence[str]) -> list[float]:
    """Return the BM25 of the function words in each of the texts, which are their own small collection.

    A word that all of them hold tells nothing; "my" in a few of them does.
    """
    if not words or not texts:
        return [0.0] * len(texts)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)")
    counts = [Counter(pattern.findall(fold(text).lower())) for text in texts]
    held = Counter(word for counted in counts for word in counted)
    weights = {word: math.log((len(texts) - n + 0.5) / (n + 0.5)) for word, n in held.items()}
    mean = sum(map(len, texts)) / len(texts) or 1.0
    scores = []
    for text, counted in zip(texts, counts, strict=True):
        norm = _K1 * (1 - _B + _B * len(text) / mean)
        scores.append(sum(max(0.0, weights[word]) * n * (_K1 + 1) / (n + norm) for word, n in counted.items()))
    return scores


_K1, _B = 1.2, 0.75  # of BM25, as in the store


def with_neighbours(scored: Sequence[Scored], places: Mapping[int, ChunkPlace], share: float) -> list[Scored]:
    """Return messages of a conversation with what the messages before and after lend them, best first.

    An answer often stands beside its question: each neighbour is a second chance, `share` as good as its own score.
    """
    best: dict[tuple[int, int], float] = {}
    for each in scored:
        place = places[each.candidate.chunk_id]
        if place.turn:
            key = (place.document, place.turn)
            best[key] = max(best.get(key, 0.0), each.score)
    if not best:
        return list(scored)
    lent = []
    for each in scored:
        place = places[each.candidate.chunk_id]
        missed = 1 - each.score
        for turn in (place.turn - 1, place.turn + 1) if place.turn else ():
            missed *= 1 - share * best.get((place.document, turn), 0.0)
        lent.append(each._replace(score=1 - missed) if place.turn else each)
    return sorted(lent, key=lambda s: (-s.score, s.candidate.chunk_id))
