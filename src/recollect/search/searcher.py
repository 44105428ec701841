"""A request and a snapshot of the store in, ranked and cited hits out: joins the two legs and the pure steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recollect.errors import QueryError
from recollect.search.analysis import RARE, KeywordQuery, keyword_query
from recollect.search.citations import cite
from recollect.search.fusion import Evidence, Fusion, Weights, above, fuse, keyword_score, text_score
from recollect.search.neighbours import JOIN_POOL, joined_groups
from recollect.search.ordering import Ordering, Ranked, put_in_order, with_chunks
from recollect.search.snippets import make_snippet
from recollect.types import EVERYTHING, Candidate, Hit, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from recollect.protocols import Snapshot, Vector
    from recollect.types import FoundBy, SearchMode, SourceName, StoredChunk

MOST_CANDIDATES = 200  # a side; OpenClaw's cap


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question, with everything that shapes the answer."""

    query: str
    limit: int = 6
    min_score: float = 0.35
    fusion: Fusion = "balanced"
    weights: Weights = field(default_factory=Weights)
    mode: SearchMode = "hybrid"  # semantic asks vectors alone, if there are any
    candidates: int = MOST_CANDIDATES
    scope: Scope = EVERYTHING
    ordering: Ordering = field(default_factory=Ordering)
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
    """The hits, the files that better-ranked chunks named but that are gone, and what the reader should know."""

    hits: tuple[Hit, ...]
    missing_files: frozenset[str]
    notes: tuple[str, ...] = ()


def find(
    snapshot: Snapshot,
    request: SearchRequest,
    query_vector: Vector | None,
    *,
    cosine_range: tuple[float, float],
    exists: Callable[[SourceName, str], bool],
) -> Found:
    """Return the best hits. Without a query vector only keywords are asked; a hit never names a missing file."""
    reading = request.ordering.reading
    keywords = keyword_query(snapshot, request.query, about_time=reading.words if reading else "")
    if query_vector is not None and request.mode == "semantic":
        keywords = KeywordQuery((), keywords.full_weight)
    candidates = _candidates(snapshot, request, keywords, query_vector)
    evidence = Evidence(keywords.full_weight, request.weights, *cosine_range, _exact(snapshot, request, keywords))
    relevant = above(fuse(candidates, evidence, fusion=request.fusion), request.min_score)
    ranked = [Ranked(fused, fused.score, None) for fused in relevant]
    ranked, note = put_in_order(snapshot, request.query, request.ordering, ranked)
    notes = tuple(filter(None, (_respelled(keywords), note)))
    return replace(_show(snapshot, request, keywords, ranked, exists), notes=notes)


def _respelled(keywords: KeywordQuery) -> str:
    if not keywords.respelled:
        return ""
    words = " and ".join(f'"{word}"' for word in keywords.respelled)
    return f"no note holds {words}: words that are spelled nearly so were looked for"


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
            keywords.terms,
            limit=request.candidates,
            scope=request.scope,
            led_by=keywords.led_by,
            also=cosine.keys(),
        )
        bm25 = {match.chunk_id: match.score for match in matches}
    related: dict[int, float] = {}
    if keywords.related and request.fusion == "balanced":
        matches = snapshot.keyword_matches(
            keywords.related,
            limit=request.candidates,
            scope=request.scope,
            led_by=keywords.related_led_by,
            also=bm25.keys() | cosine.keys(),
        )
        related = {match.chunk_id: match.score for match in matches}
        bm25 = dict.fromkeys(related, 0.0) | bm25
    if query_vector is not None and (by_keyword_only := bm25.keys() - cosine.keys()):
        cosine.update(snapshot.vector_scores(query_vector, by_keyword_only))
    pairs = snapshot.keyword_scores(keywords.pairs, bm25) if keywords.pairs else {}
    found = bm25 | cosine
    terms = snapshot.term_counts(found) if request.fusion == "balanced" else {}
    return [
        Candidate(
            chunk_id,
            cosine.get(chunk_id),
            bm25.get(chunk_id),
            pairs.get(chunk_id, 0.0),
            terms.get(chunk_id),
            related.get(chunk_id, 0.0),
        )
        for chunk_id in found
    ]


def _exact(snapshot: Snapshot, request: SearchRequest, keywords: KeywordQuery) -> frozenset[int]:
    """Return the chunks that hold the query's rarest word: whatever else they say, the threshold must not hide them."""
    if keywords.rarest is None:
        return frozenset()
    matches = snapshot.keyword_matches([keywords.rarest], limit=RARE, scope=request.scope)
    return frozenset(match.chunk_id for match in matches)


def _show(
    snapshot: Snapshot,
    request: SearchRequest,
    keywords: KeywordQuery,
    ranked: Sequence[Ranked],
    exists: Callable[[SourceName, str], bool],
) -> Found:
    hits: list[Hit] = []
    missing: set[str] = set()
    for place, chunk in _joined(snapshot, ranked):
        if not exists(chunk.source, chunk.path):
            missing.add(chunk.path)
            continue
        snippet = make_snippet(chunk.text, keywords.weights)
        hits.append(_hit(chunk, place, snippet, keywords.full_weight, explain=request.explain))
        if len(hits) == request.limit:
            break
    return Found(tuple(hits), frozenset(missing))


def _joined(snapshot: Snapshot, ranked: Sequence[Ranked]) -> Iterator[tuple[Ranked, StoredChunk]]:
    """Yield the ranked chunks; neighbours among the best become one, in the place of the better."""
    best = list(with_chunks(snapshot, ranked[:JOIN_POOL]))
    for members, whole in joined_groups([chunk for _, chunk in best]):
        yield best[members[0]][0], whole
    yield from with_chunks(snapshot, ranked[JOIN_POOL:])


def _hit(chunk: StoredChunk, place: Ranked, snippet: str, full_weight: float, *, explain: bool) -> Hit:
    candidate = place.fused.candidate
    matched = text_score(keyword_score(candidate), full_weight)
    return Hit(
        path=chunk.path,
        first_line=chunk.first_line,
        last_line=chunk.last_line,
        score=round(place.score, 4),
        snippet=snippet,
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


def _explanation(place: Ranked, chunk: StoredChunk) -> Mapping[str, float | str]:
    fused = place.fused
    parts = {
        "cosine": fused.candidate.cosine,
        "bm25": fused.candidate.bm25,
        "pairs": fused.candidate.pairs or None,
        "related": fused.candidate.related or None,
        "vector_part": fused.vector_part,
        "text_part": fused.text_part,
    }
    numbers = {name: round(value, 6) for name, value in parts.items() if value is not None}
    if place.score != fused.score:
        numbers["order_factor"] = round(place.score / fused.score, 6)  # age, time asked for, or a second look
    return numbers | ({"context": chunk.context} if chunk.context else {})
