"""Every setting with its type, default, range and meaning, as nested frozen values; `Settings()` holds the defaults.

Plain dataclasses, not msgspec: both cost about the same to import here, but msgspec's errors know neither the line nor
the range of a setting, so the checks would be ours anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from notewell.settings.option import Option, option
from notewell.types import SearchMode, SourceName

PROVIDERS = ("auto", "local", "openai", "gemini", "voyage", "mistral", "ollama", "none")

_PROVIDER_NAME = r"[a-z0-9_-]+"
# The same number whatever the limit keeps the order stable; each candidate costs an exact rescoring on both sides.
CANDIDATES_PER_STEP = 16  # 64 a side by default: 64, 100 and 200 give the same best ten on five English test sets
MOST_CANDIDATES = 200


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """Batch jobs of remote providers: cheaper, but an answer may take up to a day."""

    enabled: bool = option(False, "Embed large amounts through the provider's batch jobs")
    wait: bool = option(True, "Wait for a batch job to finish; otherwise its vectors are fetched by a later run")
    concurrency: int = option(2, "Batch jobs under way at once", low=1, high=16)
    poll_interval_ms: int = option(
        2000, "Pause before the first look at a job; it grows from there", low=100, high=600_000
    )
    timeout_minutes: int = option(60, "Give up on a job after this long", low=1, high=1440)


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """How to reach a remote embedding provider."""

    base_url: str = option(
        "",
        "Another address for the provider's API, such as a gateway of your own; empty is the provider's",
        pattern=r"(https?://\S+)?",
        form="an address that starts with https:// or http://",
    )
    api_key: str = option("", "The key; empty means the provider's own variable, such as `OPENAI_API_KEY`", secret=True)
    headers: Mapping[str, str] = option({}, "Headers added to every request", kind="table", secret=True)
    dimensions: int = option(
        0, "Length of the vectors, for models that can shorten them; 0 is the model's own", low=0, high=16_384
    )
    concurrency: int = option(4, "Requests under way at once", low=1, high=32)
    query_timeout_seconds: float = option(
        0.0, "How long a search waits for its vector; 0 is 60 seconds, 300 for Ollama", low=0, high=3600
    )
    index_timeout_seconds: float = option(
        0.0, "How long indexing waits for one answer; 0 is 120 seconds, 600 for Ollama", low=0, high=3600
    )
    batch: BatchSettings = BatchSettings()


@dataclass(frozen=True, slots=True)
class ExperimentalSettings:
    """Features that must be asked for."""

    session_memory: bool = option(
        False, "Allow past conversations to be indexed; they are, when `sources` names `sessions` too"
    )


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """The embedding model that runs on this machine."""

    model_path: str = option(
        "",
        "A folder with `model.onnx` and `tokenizer.json`, a GGUF file, or a downloaded model as "
        "`hf:owner/repository/file.gguf`; empty is the packaged model",
        kind="path",
    )
    model_cache_dir: str = option(
        "", "Where downloaded models are kept; empty is the system's cache folder", kind="path"
    )
    hub_url: str = option(
        "https://huggingface.co",
        "The hub that `notewell download` fetches models from, or a mirror of it",
        pattern=r"https?://\S+",
        form="an address that starts with https:// or http://",
    )


@dataclass(frozen=True, slots=True)
class VectorSettings:
    """How vectors are kept and scanned."""

    enabled: bool = option(True, "Keep and search vectors; false is keyword search only", workspace="yes")
    driver: Literal["segments", "sqlite-vec"] = option(
        "segments", "Which vector index to use; both give the same answers", choices=("segments", "sqlite-vec")
    )
    extension_path: str = option(
        "", "The sqlite-vec library to load; empty is the one of the installed package", kind="path"
    )


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where and how the index is kept."""

    driver: Literal["sqlite"] = option("sqlite", "The storage engine", choices=("sqlite",))
    path: str = option(
        "",
        "The folder for index and caches; may hold `{agent}` and `{workspace}`. Empty is `.notewell/{agent}` in the "
        "workspace. Without `{agent}` a folder of the agent's name is added, so that agents never share an index",
        kind="path",
        placeholders=("agent", "workspace"),
        form="a path, with no other placeholders than {agent} and {workspace}",
    )
    vector: VectorSettings = VectorSettings()


