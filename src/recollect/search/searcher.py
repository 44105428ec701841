"""A request and a snapshot of the store in, ranked and cited hits out: joins the two legs and the pure steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from recollect.errors import IndexCorruptError, QueryError
from recollect.search.analysis import COMMON, RARE, KeywordQuery, choose_terms, query_terms, weigh
from recollect.search.citations import cite
from recollect.search.decay import age_factor
from recollect.search.diversity import DIVERSITY_POOL, diverse_order
from recollect.search.fusion import Evidence, Fused, Fusion, Weights, fuse, text_score
from recollect.search.snippets import make_snippet
from recollect.types import EVERYTHING, Candidate, Hit, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import date

    from recollect.protocols import Snapshot, Vector
    from recollect.types import FoundBy, SourceName, StoredChunk

MOST_CANDIDATES = 200  # a side; OpenClaw's cap
FETCH_STEP = 24  # chunks read at a time while the answer fills up


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question, with everything that shapes the answer."""

    query: str
    limit: int = 6
    min_score: float = 0.35
    fusion: Fusion = "balanced"
    weights: Weights = field(default_factory=Weights)
    by_keyword: bool = True  # False asks vectors alone, if there are any
    candidates: int = MOST_CANDIDATES
    scope: Scope = EVERYTHING
    half_life_days: float | None = None  # None: age does not count
    today: date | None = None  # needed when age counts
    diversity: float | None = None  # the lambda of MMR; None: off
    explain: bool = False

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise QueryError(f"the limit must be at least 1, got {self.limit}", hint="ask for 1 or more results")
        if not 0 <= self.min_score <= 1:
            raise QueryError(
                f"the minimum score must be between 0 and 1, got {self.min_score}", hint="0 keeps every result"
            )


@dataclass(frozen=True, slots=True)
class Found:
    """The hits, and the files that better-ranked chunks named but that are gone."""

    hits: tuple[Hit, ...]
    missing_files: frozenset[str]


class _Ranked(NamedTuple):
    """A chunk in its place, with the score it is shown with."""

    fused: Fused
    score: float
    chunk: StoredChunk | None  # fetched already if the order needed it


def find(
    snapshot: Snapshot,
    request: SearchRequest,
    query_vector: Vector | None,
    *,
    cosine_range: tuple[float, float],
    exists: Callable[[SourceName, str], bool],
) -> Found:
    """Return the best hits. Without a query vector only keywords are asked; a hit never names a missing file."""
    keywords = _keyword_query(snapshot, request.query)
    if query_vector is not None and not request.by_keyword:
        keywords = KeywordQuery((), keywords.full_weight)
    candidates = _candidates(snapshot, request, keywords, query_vector)
    evidence = Evidence(keywords.full_weight, request.weights, *cosine_range, _exact(snapshot, request, keywords))
    relevant = [f for f in fuse(candidates, evidence, fusion=request.fusion) if f.score >= request.min_score]
    ranked = [_Ranked(fused, fused.score, None) for fused in relevant]
    if request.half_life_days is not None:
        ranked = _aged(snapshot, request, ranked)
    if request.diversity is not None:
        ranked = _diversified(snapshot, request.diversity, ranked)
    return _show(snapshot, request, keywords, ranked, exists)


def _keyword_query(snapshot: Snapshot, query: str) -> KeywordQuery:
    terms = query_terms(query)
    frequencies = snapshot.document_frequencies(terms, at_most=COMMON)
    return choose_terms(weigh(terms, frequencies, snapshot.counts().chunks))


def _candidates(
    snapshot: Snapshot, request: SearchRequest, keywords: KeywordQuery, query_vector: Vector | None
) -> list[Candidate]:
    """Ask both legs, then complete the score that each leg alone would leave out."""
    bm25: dict[int, float] = {}
    cosine: dict[int, float] = {}
    if query_vector is not None:
        matches = snapshot.vector_matches(query_vector, limit=request.candidates, scope=request.scope)
        cosine = {match.chunk_id: match.score for match in matches}
    if keywords.terms:
        matches = snapshot.keyword_matches(
            keywords.terms, limit=request.candidates, scope=request.scope, also=cosine.keys()
        )
        bm25 = {match.chunk_id: match.score for match in matches}
    if query_vector is not None and (by_keyword_only := bm25.keys() - cosine.keys()):
        cosine.update(snapshot.vector_scores(query_vector, by_keyword_only))
    return [Candidate(chunk_id, cosine.get(chunk_id), bm25.get(chunk_id)) for chunk_id in bm25 | cosine]


