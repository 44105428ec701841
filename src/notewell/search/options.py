"""Declares the options of a search, once for every surface, and resolves them into a request.

`SearchOptions` are the keyword arguments of `Memory.search`. The `Option` beside each says how the command line and the
`memory_search` tool offer it; a new one needs a line here and the code that acts on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, TypeVar, get_args, get_type_hints

from notewell.errors import QueryError, SettingsError
from notewell.protocols import Reranker
from notewell.search.dates.filters import dated_scope, time_reading
from notewell.search.ordering import Ordering
from notewell.search.scoring import Fusion, Weights
from notewell.settings.arguments import check
from notewell.settings.model import LARGEST_LIMIT, MAX_CANDIDATES
from notewell.sources.privacy import DIRECT, Audience, Chat, audience_of
from notewell.text.entries import CATEGORIES, checked_category
from notewell.types import EVERYTHING, Category, Scope, SearchMode, SourceName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from notewell.settings import Settings

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Option:
    """How the surfaces offer one search option."""

    help: str
    flags: tuple[str, ...] = ()  # of the command; without any it does not offer the option
    metavar: str = ""
    choices: tuple[str, ...] = ()
    switch: bool | None = None  # what the flag stands for, if it takes no value
    hidden: bool = False
    tool: str = ""  # parameter of the tool; without a name it does not offer the option
    schema: Mapping[str, Any] = field(default_factory=dict)  # JSON schema of that parameter


TIMELINE_LIMIT = 20  # hits, unless another limit is given

_MODES = get_args(SearchMode)
_TEXT = {"type": "string"}


class SearchOptions(TypedDict, total=False):
    """What a caller may ask of a search; what is left out, or None, comes from the settings."""

    limit: Annotated[
        int | None,
        Option(
            "Maximum number of results.  [default: query.max_results, 6]",
            flags=("--limit", "-n"),
            metavar="N",
            tool="maxResults",
            schema={"type": "integer", "minimum": 1},
        ),
    ]
    min_score: Annotated[
        float | None,
        Option(
            "Leave out results below this score.  [default: query.min_score, 0.35]",
            flags=("--min-score",),
            metavar="X",
            tool="minScore",
            schema={"type": "number", "minimum": 0, "maximum": 1},
        ),
    ]
    mode: Annotated[
        SearchMode | None,
        Option(
            "Search mode.  [default: query.mode, hybrid]",
            flags=("--mode",),
            choices=_MODES,
            tool="mode",
            schema=_TEXT | {"enum": [*_MODES], "description": "keyword for exact words, semantic for paraphrases"},
        ),
    ]
    keyword_only: Annotated[
        bool, Option("The same as --mode keyword.", flags=("--keyword-only",), switch=True, hidden=True)
    ]
    fusion: Annotated[
        Fusion | None,
        Option("How the semantic and the keyword score are combined.", flags=("--fusion",), choices=get_args(Fusion)),
    ]
    source: Annotated[
        SourceName | Literal["all"] | None,
        Option(
            "Search only notes (memory) or only conversations (sessions).",
            flags=("--source",),
            choices=("all", *get_args(SourceName)),
            tool="source",
            schema=_TEXT | {"enum": [*get_args(SourceName)]},
        ),
    ]
    since: Annotated[
        str | date | None,
        Option(
            "Only notes of that day or later: 2026-03-01, 2026-03, 'last week'.",
            flags=("--since",),
            metavar="DAY",
            tool="since",
            schema=_TEXT | {"description": "First day: 2026-03-01, 2026-03, last week"},
        ),
    ]
    until: Annotated[
        str | date | None,
        Option(
            "Only notes of that day or earlier.",
            flags=("--until",),
            metavar="DAY",
            tool="until",
            schema=_TEXT | {"description": "Last day"},
        ),
    ]
    on: Annotated[str | date | None, Option("Only notes of that day, month or week.", flags=("--on",), metavar="DAY")]
    category: Annotated[
        Category | None,
        Option("Only remembered entries of this category.", flags=("--category",), choices=CATEGORIES),
    ]
    rerank: Annotated[
        bool | Reranker | None,
        Option("Rerank the top results with the configured reranker.", flags=("--rerank",), switch=True),
    ]
    explain: Annotated[bool, Option("Show how each score was computed.", flags=("--explain",), switch=True)]
    sync: Annotated[bool | None, Option("Do not index new notes before searching.", flags=("--no-sync",), switch=False)]
    chat: Annotated[
        Chat | None,
        Option(
            "Audience: a group sees neither MEMORY.md nor private notes.  [default: direct]",
            flags=("--chat",),
            choices=get_args(Chat),
        ),
    ]
    session: Annotated[
        str | None, Option("The group's own session, which it may see.", flags=("--session",), metavar="ID")
    ]


@cache
def declared_options() -> dict[str, Option]:
    """Return the declaration of every option, by its name in Python."""
    hints = get_type_hints(SearchOptions, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


@cache
def _option_types() -> dict[str, object]:
    return get_type_hints(SearchOptions)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question, with everything that shapes the answer."""

    query: str
    limit: int = 6
    min_score: float = 0.35
    fusion: Fusion = "balanced"
    weights: Weights = field(default_factory=Weights)
    mode: SearchMode = "hybrid"  # semantic asks vectors alone, if there are any
    candidates: int = MAX_CANDIDATES  # a side
    scope: Scope = EVERYTHING
    ordering: Ordering = field(default_factory=Ordering)
    explain: bool = False
    asked_mode: SearchMode | None = None  # None where the settings decided the mode

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise QueryError(f"the limit must be at least 1, got {self.limit}", hint="ask for 1 or more results")
        if not 0 <= self.min_score <= 1:
            raise QueryError(
                f"the minimum score must be between 0 and 1, got {self.min_score}", hint="0 keeps every result"
            )

    @property
    def candidates_per_side(self) -> int:
        """How many chunks each side brings: the same for all small limits, so that the best k begin the best k+n."""
        return max(self.candidates, min(self.limit, LARGEST_LIMIT))


