"""Puts relevant chunks in the order they are shown in: by age, by date, by a reranker, by how much is new.

No step depends on the limit of the search, so the best k hits are always the first k of the best k+n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from notewell.errors import IndexCorruptError, RerankerError
from notewell.search.dates.filters import days_of
from notewell.search.scoring import Scored
from notewell.text.lexicon import index_terms
from notewell.types import StoredChunk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

    from notewell.protocols import Reranker, Snapshot
    from notewell.search.dates.question import TimeReading
    from notewell.search.dates.vocabulary import Order
    from notewell.search.tuning import Tuning

FETCH_STEP = 24  # chunks read at a time while the answer fills up
DIVERSITY_POOL = 50  # chunks reordered for diversity, whatever the limit


class Ranked(NamedTuple):
    """A chunk in its place, with the score it is shown with."""

    scored: Scored
    score: float
    chunk: StoredChunk | None = None  # fetched already if the order needed it
    age_factor: float | None = None  # what age left of the score; None where age does not count
    answered: float = 1.0  # how well the question is answered: no score is higher

    @property
    def relevance(self) -> float:
        """The score before age and a reranker, which the threshold was compared with."""
        return min(self.scored.score, self.answered)


@dataclass(frozen=True, slots=True)
class Ordering:
    """What decides the order of hits besides relevance; by default nothing does."""

    today: date | None = None
    half_life_days: float | None = None  # None: age does not count
    reading: TimeReading | None = None  # the time that the query names
    reranker: Reranker | None = None
    rerank_candidates: int = 20
    rerank_weight: float = 0.7
    diversity: float | None = None  # the lambda of MMR; None: off


def put_in_order(
    snapshot: Snapshot, query: str, ordering: Ordering, ranked: Sequence[Ranked], tuning: Tuning
) -> tuple[list[Ranked], str]:
    """Return the chunks in their final order, and a note for the reader if something went wrong."""
    note = ""
    placed = list(ranked)
    if ordering.half_life_days is not None and ordering.today is not None:
        placed = _by_age(snapshot, ordering.today, ordering.half_life_days, placed)
    if ordering.reranker is not None:
        placed, note = _by_reranker(snapshot, query, ordering.reranker, ordering, placed)
    if ordering.diversity is not None:
        placed = _by_diversity(snapshot, ordering.diversity, placed)
    if ordering.reading is not None and ordering.reading.order is not None:
        placed = _by_date(snapshot, ordering.reading.order, placed, tuning)
    return placed, note


def with_chunks(snapshot: Snapshot, ranked: Sequence[Ranked]) -> Iterator[tuple[Ranked, StoredChunk]]:
    """Yield every place with its chunk, fetching a few at a time: most callers stop early."""
    for start in range(0, len(ranked), FETCH_STEP):
        some = ranked[start : start + FETCH_STEP]
        missing = [r.scored.candidate.chunk_id for r in some if r.chunk is None]
        chunks = snapshot.chunks(missing) if missing else {}
        for r in some:
            chunk = r.chunk or chunks.get(r.scored.candidate.chunk_id)
            if chunk is None:
                raise missing_chunk()
            yield r, chunk


def missing_chunk() -> IndexCorruptError:
    """Return the error for a chunk that keywords or vectors refer to but that is not stored."""
    return IndexCorruptError("the index refers to a chunk that it does not contain", hint="run `notewell index`")


# --- age and date --------------------------------------------------------------------------------


def age_factor(dated: date | None, today: date, *, half_life_days: float) -> float:
    """Return 1 for an evergreen note, one half for a note `half_life_days` old; a future date gains nothing."""
    if dated is None:
        return 1.0
    age_days = max(0, (today - dated).days)
    return float(0.5 ** (age_days / half_life_days))


def _by_age(snapshot: Snapshot, today: date, half_life_days: float, ranked: Sequence[Ranked]) -> list[Ranked]:
    """Let old notes fade. The threshold came before: age makes a note less current, not less relevant."""
    aged = []
    for r, chunk in with_chunks(snapshot, ranked):
        factor = age_factor(chunk.dated, today, half_life_days=half_life_days)
        aged.append(r._replace(score=r.score * factor, chunk=chunk, age_factor=factor))
    return sorted(aged, key=lambda r: -r.score)


def _by_date(snapshot: Snapshot, order: Order, ranked: Sequence[Ranked], tuning: Tuning) -> list[Ranked]:
    """Sort what is about the subject by date; what has no date, or is less relevant, comes after."""
    least = tuning.about_share * max((r.scored.score for r in ranked), default=0.0)
    relevant = [r for r in ranked if r.scored.score >= least]
    about = [r._replace(chunk=chunk) for r, chunk in with_chunks(snapshot, relevant)]
    dated = [(days, r) for r in about if r.chunk and (days := days_of(r.chunk))]
    dated.sort(key=lambda pair: pair[0][1] if order == "newest" else pair[0][0], reverse=order == "newest")
    placed = {r.scored.candidate.chunk_id for _, r in dated}
    return [r for _, r in dated] + [r for r in ranked if r.scored.candidate.chunk_id not in placed]


# --- reranking -----------------------------------------------------------------------------------


class Reranked(NamedTuple):
    """Where a candidate was before, and the score it is shown with now."""

    position: int  # from 0, in the ranking that came in
    score: float


def _by_reranker(
    snapshot: Snapshot, query: str, reranker: Reranker, ordering: Ordering, ranked: Sequence[Ranked]
) -> tuple[list[Ranked], str]:
    pool = list(with_chunks(snapshot, ranked[: ordering.rerank_candidates]))
    new_scores, note = ask_reranker(reranker, query, [chunk.text for _, chunk in pool])
    if new_scores is None:
        return list(ranked), note
    order = reranked([r.score for r in ranked], new_scores, weight=ordering.rerank_weight)
    return [ranked[place.position]._replace(score=place.score) for place in order], note


def ask_reranker(reranker: Reranker, query: str, texts: Sequence[str]) -> tuple[list[float] | None, str]:
    """Return a score for each text; or None, and a note for the reader if the reranker failed."""
    if not texts or not query.strip():
        return None, ""
    try:
        scores = [float(score) for score in reranker.rerank(query, texts)]
    except RerankerError as error:
        return None, f"not reranked: {error.message}; {error.hint}".rstrip("; ")
    if len(scores) != len(texts):
        return None, f"not reranked: the reranker returned {len(scores)} scores for {len(texts)} texts"
    if not all(map(math.isfinite, scores)):
        return None, "not reranked: the reranker returned a score that is not a number"
    return scores, ""


def reranked(scores: Sequence[float], new_scores: Sequence[float], *, weight: float) -> list[Reranked]:
    """Return every position once, best first.

    `scores` are those of the whole ranking, best first; `new_scores` those of its first few, on any scale. They are
    spread over the range of the old scores of those few and mixed with them, `weight` being their share: so a score
    keeps its meaning, and nothing outside the reranked few can overtake them. Ties keep the reranker's order, then the
    old one.
    """
    pool = scores[: len(new_scores)]
    if not pool or weight <= 0:
        return [Reranked(position, score) for position, score in enumerate(scores)]
    low, high = min(pool), max(pool)
    shares = _from_0_to_1(new_scores)
    # Rounding must not carry a score out of the range of the pool.
    mixed = [
        min(high, max(low, (1 - weight) * score + weight * (low + (high - low) * share)))
        for score, share in zip(pool, shares, strict=True)
    ]
    order = sorted(range(len(pool)), key=lambda at: (-mixed[at], -shares[at], at))
    rest = [Reranked(position, scores[position]) for position in range(len(pool), len(scores))]
    return [Reranked(at, mixed[at]) for at in order] + rest


def _from_0_to_1(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    # Halved first: the difference of two very large numbers of opposite sign would be infinite.
    span = high / 2 - low / 2
    return [(value / 2 - low / 2) / span if span > 0 else 0.5 for value in values]


# --- diversity -----------------------------------------------------------------------------------


def _by_diversity(snapshot: Snapshot, relevance: float, ranked: Sequence[Ranked]) -> list[Ranked]:
    pool = list(with_chunks(snapshot, ranked[:DIVERSITY_POOL]))
    order = diverse_order([r.score for r, _ in pool], [chunk.text for _, chunk in pool], relevance=relevance)
    return [ranked[i] for i in order] + list(ranked[DIVERSITY_POOL:])


def diverse_order(scores: Sequence[float], texts: Sequence[str], *, relevance: float) -> list[int]:
    """Return the positions of the texts by maximal marginal relevance (Carbonell and Goldstein 1998).

    Each trades its score against its similarity to those before it: the share of terms that two texts have in common.
    """
    term_sets = [frozenset(index_terms(text).split()) for text in texts]
    best = max(scores, default=0.0) or 1.0
    similarity = [0.0] * len(scores)  # to the most similar text chosen so far
    remaining = list(range(len(scores)))
    order: list[int] = []
    while remaining:
        chosen = max(remaining, key=lambda i: (relevance * scores[i] / best - (1 - relevance) * similarity[i], -i))
        remaining.remove(chosen)
        order.append(chosen)
        for i in remaining:
            similarity[i] = max(similarity[i], _jaccard(term_sets[i], term_sets[chosen]))
    return order


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0