def _exact(snapshot: Snapshot, request: SearchRequest, keywords: KeywordQuery) -> frozenset[int]:
    """Return the chunks that hold the query's rarest word: whatever else they say, the threshold must not hide them."""
    if keywords.rarest is None:
        return frozenset()
    matches = snapshot.keyword_matches([keywords.rarest], limit=RARE, scope=request.scope)
    return frozenset(match.chunk_id for match in matches)


def _aged(snapshot: Snapshot, request: SearchRequest, ranked: Sequence[_Ranked]) -> list[_Ranked]:
    """Reorder by score times age factor. The threshold came before: age makes a note less current, not less true."""
    if request.today is None or request.half_life_days is None:
        return list(ranked)
    chunks = snapshot.chunks([r.fused.candidate.chunk_id for r in ranked])
    aged = []
    for r in ranked:
        chunk = chunks[r.fused.candidate.chunk_id]
        factor = age_factor(chunk.dated, request.today, half_life_days=request.half_life_days)
        aged.append(_Ranked(r.fused, r.score * factor, chunk))
    return sorted(aged, key=lambda r: (-r.score, r.fused.candidate.chunk_id))


def _diversified(snapshot: Snapshot, relevance: float, ranked: Sequence[_Ranked]) -> list[_Ranked]:
    pool, rest = ranked[:DIVERSITY_POOL], ranked[DIVERSITY_POOL:]
    chunks = snapshot.chunks([r.fused.candidate.chunk_id for r in pool])
    texts = [chunks[r.fused.candidate.chunk_id].text for r in pool]
    order = diverse_order([r.score for r in pool], texts, relevance=relevance)
    return [pool[i] for i in order] + list(rest)


def _show(
    snapshot: Snapshot,
    request: SearchRequest,
    keywords: KeywordQuery,
    ranked: Sequence[_Ranked],
    exists: Callable[[SourceName, str], bool],
) -> Found:
    hits: list[Hit] = []
    missing: set[str] = set()
    terms = {token for term in keywords.terms for token in term.tokens}
    for place, chunk in _with_chunks(snapshot, ranked):
        if not exists(chunk.source, chunk.path):
            missing.add(chunk.path)
            continue
        hits.append(_hit(chunk, place, terms, keywords.full_weight, explain=request.explain))
        if len(hits) == request.limit:
            break
    return Found(tuple(hits), frozenset(missing))


def _with_chunks(snapshot: Snapshot, ranked: Sequence[_Ranked]) -> Iterator[tuple[_Ranked, StoredChunk]]:
    for start in range(0, len(ranked), FETCH_STEP):
        some = ranked[start : start + FETCH_STEP]
        chunks = snapshot.chunks([r.fused.candidate.chunk_id for r in some if r.chunk is None])
        for r in some:
            chunk = r.chunk or chunks.get(r.fused.candidate.chunk_id)
            if chunk is None:
                raise IndexCorruptError("the index names a chunk that it does not hold", hint="run `recollect index`")
            yield r, chunk


def _hit(chunk: StoredChunk, place: _Ranked, terms: set[str], full_weight: float, *, explain: bool) -> Hit:
    candidate = place.fused.candidate
    matched = text_score(candidate.bm25, full_weight)
    return Hit(
        path=chunk.path,
        first_line=chunk.first_line,
        last_line=chunk.last_line,
        score=round(place.score, 4),
        snippet=make_snippet(chunk.text, terms),
        source=chunk.source,
        citation=cite(chunk.path, chunk.first_line, chunk.last_line),
        found_by=_found_by(candidate),
        vector_score=None if candidate.cosine is None else round(candidate.cosine, 4),
        text_score=None if matched is None else round(matched, 4),
        explanation=_explanation(place, chunk) if explain else None,
    )


def _found_by(candidate: Candidate) -> FoundBy:
    if candidate.bm25 is None:
        return "vector"
    return "keyword" if candidate.cosine is None else "both"


def _explanation(place: _Ranked, chunk: StoredChunk) -> Mapping[str, float | str]:
    fused = place.fused
    parts = {
        "cosine": fused.candidate.cosine,
        "bm25": fused.candidate.bm25,
        "vector_part": fused.vector_part,
        "text_part": fused.text_part,
    }
    numbers = {name: round(value, 6) for name, value in parts.items() if value is not None}
    if place.score != fused.score:
        numbers["age_factor"] = round(place.score / fused.score, 6)
    return numbers | ({"context": chunk.context} if chunk.context else {})