def build_request(
    settings: Settings, query: str, options: SearchOptions, *, opened_for: Audience = DIRECT
) -> SearchRequest:
    """Return the request; what the options leave out comes from the settings.

    `opened_for` is the audience of the memory: options may narrow it, never widen it. Raises QueryError or
    SettingsError for what cannot be.
    """
    if unknown := options.keys() - SearchOptions.__annotations__.keys():
        raise TypeError(f"search() got an unexpected keyword argument {min(unknown)!r}")
    for name, value in options.items():
        if value is not None:
            check(name, value, _option_types()[name], QueryError)
    audience = audience_of(options.get("chat"), options.get("session"), opened_for)
    today = date.today()  # noqa: DTZ011  (a note's date is a day of its writer, who is where this runs)
    asked = settings.query
    return SearchRequest(
        query=query,
        limit=_given(options.get("limit"), asked.max_results),
        min_score=_given(options.get("min_score"), asked.min_score),
        fusion=options.get("fusion") or asked.fusion,
        weights=Weights(asked.hybrid.vector_weight, asked.hybrid.text_weight),
        mode=_mode(settings, options.get("mode"), keyword_only=options.get("keyword_only", False)),
        candidates=asked.hybrid.candidates_per_side,
        scope=replace(
            dated_scope(
                _sources(settings, options.get("source")),
                options.get("since"),
                options.get("until"),
                options.get("on"),
                today=today,
            ),
            public_only=audience.is_group,
            own_transcripts=audience.own_transcripts,
            category=None if (category := options.get("category")) is None else checked_category(category, QueryError),
        ),
        ordering=Ordering(
            today=today,
            half_life_days=asked.decay.half_life_days if asked.decay.enabled else None,
            reading=time_reading(query, today),
            reranker=_reranker(settings, options.get("rerank")),
            rerank_candidates=asked.rerank.candidates,
            rerank_weight=asked.rerank.weight,
            diversity=asked.diversity.relevance if asked.diversity.enabled else None,
        ),
        explain=options.get("explain", False),
        asked_mode="keyword" if options.get("keyword_only") else options.get("mode"),
    )


def _given(value: _T | None, default: _T) -> _T:
    return default if value is None else value


NO_KEYWORDS = "keyword search is turned off (store.fts.enabled)"


def _mode(settings: Settings, mode: SearchMode | None, *, keyword_only: bool) -> SearchMode:
    """Return the mode asked for, or that of the settings; `keyword_only` is the older way to ask for keyword mode."""
    if mode is not None and mode not in _MODES:
        raise QueryError(f"there is no mode {mode!r}", hint="use hybrid, semantic or keyword")
    if not settings.store.fts.enabled:
        if keyword_only or mode == "keyword":
            raise QueryError(NO_KEYWORDS, hint="use mode semantic, or set store.fts.enabled = true and reindex")
        return "semantic"
    if not keyword_only:
        return mode or settings.query.default_mode
    if mode not in {None, "keyword"}:
        raise QueryError(
            f"keyword_only contradicts mode {mode!r}", hint="leave out keyword_only; mode 'keyword' does the same"
        )
    return "keyword"


def _sources(settings: Settings, source: SourceName | Literal["all"] | None) -> tuple[SourceName, ...]:
    """Return the sources that a search may see; raises SettingsError for one that is not indexed."""
    active = settings.sources
    if source is None or source == "all":
        return active
    if source in active:
        return (source,)
    if source == "sessions":
        raise sessions_off()
    if source == "memory":
        raise SettingsError("notes are not part of this memory", hint='add "memory" to `sources` in your settings')
    raise no_source(source)


def no_source(source: object) -> QueryError:
    """Return the error for a source of another name than there are."""
    return QueryError(f"there is no source {source!r}", hint="use memory, sessions or all")


def sessions_off() -> SettingsError:
    """Return the error for asking about conversations that are not part of this memory."""
    return SettingsError(
        "conversations are not part of this memory",
        hint='set sources = ["memory", "sessions"] in your settings',
    )


def _reranker(settings: Settings, wanted: bool | Reranker | None) -> Reranker | None:
    if wanted is None:
        wanted = settings.query.rerank.enabled
    if not isinstance(wanted, bool):
        return wanted
    if not wanted:
        return None
    from notewell.search.rerankers import open_reranker

    return open_reranker(settings)