@dataclass(frozen=True, slots=True)
class ChunkingSettings:
    """How notes are cut into the pieces that are embedded and found."""

    # 16 tokens are about one short sentence; 8192 is the longest input OpenAI's embedding models take.
    tokens: int = option(400, "Longest chunk, in tokens", low=16, high=8192, workspace="yes")
    overlap: int = option(
        80, "Tokens that neighbouring chunks share; always less than `tokens`", low=0, high=8191, workspace="yes"
    )
    style: Literal["markdown", "lines"] = option(
        "markdown",
        "`markdown` cuts at headings, paragraphs and code fences; `lines` fills chunks line by line",
        choices=("markdown", "lines"),
        workspace="yes",
    )


@dataclass(frozen=True, slots=True)
class SessionSyncSettings:
    """How much a conversation must grow before it is indexed again."""

    delta_bytes: int = option(100_000, "Bytes added to a transcript", low=0, workspace="yes")
    delta_messages: int = option(50, "Messages added to a transcript", low=0, workspace="yes")
    debounce_ms: int = option(
        5000, "Wait until an announced conversation has been quiet this long", low=0, high=600_000, workspace="yes"
    )


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """When the index catches up with the files."""

    on_session_start: bool = option(True, "When an agent starts a session", workspace="yes")
    on_search: bool = option(True, "Before a search, for at most `search_budget_ms`", workspace="yes")
    watch: bool = option(True, "When a file changes, while a server runs", workspace="yes")
    watch_debounce_ms: int = option(
        1500, "Wait until files have been quiet this long", low=0, high=600_000, workspace="yes"
    )
    interval_minutes: int = option(
        0, "Every so many minutes, while a server runs; 0 is never", low=0, high=10_080, workspace="yes"
    )
    # 60 s at most: a workspace file may set it, and must not be able to hold up every search for long.
    search_budget_ms: int = option(
        2000, "How long a search may spend on indexing before it answers", low=0, high=60_000, workspace="yes"
    )
    sessions: SessionSyncSettings = SessionSyncSettings()


@dataclass(frozen=True, slots=True)
class HybridSettings:
    """How meaning (vectors) and words (keywords) are combined."""

    enabled: bool = option(
        True, 'False is the same as `query.mode = "semantic"`; a `query.mode` other than `hybrid` wins', workspace="yes"
    )
    vector_weight: float = option(
        0.7, "Share of meaning; the two weights are scaled to sum to 1", low=0, workspace="yes"
    )
    text_weight: float = option(0.3, "Share of words", low=0, workspace="yes")
    candidate_multiplier: int = option(
        4,
        "Candidates considered a side: 16 times this, at most 200, or as many as results are asked for, if those are "
        "more",
        low=1,
        high=20,
        workspace="yes",
    )

    @property
    def candidates_per_side(self) -> int:
        """How many candidates each side brings, independent of how many results are asked for."""
        return min(CANDIDATES_PER_STEP * self.candidate_multiplier, MOST_CANDIDATES)


@dataclass(frozen=True, slots=True)
class DecaySettings:
    """How dated notes fade; evergreen notes never do."""

    # Off: a question about March must not lose to a note of last week that says less about it.
    enabled: bool = option(False, "Let the score of dated notes fade with age", workspace="yes")
    half_life_days: float = option(30.0, "Days until a dated note counts half", low=0.01, high=36_500, workspace="yes")


@dataclass(frozen=True, slots=True)
class DiversitySettings:
    """Maximal marginal relevance: results that repeat an earlier one step back."""

    enabled: bool = option(False, "Prefer results that say something new", workspace="yes")
    relevance: float = option(
        0.7, "1 looks at relevance only, 0 at novelty only (the lambda of MMR)", low=0, high=1, workspace="yes"
    )


