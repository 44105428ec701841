"""Relevant chunks in, the order in which they are shown out: by time, by what is asked for, by a second look, by how
much is new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from recollect.errors import IndexCorruptError
from recollect.search.analysis import LONGEST_QUERY
from recollect.search.answer_kinds import GAIN, AnswerKind, holds, kind_asked_for
from recollect.search.decay import age_factor
from recollect.search.diversity import DIVERSITY_POOL, diverse_order
from recollect.search.fusion import Fused, raised
from recollect.search.heading_days import heading_days
from recollect.search.time_boost import time_gain
from recollect.types import StoredChunk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

    from recollect.protocols import Reranker, Snapshot
    from recollect.search.time_words import TimeReading

FETCH_STEP = 24  # chunks read at a time while the answer fills up
ANSWER_POOL = 24  # chunks looked through for what the question asks for; 200 make no difference to the first ten


class Ranked(NamedTuple):
    """A chunk in its place, with the score it is shown with."""

    fused: Fused
    score: float
    chunk: StoredChunk | None  # fetched already if the order needed it


@dataclass(frozen=True, slots=True)
class Ordering:
    """What besides relevance puts hits in order; by default nothing does."""

    today: date | None = None
    half_life_days: float | None = None  # None: age does not count
    reading: TimeReading | None = None  # the time that the query speaks of
    by_answer: bool = False  # texts that hold what the question asks for (a time, a number, a name) come first
    reranker: Reranker | None = None
    rerank_candidates: int = 20
    rerank_weight: float = 0.7
    diversity: float | None = None  # the lambda of MMR; None: off


def put_in_order(
    snapshot: Snapshot, query: str, ordering: Ordering, ranked: Sequence[Ranked]
) -> tuple[list[Ranked], str]:
    """Return the chunks in their final order, whatever the limit, and what the reader should know about it."""
    note = ""
    placed = list(ranked)
    if ordering.half_life_days is not None or ordering.reading is not None:
        placed = _by_time(snapshot, ordering, placed)
    if ordering.by_answer:
        placed = _by_answer(snapshot, query, placed)
    if ordering.reranker is not None:
        placed, note = _by_second_look(snapshot, query, ordering.reranker, ordering, placed)
    if ordering.diversity is not None:
        placed = _by_novelty(snapshot, ordering.diversity, placed)
    return placed, note


def with_chunks(snapshot: Snapshot, ranked: Sequence[Ranked]) -> Iterator[tuple[Ranked, StoredChunk]]:
    """Yield every place with its chunk, some at a time: most readers stop early."""
    for start in range(0, len(ranked), FETCH_STEP):
        some = ranked[start : start + FETCH_STEP]
        chunks = snapshot.chunks([r.fused.candidate.chunk_id for r in some if r.chunk is None])
        for r in some:
            chunk = r.chunk or chunks.get(r.fused.candidate.chunk_id)
            if chunk is None:
                raise IndexCorruptError("the index names a chunk that it does not hold", hint="run `recollect index`")
            yield r, chunk


def _by_time(snapshot: Snapshot, ordering: Ordering, ranked: Sequence[Ranked]) -> list[Ranked]:
    """Reorder by age and by the time asked for. The threshold came before: age makes a note less current, not false."""
    timed = []
    for r, chunk in with_chunks(snapshot, ranked):
        score = r.score
        if ordering.reading:
            days = (chunk.dated, chunk.dated) if chunk.dated else heading_days(chunk)
            score = raised(score, time_gain(ordering.reading, days))
        if ordering.half_life_days is not None and ordering.today is not None:
            score *= age_factor(chunk.dated, ordering.today, half_life_days=ordering.half_life_days)
        timed.append(Ranked(r.fused, score, chunk))
    return sorted(timed, key=_by_score)


def _by_answer(snapshot: Snapshot, query: str, ranked: Sequence[Ranked]) -> list[Ranked]:
    """Let those of the best gain that hold what the question asks for: a text without a time does not say when."""
    question = query[:LONGEST_QUERY]
    kind = kind_asked_for(question)
    if kind is None:
        return list(ranked)
    pool = [
        Ranked(r.fused, raised(r.score, GAIN) if _answers(kind, chunk, question) else r.score, chunk)
        for r, chunk in with_chunks(snapshot, ranked[:ANSWER_POOL])
    ]
    return [*sorted(pool, key=_by_score), *ranked[ANSWER_POOL:]]


def _answers(kind: AnswerKind, chunk: StoredChunk, question: str) -> bool:
    return (kind == "time" and chunk.dated is not None) or holds(kind, chunk.text, question)


def _by_score(r: Ranked) -> float:
    return -r.score  # what is equal stays in the order it came in: hits at the threshold were in order before


def _by_second_look(
    snapshot: Snapshot, query: str, reranker: Reranker, ordering: Ordering, ranked: Sequence[Ranked]
) -> tuple[list[Ranked], str]:
    from recollect.search.reranking import reranked, second_look  # only for those who ask for it

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
