"""Answers a question from one snapshot of the store: finds candidates, scores and orders them, and returns hits."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from notewell.search.dates.filters import days_of, names_days
from notewell.search.ordering import Ranked, missing_chunk, put_in_order, with_chunks
from notewell.search.query import KeywordQuery, keyword_query
from notewell.search.scoring import (
    Scale,
    Scored,
    function_word_scores,
    score_all,
    with_neighbours,
)
from notewell.search.snippets import Shown, joined_groups, shown_of
from notewell.search.tuning import TUNING
from notewell.text.languages import language_of
from notewell.text.lexicon import fold, stem
from notewell.types import Candidate, Citation, Hit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import date

    from notewell.protocols import Snapshot, Vector
    from notewell.search.dates.question import TimeReading
    from notewell.search.options import SearchRequest
    from notewell.search.tuning import Tuning
    from notewell.types import ChunkPlace, Scope, SearchMode, SourceName, StoredChunk


_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Found:
    """The hits, the files of better-ranked chunks that are gone, and notes for the reader."""

    hits: tuple[Hit, ...]
    missing_files: frozenset[str]
    notes: tuple[str, ...] = ()


def find(
    snapshot: Snapshot,
    request: SearchRequest,
    query_vector: Vector | None,
    *,
    cosine_range: tuple[float, float],
    language_weights: Mapping[str, float],
    exists: Callable[[SourceName, str], bool],
    tuning: Tuning = TUNING,
) -> Found:
    """Return the best hits; without a query vector, those of a keyword search. A hit never names a missing file.

    `language_weights` are the embedder's; empty, it counts fully in every language.
    """
    question = _Question(snapshot, request, query_vector, cosine_range, language_weights, tuning)
    relevant = question.relevant()
    ranked, order_note = put_in_order(snapshot, request.query, request.ordering, relevant.ranked, tuning)
    shown = _show(snapshot, request, relevant, ranked, exists)
    understood = _understood(relevant.keywords, shown.hits)
    return replace(shown, notes=tuple(filter(None, (understood, relevant.note, order_note))))


def _understood(keywords: KeywordQuery, hits: Sequence[Hit]) -> str:
    """Return what unknown words were taken for, as the hits write it; a guess that no hit has is no news."""
    if not keywords.guesses:
        return ""
    written: dict[str, str] = {}
    for hit in hits:
        for word in _WORD.findall(hit.snippet):
            written.setdefault(stem(fold(word).lower()), word)
    meant = (
        (word, [" ".join(written[part] for part in term.tokens) for term in terms if written.keys() >= {*term.tokens}])
        for word, terms in keywords.guesses
    )
    told = ", ".join(f'"{word}" as {" or ".join(forms)}' for word, forms in meant if forms)
    return f"understood {told}" if told else ""


# --- relevance -----------------------------------------------------------------------------------


class _Relevant(NamedTuple):
    """The chunks that are relevant enough, best first, and what they were scored by."""

    ranked: list[Ranked]
    keywords: KeywordQuery
    scale: Scale
    note: str = ""


class _Candidates(NamedTuple):
    """The chunks to score, and their places."""

    candidates: list[Candidate]
    places: Mapping[int, ChunkPlace]


@dataclass(frozen=True, slots=True)
class _Question:
    """One question to one snapshot."""

    snapshot: Snapshot
    request: SearchRequest
    vector: Vector | None
    cosine_range: tuple[float, float]
    language_weights: Mapping[str, float]
    tuning: Tuning

    @property
    def language(self) -> str:
        """The language of the question, where it matters: if there is a vector that was measured by language."""
        return language_of(self.request.query) if self.language_weights and self.vector is not None else ""

    def relevant(self) -> _Relevant:
        """Return what reaches the threshold. A time in the question is a filter unless it would leave nothing."""
        reading = self.request.ordering.reading
        if reading is None or (reading.since is None and reading.until is None):
            return self._scored(self._keywords(reading.words if reading else ""))
        within = self._within_time(reading)
        if within.ranked:
            return within._replace(note=f"limited to the time in the question ({reading.meaning})")
        found = self._scored(self._keywords())
        note = f"no matches from the time in the question ({reading.meaning}); searched all dates"
        return found._replace(note=note if found.ranked else "")

    def _keywords(self, about_time: str = "") -> KeywordQuery:
        return keyword_query(self.snapshot, self.request.query, self.tuning, about_time=about_time)

    def _scored(self, keywords: KeywordQuery) -> _Relevant:
        scale = self._scale(keywords)
        return _Relevant(self._ranked(self._candidates(keywords, self.request.scope), keywords, scale), keywords, scale)

    def _scale(self, keywords: KeywordQuery) -> Scale:
        request = self.request
        return Scale(
            keywords.full_weight,
            self.cosine_range,
            self.tuning,
            request.mode,
            request.fusion,
            request.weights,
            self.language_weights.get(self.language, 1.0),
            bool(self.language_weights),
        )

    def _ranked(self, found: _Candidates, keywords: KeywordQuery, scale: Scale) -> list[Ranked]:
        scale = scale.measured_on(found.candidates)
        scored = score_all(found.candidates, scale)
        chunks: Mapping[int, StoredChunk] = {}
        answered = 1.0
        if self.request.fusion == "balanced" and not (self.vector is not None and self.request.mode == "semantic"):
            pool = self.tuning.pool
            if keywords.function_words and self.tuning.function_words:
                chunks = self.snapshot.chunks([each.candidate.chunk_id for each in scored[:pool]])
                scored = self._by_function_words(scored[:pool], keywords, scale, chunks) + scored[pool:]
            lent = with_neighbours(scored, found.places, self.tuning.neighbour_turns)
            if scored and scored[0].score:
                answered = self._answered(scored, keywords, scale, chunks) * lent[0].score / scored[0].score
            scored = lent
        least = self.request.min_score
        return [
            Ranked(each, relevance, chunks.get(each.candidate.chunk_id), answered=answered)
            for each in scored
            if (relevance := min(each.score, answered)) >= least
        ]

    def _answered(
        self, scored: Sequence[Scored], keywords: KeywordQuery, scale: Scale, chunks: Mapping[int, StoredChunk]
    ) -> float:
        """Return how well the best text answers the question; without a vector, its score has to say that."""
        if scored[0].vector_part is None:
            return 1.0
        chunk_id = scored[0].candidate.chunk_id
        chunk = (chunks or self.snapshot.chunks([chunk_id]))[chunk_id]
        return scale.answered_by(scored[0], keywords.covered_by(f"{chunk.text} {chunk.context} {chunk.path}"))

    def _by_function_words(
        self, best: Sequence[Scored], keywords: KeywordQuery, scale: Scale, chunks: Mapping[int, StoredChunk]
    ) -> list[Scored]:
        """Let function words decide among the best; they only add, so the others stay below."""
        texts = [chunks[each.candidate.chunk_id].text for each in best]
        words = function_word_scores(keywords.function_words, texts)
        return score_all(
            [each.candidate._replace(function_words=score) for each, score in zip(best, words, strict=True)], scale
        )

    def _candidates(self, keywords: KeywordQuery, *scopes: Scope) -> _Candidates:
        """Return the best of both sides in each scope, each with the score that only the other side would give it."""
        limit = self.request.candidates_per_side
        cosine: dict[int, float] = {}
        bm25: dict[int, float] = {}
        for scope in scopes:
            if self.vector is not None:
                matches = self.snapshot.vector_matches(self.vector, limit=limit, scope=scope)
                cosine |= {match.chunk_id: match.score for match in matches}
        if keywords.terms and (self.vector is None or self.request.mode != "semantic"):
            for scope in scopes:
                matches = self.snapshot.keyword_matches(
                    keywords.terms, limit=limit, scope=scope, led_by=keywords.led_by, also=cosine.keys()
                )
                bm25 |= {match.chunk_id: match.score for match in matches}
        if self.vector is not None and (by_keyword_only := bm25.keys() - cosine.keys()):
            cosine.update(self.snapshot.vector_scores(self.vector, by_keyword_only))
        pairs = self.snapshot.keyword_scores(keywords.pairs, bm25) if keywords.pairs and bm25 else {}
        found = bm25 | cosine
        places = self.snapshot.places(found)
        if len(places) < len(found):
            raise missing_chunk()
        candidates = [
            Candidate(chunk_id, cosine.get(chunk_id), bm25.get(chunk_id), pairs.get(chunk_id, 0.0), 0.0, place.parts)
            for chunk_id, place in places.items()
        ]
        return _Candidates(candidates, places)

    # --- questions about a time ---

    def _within_time(self, reading: TimeReading) -> _Relevant:
        """Return what is from the time in the question, or names it; nothing if none of it is about the rest.

        The words about time are not searched for: the date of a note answers them.
        """
        scope = self.request.scope
        first, last = _later(scope.since, reading.since), _earlier(scope.until, reading.until)
        narrow = replace(scope, since=first, until=last, undated=scope.since is None and scope.until is None)
        keywords = self._keywords(reading.words)
        scale = self._scale(keywords)
        if keywords.only_time:
            ranked = self._everything(narrow, scale)
        else:
            ranked = self._ranked(self._candidates(keywords, narrow, scope), keywords, scale)
        placed = [r._replace(chunk=chunk) for r, chunk in with_chunks(self.snapshot, ranked)]
        least = self.tuning.about_share * max((r.scored.score for r in placed), default=0.0)
        if not any(r.scored.score >= least and reading.holds(days_of(r.chunk)) for r in placed if r.chunk):
            return _Relevant([], keywords, scale)
        return _Relevant([r for r in placed if r.chunk and self._is_from_time(r.chunk, reading)], keywords, scale)

    def _everything(self, scope: Scope, scale: Scale) -> list[Ranked]:
        """Return all chunks in the scope, newest first: the time is the whole question, so each answers it fully."""
        full = scale.full_match
        if full < self.request.min_score:
            return []
        chunk_ids = self.snapshot.newest_chunks(limit=self.request.candidates_per_side, scope=scope)
        return [Ranked(Scored(Candidate(chunk_id, None, None), full, None, full), full) for chunk_id in chunk_ids]

    def _is_from_time(self, chunk: StoredChunk, reading: TimeReading) -> bool:
        today = self.request.ordering.today
        return reading.holds(days_of(chunk)) or names_days(chunk, reading.since, reading.until, today)


def _later(one: date | None, other: date | None) -> date | None:
    return max(one, other) if one and other else one or other


def _earlier(one: date | None, other: date | None) -> date | None:
    return min(one, other) if one and other else one or other


# --- hits ----------------------------------------------------------------------------------------


def _show(
    snapshot: Snapshot,
    request: SearchRequest,
    relevant: _Relevant,
    ranked: Sequence[Ranked],
    exists: Callable[[SourceName, str], bool],
) -> Found:
    hits: list[Hit] = []
    missing: set[str] = set()
    told: defaultdict[str, set[int]] = defaultdict(set)  # the messages shown of each conversation
    for place, chunks in _joined(snapshot, ranked, relevant.scale.tuning.pool):
        if not exists(chunks[0].source, chunks[0].path):
            missing.add(chunks[0].path)
            continue
        shown = shown_of(snapshot, chunks, relevant.keywords.weights, told[chunks[0].path])
        told[chunks[0].path].update(shown.turns)
        hits.append(_hit(chunks[0], place, shown, explain=request.explain))
        if len(hits) == request.limit:
            break
    return Found(tuple(hits), frozenset(missing))


def _joined(snapshot: Snapshot, ranked: Sequence[Ranked], pool: int) -> Iterator[tuple[Ranked, list[StoredChunk]]]:
    """Yield the ranked chunks; neighbours among the best become one, in the place of the best."""
    best = list(with_chunks(snapshot, ranked[:pool]))
    for members in joined_groups([chunk for _, chunk in best]):
        yield best[members[0]][0], [best[member][1] for member in members]
    for place, chunk in with_chunks(snapshot, ranked[pool:]):
        yield place, [chunk]


def _hit(chunk: StoredChunk, place: Ranked, shown: Shown, *, explain: bool) -> Hit:
    candidate = place.scored.candidate
    return Hit(
        path=chunk.path,
        first_line=shown.first_line,
        last_line=shown.last_line,
        score=round(place.score, 4),
        snippet=shown.snippet,
        source=chunk.source,
        citation=str(Citation(chunk.path, shown.first_line, shown.last_line)),
        found_by=_found_by(candidate),
        vector_score=None if candidate.cosine is None else round(candidate.cosine, 4),
        text_score=None if candidate.bm25 is None else round(place.scored.text_part, 4),
        relevance=None if place.age_factor is None else round(place.relevance, 4),
        explanation=_explanation(place, chunk) if explain else None,
        entry=chunk.label.id if chunk.label else None,
        category=chunk.label.category if chunk.label else None,
        importance=chunk.label.importance if chunk.label else None,
        dated=days[0] if (days := days_of(chunk)) else None,
    )


def _found_by(candidate: Candidate) -> SearchMode:
    if candidate.bm25 is None and candidate.cosine is not None:
        return "semantic"
    return "keyword" if candidate.cosine is None else "hybrid"


def _explanation(place: Ranked, chunk: StoredChunk) -> Mapping[str, float | str]:
    scored = place.scored
    parts = {
        "cosine": scored.candidate.cosine,
        "bm25": scored.candidate.bm25,
        "pairs": scored.candidate.pairs or None,
        "function_words": scored.candidate.function_words or None,
        "vector_part": scored.vector_part,
        "text_part": scored.text_part,
        "answered": place.answered if place.answered < scored.score else None,
        "relevance": place.relevance,
        "age_factor": place.age_factor,
    }
    numbers = {name: round(value, 6) for name, value in parts.items() if value is not None}
    return numbers | ({"context": chunk.context} if chunk.context else {})