@dataclass(frozen=True, slots=True)
class RerankSettings:
    """A second look at the best results by a model that reads query and text together; it sends both to a provider."""

    enabled: bool = option(
        False,
        "Look again at the best results of every search; a workspace file may only turn it off",
        workspace=(False,),
    )
    provider: str = option(
        "",
        "Who looks: `cohere`, `jina`, `voyage` or a plug-in",
        pattern=r"[a-z0-9_-]*",
        form="cohere, jina, voyage, or the name of a plug-in (a-z, 0-9, - and _)",
    )
    model: str = option("", "The provider's model; empty is the provider's default")
    base_url: str = option(
        "",
        "Another address for the provider's API, such as a server of your own; empty is the provider's",
        pattern=r"(https?://\S+)?",
        form="an address that starts with https:// or http://",
    )
    api_key: str = option("", "The key; empty means the provider's own variable, such as `COHERE_API_KEY`", secret=True)
    candidates: int = option(20, "Results that are looked at again, whatever the number asked for", low=1, high=100)
    # The model has read the text and the first ranking has not; the rest keeps an exact word or name in its place.
    weight: float = option(0.7, "Share of the second look in the score; 1 is nothing else", low=0, high=1)


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """What a search returns."""

    max_results: int = option(
        6, "Results a search returns unless it asks for another number", low=1, high=1000, workspace="yes"
    )
    min_score: float = option(0.35, "Results below this score are left out", low=0, high=1, workspace="yes")
    mode: Literal["hybrid", "semantic", "keyword"] = option(
        "hybrid",
        "How to search unless a search says otherwise: `semantic` compares vectors, `keyword` compares words and loads "
        "no model, `hybrid` does both",
        choices=("hybrid", "semantic", "keyword"),
        workspace="yes",
    )
    fusion: Literal["balanced", "weighted", "rrf"] = option(
        "balanced",
        "`balanced` mixes both scores on fixed scales; `weighted` mixes raw scores; `rrf` mixes ranks",
        choices=("balanced", "weighted", "rrf"),
        workspace="yes",
    )
    hybrid: HybridSettings = HybridSettings()
    decay: DecaySettings = DecaySettings()
    diversity: DiversitySettings = DiversitySettings()
    rerank: RerankSettings = RerankSettings()

    @property
    def default_mode(self) -> SearchMode:
        """How a search that names no mode is done; `hybrid.enabled` is the older name of the choice."""
        return "semantic" if self.mode == "hybrid" and not self.hybrid.enabled else self.mode


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What agents get through the tools, whether called by a program or over MCP."""

    citations: Literal["auto", "on", "off"] = option(
        "auto",
        "Whether results carry `path#L5-L9` for the agent to cite; `auto` is in direct chats, not in groups",
        choices=("auto", "on", "off"),
        workspace="yes",
    )
    # 4,000 characters, about 1,000 tokens: OpenClaw's limit for injected memory. 300 hold a fence and a line of text.
    injected_chars: int = option(
        4000, "Characters of recalled text that one search hands to the agent", low=300, high=100_000, workspace="yes"
    )
    append: bool = option(
        False, "Offer `memory_append`, which adds to notes; a workspace file may only turn it off", workspace=(False,)
    )


@dataclass(frozen=True, slots=True)
class McpSettings:
    """The MCP server."""

    token: str = option(
        "", "The bearer token that HTTP clients must send; needed to listen beyond this machine", secret=True
    )


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Where past conversations lie, besides the session store's own folder."""

    paths: tuple[Path, ...] = option(
        (),
        "Folders with transcripts (`.jsonl`) of other programs, such as `~/.claude/projects` or `~/.codex/sessions`",
        kind="paths",
    )


