"""Settings and what a caller asks in, the complete request for a search out."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Literal, get_args

from notewell.errors import QueryError, SettingsError
from notewell.memory.components import sessions_off
from notewell.search.ordering import Ordering
from notewell.search.scoring import Weights
from notewell.search.searcher import SearchRequest
from notewell.search.time_filter import dated_scope, time_reading
from notewell.sources.privacy import DIRECT, Audience
from notewell.types import SearchMode

if TYPE_CHECKING:
    from notewell.protocols import Reranker
    from notewell.search.scoring import Fusion
    from notewell.settings import Settings
    from notewell.types import SourceName


def build_request(
    settings: Settings,
    query: str,
    *,
    limit: int | None = None,
    min_score: float | None = None,
    fusion: Fusion | None = None,
    mode: SearchMode | None = None,
    keyword_only: bool = False,
    since: str | date | None = None,
    until: str | date | None = None,
    on: str | date | None = None,
    source: SourceName | Literal["all"] | None = None,
    rerank: bool | Reranker | None = None,
    explain: bool = False,
    audience: Audience = DIRECT,
) -> SearchRequest:
    """Return the request; what the caller leaves out comes from the settings. Raises QueryError for what cannot be."""
    today = date.today()  # noqa: DTZ011  (a note's date is a day of its writer, who is where this runs)
    asked = settings.query
    return SearchRequest(
        query=query,
        limit=asked.max_results if limit is None else limit,
        min_score=asked.min_score if min_score is None else min_score,
        fusion=fusion or asked.fusion,
        weights=Weights(asked.hybrid.vector_weight, asked.hybrid.text_weight),
        mode=search_mode(settings, mode, keyword_only=keyword_only),
        candidates=asked.hybrid.candidates_per_side,
        scope=replace(
            dated_scope(searched_sources(settings, source), since, until, on, today=today),
            public_only=audience.is_group,
            own_transcripts=audience.own_transcripts,
        ),
        ordering=Ordering(
            today=today,
            half_life_days=asked.decay.half_life_days if asked.decay.enabled else None,
            reading=time_reading(query, today),
            reranker=_reranker(settings, rerank),
            rerank_candidates=asked.rerank.candidates,
            rerank_weight=asked.rerank.weight,
            diversity=asked.diversity.relevance if asked.diversity.enabled else None,
        ),
        explain=explain,
    )


def search_mode(settings: Settings, mode: SearchMode | None, *, keyword_only: bool = False) -> SearchMode:
    """Return the mode asked for, or that of the settings; `keyword_only` is the older way to ask for keyword mode."""
    if mode is not None and mode not in get_args(SearchMode):
        raise QueryError(f"there is no mode {mode!r}", hint="use hybrid, semantic or keyword")
    if not keyword_only:
        return mode or settings.query.default_mode
    if mode not in {None, "keyword"}:
        raise QueryError(
            f"keyword_only contradicts mode {mode!r}", hint="leave out keyword_only; mode 'keyword' does the same"
        )
    return "keyword"


def searched_sources(settings: Settings, source: SourceName | Literal["all"] | None) -> tuple[SourceName, ...]:
    """Return the sources that a search may see; raises SettingsError when one is asked for that is not indexed."""
    active = settings.active_sources
    if source is None or source == "all":
        return active
    if source in active:
        return (source,)
    if source == "sessions":
        raise sessions_off()
    if source == "memory":
        raise SettingsError("notes are not part of this memory", hint='add "memory" to `sources` in your settings')
    raise QueryError(f"there is no source {source!r}", hint="use memory, sessions or all")


def _reranker(settings: Settings, wanted: bool | Reranker | None) -> Reranker | None:
    if wanted is None:
        wanted = settings.query.rerank.enabled
    if not isinstance(wanted, bool):
        return wanted
    if not wanted:
        return None
    from notewell.search.rerankers.selection import open_reranker

    return open_reranker(settings)
