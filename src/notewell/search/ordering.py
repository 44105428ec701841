"""Puts relevant chunks into the order in which they are shown: by age, by date, by a reranker, by how much is new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from notewell.errors import IndexCorruptError
from notewell.search.dates.filters import days_of
from notewell.search.decay import age_factor
from notewell.search.diversity import DIVERSITY_POOL, diverse_order
from notewell.search.scoring import Scored
from notewell.types import StoredChunk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

    from notewell.protocols import Reranker, Snapshot
    from notewell.search.dates.question import TimeReading
    from notewell.search.dates.vocabulary import Order
    from notewell.search.tuning import Tuning

FETCH_STEP = 24  # chunks read at a time while the answer fills up


class Ranked(NamedTuple):
    """A chunk in its place, with the score it is shown with."""

    scored: Scored
    score: float
    chunk: StoredChunk | None = None  # fetched already if the order needed it
    age_factor: float | None = None  # what age left of the score; None where age does not count


@dataclass(frozen=True, slots=True)
class Ordering:
    """What besides relevance puts hits in order; by default nothing does."""

    today: date | None = None
    half_life_days: float | None = None  # None: age does not count
    reading: TimeReading | None = None  # the time that the query speaks of
    reranker: Reranker | None = None
    rerank_candidates: int = 20
    rerank_weight: float = 0.7
    diversity: float | None = None  # the lambda of MMR; None: off


def put_in_order(
    snapshot: Snapshot, query: str, ordering: Ordering, ranked: Sequence[Ranked], tuning: Tuning
) -> tuple[list[Ranked], str]:
    """Return the chunks in their final order, whatever the limit, and what the reader should know about it."""
    note = ""
    placed = list(ranked)
    if ordering.half_life_days is not None and ordering.today is not None:
        placed = _by_age(snapshot, ordering.today, ordering.half_life_days, placed)
    if ordering.reranker is not None:
        placed, note = _by_second_look(snapshot, query, ordering.reranker, ordering, placed)
    if ordering.diversity is not None:
        placed = _by_novelty(snapshot, ordering.diversity, placed)
    if ordering.reading is not None and ordering.reading.order is not None:
        placed = _by_date(snapshot, ordering.reading.order, placed, tuning)
    return placed, note


def with_chunks(snapshot: Snapshot, ranked: Sequence[Ranked]) -> Iterator[tuple[Ranked, StoredChunk]]:
    """Yield every place with its chunk, some at a time: most readers stop early."""
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
    """Return the error for a chunk that keywords or vectors name and that is not there."""
    return IndexCorruptError("the index names a chunk that it does not hold", hint="run `notewell index`")


def _by_age(snapshot: Snapshot, today: date, half_life_days: float, ranked: Sequence[Ranked]) -> list[Ranked]:
    """Let old notes fade. The threshold came before: age makes a note less current, not less relevant."""
    aged = []
    for r, chunk in with_chunks(snapshot, ranked):
        factor = age_factor(chunk.dated, today, half_life_days=half_life_days)
        aged.append(Ranked(r.scored, r.score * factor, chunk, factor))
    return sorted(aged, key=lambda r: -r.score)


def _by_date(snapshot: Snapshot, order: Order, ranked: Sequence[Ranked], tuning: Tuning) -> list[Ranked]:
    """Put what is about the subject in the order of its dates; what has no date, or is less relevant, comes after."""
    least = tuning.about_share * max((r.score for r in ranked), default=0.0)
    about = [r._replace(chunk=chunk) for r, chunk in with_chunks(snapshot, [r for r in ranked if r.score >= least])]
    days = {r.scored.candidate.chunk_id: days_of(r.chunk) for r in about if r.chunk}
    dated = [(found, r) for r in about if (found := days[r.scored.candidate.chunk_id])]
    dated.sort(key=lambda pair: pair[0][1] if order == "newest" else pair[0][0], reverse=order == "newest")
    first = [r for _, r in dated]
    placed = {r.scored.candidate.chunk_id for r in first}
    return first + [r for r in ranked if r.scored.candidate.chunk_id not in placed]


def _by_second_look(
    snapshot: Snapshot, query: str, reranker: Reranker, ordering: Ordering, ranked: Sequence[Ranked]
) -> tuple[list[Ranked], str]:
    from notewell.search.reranking import reranked, second_look  # only for those who ask for it

    pool = list(with_chunks(snapshot, ranked[: ordering.rerank_candidates]))
    second_scores, note = second_look(reranker, query, [chunk.text for _, chunk in pool])
    if second_scores is None:
        return list(ranked), note
    order = reranked([r.score for r in ranked], second_scores, weight=ordering.rerank_weight)
    return [ranked[place.position]._replace(score=place.score) for place in order], note


def _by_novelty(snapshot: Snapshot, relevance: float, ranked: Sequence[Ranked]) -> list[Ranked]:
    pool = list(with_chunks(snapshot, ranked[:DIVERSITY_POOL]))
    order = diverse_order([r.score for r, _ in pool], [chunk.text for _, chunk in pool], relevance=relevance)
    return [ranked[i] for i in order] + list(ranked[DIVERSITY_POOL:])