@dataclass(frozen=True, slots=True)
class RedactionSettings:
    """Secrets such as API keys and passwords, which are replaced by marks before anything else sees the text."""

    notes: bool = option(
        False,
        "Hide secrets of notes, too, in the index, in search and in `get`; those of conversations are always hidden. A "
        "workspace file may only turn it on",
        workspace=(True,),
    )


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The embedding cache: text that was embedded once is never embedded again."""

    enabled: bool = option(True, "Remember vectors across edits, renames, rebuilds and model switches")
    max_entries: int = option(50_000, "Vectors kept; beyond it the least recently used go", low=1)


@dataclass(frozen=True, slots=True)
class CostSettings:
    """What embedding by a provider may cost before somebody is asked."""

    # A dollar is 50 million tokens of OpenAI's small model, more than most people write in a life.
    confirm_above_usd: float = option(
        1.0,
        "`notewell index` asks before it embeds for more than this, by estimate, in US dollars; what nobody is asked "
        "about, such as a search's own indexing, leaves it to that",
        low=0,
    )
    prices: Mapping[str, str] = option(
        {},
        'Prices of your own, in US dollars a million tokens, such as `"openai/text-embedding-3-small" = "0.02"`',
        kind="table",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be configured, checked and complete."""

    enabled: bool = option(True, "Use memory at all; a workspace file may only turn it off", workspace=(False,))
    sources: tuple[SourceName, ...] = option(
        ("memory",),
        "What is indexed and searched; `sessions` needs `experimental.session_memory` as well",
        kind="list",
        choices=("memory", "sessions"),
        workspace="yes",
    )
    extra_paths: tuple[Path, ...] = option(
        (),
        "More Markdown files or folders to index; relative ones start at the workspace",
        kind="paths",
        workspace="inside",
    )
    # Never `auto` from a workspace file: it could pick a remote provider where the user's own file chose none or local.
    provider: str = option(
        "auto",
        "Who embeds: `auto` takes the local model if it is installed, else the first of OpenAI, Gemini, Voyage and "
        "Mistral whose key is in the environment; `none` is keyword search only",
        pattern=_PROVIDER_NAME,
        form=f"one of {', '.join(PROVIDERS)}, or the name of a plug-in (a-z, 0-9, - and _)",
        workspace=("local", "none"),
    )
    model: str = option("", "The provider's model; empty is the provider's default")
    fallback: str = option(
        "none",
        "The provider to use when the chosen one cannot run",
        pattern=_PROVIDER_NAME,
        form=f"none, one of {', '.join(PROVIDERS[1:-1])}, or the name of a plug-in (a-z, 0-9, - and _)",
        workspace=("local", "none"),
    )
    remote: RemoteSettings = RemoteSettings()
    experimental: ExperimentalSettings = ExperimentalSettings()
    local: LocalSettings = LocalSettings()
    store: StoreSettings = StoreSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    sync: SyncSettings = SyncSettings()
    query: QuerySettings = QuerySettings()
    sessions: SessionSettings = SessionSettings()
    redaction: RedactionSettings = RedactionSettings()
    cache: CacheSettings = CacheSettings()
    cost: CostSettings = CostSettings()
    tools: ToolSettings = ToolSettings()
    mcp: McpSettings = McpSettings()

    @property
    def active_sources(self) -> tuple[SourceName, ...]:
        """What is really indexed and searched: conversations only with `experimental.session_memory`."""
        return tuple(name for name in self.sources if name != "sessions" or self.experimental.session_memory)


def _options(group: Any, prefix: str) -> Iterator[tuple[str, Option]]:
    for each in fields(group):
        if is_dataclass(each.default):
            yield from _options(each.default, f"{prefix}{each.name}.")
        else:
            yield prefix + each.name, each.metadata["option"]


def _groups(group: Any, prefix: str) -> Iterator[tuple[str, str]]:
    yield prefix.rstrip("."), type(group).__doc__ or ""
    for each in fields(group):
        if is_dataclass(each.default):
            yield from _groups(each.default, f"{prefix}{each.name}.")


OPTIONS: Mapping[str, Option] = dict(_options(Settings(), ""))  # by key path, such as "query.hybrid.vector_weight"
GROUPS: Mapping[str, str] = dict(_groups(Settings(), ""))  # by key path; the whole is ""


def flatten(settings: Settings) -> dict[str, Any]:
    """Return every value by its key path."""

    def walk(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        for each in fields(group):
            value = getattr(group, each.name)
            if is_dataclass(value):
                yield from walk(value, f"{prefix}{each.name}.")
            else:
                yield prefix + each.name, value

    return dict(walk(settings, ""))


def build(values: Mapping[str, object]) -> Settings:
    """Return the settings with these values, one for each key path of `OPTIONS`."""

    def make(group: Any, prefix: str) -> Any:
        return type(group)(
            **{
                each.name: make(each.default, f"{prefix}{each.name}.")
                if is_dataclass(each.default)
                else values[prefix + each.name]
                for each in fields(group)
            }
        )

    settings = make(Settings(), "")
    assert isinstance(settings, Settings)
    return settings
