"""Declares every setting with its type, default, range and meaning; `Settings()` has the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from notewell.settings.option import Option, groups_of, option, walk
from notewell.types import SearchMode, SourceName

PROVIDERS = ("auto", "local", "openai", "gemini", "voyage", "mistral", "ollama", "none")

_PROVIDER_NAME = r"[a-z0-9_-]+"
_URL_OR_EMPTY = {"pattern": r"(https?://\S+)?", "form": "a URL that starts with https:// or http://"}
_POSTGRES_URL = {"pattern": r"(postgres(ql)?://\S*)?", "form": "a URL that starts with postgresql://"}
# Independent of the limit, to keep the order stable; each candidate is rescored exactly on both sides.
CANDIDATES_PER_STEP = 16  # 64 a side by default: 64, 100 and 200 give the same best ten on five English test sets
MAX_CANDIDATES = 200  # a side; OpenClaw's cap
LARGEST_LIMIT = 2**31  # of results; larger numbers do not fit into databases


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """Batch jobs of remote providers: cheaper, but results may take up to a day."""

    enabled: bool = option(False, "Embed large amounts through the provider's batch jobs")
    wait: bool = option(True, "Wait for a batch job to finish; otherwise its vectors are fetched by a later run")
    concurrency: int = option(2, "Batch jobs in progress at once", low=1, high=16)
    poll_interval_ms: int = option(
        2000, "Pause before a job is first polled; it grows from there", low=100, high=600_000
    )
    timeout_minutes: int = option(60, "Give up on a job after this long", low=1, high=1440)


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """How to reach a remote embedding provider."""

    base_url: str = option(
        "", "Another URL for the provider's API, such as your own gateway; empty is the provider's", **_URL_OR_EMPTY
    )
    api_key: str = option("", "The key; empty means the provider's own variable, such as `OPENAI_API_KEY`", secret=True)
    headers: Mapping[str, str] = option({}, "Headers added to every request", kind="table", secret=True)
    dimensions: int = option(
        0, "Length of the vectors, for models that can shorten them; 0 is the model's own", low=0, high=16_384
    )
    concurrency: int = option(4, "Requests in progress at once", low=1, high=32)
    query_timeout_seconds: float = option(
        0.0, "Timeout for the vector of a search; 0 is 60 seconds, 300 for Ollama", low=0, high=3600
    )
    index_timeout_seconds: float = option(
        0.0, "Timeout for one response while indexing; 0 is 120 seconds, 600 for Ollama", low=0, high=3600
    )
    batch: BatchSettings = BatchSettings()


@dataclass(frozen=True, slots=True)
class ExperimentalSettings:
    """Settings of OpenClaw that are accepted here and change nothing."""

    session_memory: bool = option(False, "No effect: conversations are indexed when `sources` names `sessions`")


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
        "The hub that `notewell download` downloads models from, or a mirror of it",
        pattern=r"https?://\S+",
        form="a URL that starts with https:// or http://",
    )


@dataclass(frozen=True, slots=True)
class VectorSettings:
    """How vectors are stored and searched."""

    enabled: bool = option(True, "Store and search vectors; false is keyword search only", workspace="yes")
    driver: Literal["segments", "sqlite-vec"] = option(
        "segments", "Which vector index to use; both give the same results", choices=("segments", "sqlite-vec")
    )
    extension_path: str = option(
        "", "The sqlite-vec library to load; empty is that of the installed package", kind="path"
    )


@dataclass(frozen=True, slots=True)
class FtsSettings:
    """The keyword index."""

    enabled: bool = option(True, "Index the words of notes; false is semantic search only", workspace="yes")


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where and how the index is stored."""

    driver: Literal["sqlite"] = option(
        "sqlite", "The storage engine where `store.url` is empty; there is only one", choices=("sqlite",)
    )
    url: str = option(
        "",
        "A PostgreSQL database that holds the index in place of a file, such as "
        "`postgresql://agent@db.example/memory`; many machines may share it. Needs the extra `postgres`",
        **_POSTGRES_URL,
        secret=True,
    )
    read_url: str = option(
        "",
        "A replica of that database, for searches; answers say how far it may be behind",
        **_POSTGRES_URL,
        secret=True,
    )
    tenant: str = option(
        "",
        "The name of this workspace's memory in the database; each agent of it has its own. Empty is an id that is "
        "kept in `.notewell/workspace-id`",
        pattern=r"([\w.-]{1,64})?",
        form="1 to 64 letters, digits, dots, dashes and underscores",
    )
    follow: bool = option(
        False,
        "Search and read the tenant in the database on a machine that does not hold the notes; nothing is written",
    )
    path: str = option(
        "",
        "The folder for index and caches; may hold `{agent}` and `{workspace}`. Empty is `.notewell/{agent}` in the "
        "workspace. Without `{agent}` a folder of the agent's name is added, so that agents never share an index",
        kind="path",
        placeholders=("agent", "workspace"),
        form="a path, with no other placeholders than {agent} and {workspace}",
    )
    vector: VectorSettings = VectorSettings()
    fts: FtsSettings = FtsSettings()


@dataclass(frozen=True, slots=True)
class ChunkingSettings:
    """How notes are split into the chunks that are embedded and found."""

    # 16 tokens are about one short sentence; 8192 is the longest input OpenAI's embedding models take.
    tokens: int = option(400, "Maximum size of a chunk, in tokens", low=16, high=8192, workspace="yes")
    overlap: int = option(
        80, "Tokens that neighbouring chunks share; always less than `tokens`", low=0, high=8191, workspace="yes"
    )
    style: Literal["markdown", "lines"] = option(
        "markdown",
        "`markdown` splits at headings, paragraphs and code fences; `lines` fills chunks line by line",
        choices=("markdown", "lines"),
        workspace="yes",
    )


@dataclass(frozen=True, slots=True)
class SessionSyncSettings:
    """How much a conversation must grow before it is reindexed."""

    delta_bytes: int = option(100_000, "Bytes added to a transcript", low=0, workspace="yes")
    delta_messages: int = option(50, "Messages added to a transcript", low=0, workspace="yes")
    debounce_ms: int = option(
        5000, "Index an appended conversation after it has been quiet this long", low=0, high=600_000, workspace="yes"
    )


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """When the index is synced with the files."""

    on_session_start: bool = option(True, "When an agent starts a session", workspace="yes")
    on_search: bool = option(True, "Before a search, until the deadline `search_budget_ms`", workspace="yes")
    watch: bool = option(True, "When a file changes, while a server is running", workspace="yes")
    watch_debounce_ms: int = option(
        1500, "Index changed files after they have been quiet this long", low=0, high=600_000, workspace="yes"
    )
    interval_minutes: int = option(
        0, "Every this many minutes, while a server is running; 0 is never", low=0, high=10_080, workspace="yes"
    )
    # 60 s at most, because a workspace file may set it and must not block searches for long.
    search_budget_ms: int = option(
        2000, "Deadline for the indexing that a search does before it answers", low=0, high=60_000, workspace="yes"
    )
    sessions: SessionSyncSettings = SessionSyncSettings()


@dataclass(frozen=True, slots=True)
class HybridSettings:
    """How semantic and keyword scores are combined."""

    enabled: bool = option(
        True, 'False is the same as `query.mode = "semantic"`; a `query.mode` other than `hybrid` wins', workspace="yes"
    )
    vector_weight: float = option(
        0.7, "Weight of the semantic score; the two weights are scaled to sum to 1", low=0, workspace="yes"
    )
    text_weight: float = option(0.3, "Weight of the keyword score", low=0, workspace="yes")
    candidate_multiplier: int = option(
        4,
        "Candidates of semantic and of keyword search: 16 times this, at most 200, but never fewer than the results "
        "asked for",
        low=1,
        high=20,
        workspace="yes",
    )

    @property
    def candidates_per_side(self) -> int:
        """How many candidates semantic and keyword search each return, whatever the number of results."""
        return min(CANDIDATES_PER_STEP * self.candidate_multiplier, MAX_CANDIDATES)


@dataclass(frozen=True, slots=True)
class DecaySettings:
    """How the score of dated notes decays; that of evergreen notes never does."""

    # Off: a question about March must not prefer a less relevant note of last week.
    enabled: bool = option(False, "Lower the score of dated notes with age", workspace="yes")
    half_life_days: float = option(
        30.0, "Days until the score of a dated note is halved", low=0.01, high=36_500, workspace="yes"
    )


@dataclass(frozen=True, slots=True)
class DiversitySettings:
    """Maximal marginal relevance: results that repeat an earlier one are ranked lower."""

    enabled: bool = option(False, "Prefer results that add something new", workspace="yes")
    relevance: float = option(
        0.7, "1 counts relevance only, 0 novelty only (the lambda of MMR)", low=0, high=1, workspace="yes"
    )


@dataclass(frozen=True, slots=True)
class RerankSettings:
    """Reranking of the top results by a model that reads query and text together; it sends both to a provider."""

    enabled: bool = option(
        False, "Rerank the top results of every search; a workspace file may only turn it off", workspace=(False,)
    )
    provider: str = option(
        "",
        "The reranker: `cohere`, `jina`, `voyage` or a plug-in",
        pattern=r"[a-z0-9_-]*",
        form="cohere, jina, voyage, or the name of a plug-in (a-z, 0-9, - and _)",
    )
    model: str = option("", "The provider's model; empty is the provider's default")
    base_url: str = option(
        "", "Another URL for the provider's API, such as your own server; empty is the provider's", **_URL_OR_EMPTY
    )
    api_key: str = option("", "The key; empty means the provider's own variable, such as `COHERE_API_KEY`", secret=True)
    candidates: int = option(20, "Results that are reranked, whatever the number asked for", low=1, high=100)
    # The reranker reads the text, which the first ranking does not; the rest keeps exact words and names on top.
    weight: float = option(0.7, "Weight of the reranker in the score; 1 is nothing else", low=0, high=1)


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """What a search returns."""

    max_results: int = option(
        6, "Maximum number of results, unless a search asks for another", low=1, high=1000, workspace="yes"
    )
    min_score: float = option(0.35, "Leave out results with a lower score", low=0, high=1, workspace="yes")
    mode: Literal["hybrid", "semantic", "keyword"] = option(
        "hybrid",
        "Search mode, unless a search asks for another: `semantic` compares vectors, `keyword` compares words and "
        "loads no model, `hybrid` does both",
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
        """The mode of a search that names none; `hybrid.enabled` is OpenClaw's name for the choice."""
        return "semantic" if self.mode == "hybrid" and not self.hybrid.enabled else self.mode


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What agents get through the tools, whether called by a program or over MCP."""

    citations: Literal["auto", "on", "off"] = option(
        "auto",
        "Give the agent citations such as `path#L5-L9`; `auto` does so in direct chats, not in groups",
        choices=("auto", "on", "off"),
        workspace="yes",
    )
    # 4,000 characters, about 1,000 tokens: OpenClaw's limit for injected memory. 300 fit a fence and a line of text.
    injected_chars: int = option(
        4000, "Maximum characters that one search returns to the agent", low=300, high=100_000, workspace="yes"
    )
    read_only: bool = option(
        False,
        "Offer no tool that changes notes (`memory_write`, `memory_forget`); a workspace file may only turn it on",
        workspace=(True,),
    )


@dataclass(frozen=True, slots=True)
class QmdSettings:
    """QMD, a search program with an index of its own (`backend = "qmd"`)."""

    command: str = option(
        "qmd", "The program: its name on the `PATH`, or its path", pattern=r"\S(.*\S)?", form="a program"
    )
    mode: Literal["search", "vsearch", "query"] = option(
        "search",
        "QMD's search, unless a search asks for a mode: `search` compares words, `vsearch` vectors, `query` both, with "
        "expansion and reranking; `--mode keyword`, `semantic` and `hybrid` pick them in this order",
        choices=("search", "vsearch", "query"),
    )
    update_minutes: int = option(5, "Update QMD's index every this many minutes", low=1, high=1440)
    on_start: bool = option(True, "Update QMD's index when an agent starts a session, and at the first search")
    timeout_ms: int = option(
        4000, "End a search of QMD after this long; the builtin index answers", low=100, high=600_000
    )
    # The three models of `query` take about 2 GB; a keyword search takes 72 MB.
    max_rss_mb: int = option(4096, "End QMD when it uses more memory than this, in MB", low=64, high=100_000)


@dataclass(frozen=True, slots=True)
class McpSettings:
    """The MCP server."""

    token: str = option(
        "", "The bearer token that HTTP clients must send; required to listen beyond this machine", secret=True
    )


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Where to find conversations, besides the session store's own folder."""

    paths: tuple[Path, ...] = option(
        (),
        "Folders with conversations (`.jsonl`, `.json5`) of other programs, such as `~/.claude/projects`, "
        "`~/.codex/sessions` or `~/.openclaw/agents/main/sessions`; where `sources` is not set, it then includes "
        "`sessions`",
        kind="paths",
    )
    offer: bool = option(
        True,
        "Mention conversations that are not searched: those of this agent, OpenClaw, Claude Code and Codex",
        workspace="yes",
    )


@dataclass(frozen=True, slots=True)
class RedactionSettings:
    """Secrets such as API keys and passwords, which are replaced by placeholders before the text is used."""

    notes: bool = option(
        False,
        "Redact secrets in notes too, in the index, in search and in `get`; those in conversations are always "
        "redacted. A workspace file may only turn it on",
        workspace=(True,),
    )


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The embedding cache: the same text is never embedded twice."""

    enabled: bool = option(True, "Keep vectors across edits, renames, rebuilds and model switches")
    max_entries: int = option(50_000, "Maximum number of vectors; the least recently used are dropped first", low=1)
    max_age_days: float = option(
        0.0, "Drop vectors that have not been used for this many days; 0 is never", low=0, high=36_500
    )


@dataclass(frozen=True, slots=True)
class CostSettings:
    """The spending limit for embedding."""

    # A dollar buys 50 million tokens of OpenAI's small model.
    confirm_above_usd: float = option(
        1.0,
        "`notewell index` asks before it spends more than this, by estimate, in US dollars; background embedding, "
        "such as that before a search, never does",
        low=0,
    )
    prices: Mapping[str, str] = option(
        {},
        'Your own prices, in US dollars per million tokens, such as `"openai/text-embedding-3-small" = "0.02"`',
        kind="table",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be configured, checked and complete."""

    enabled: bool = option(True, "Use memory; a workspace file may only turn it off", workspace=(False,))
    sources: tuple[SourceName, ...] = option(
        ("memory",),
        "What is indexed and searched: notes (`memory`), conversations (`sessions`)",
        kind="list",
        choices=("memory", "sessions"),
        workspace=(("memory",),),
    )
    extra_paths: tuple[Path, ...] = option(
        (), "More Markdown files or folders to index; relative to the workspace", kind="paths", workspace="inside"
    )
    # A workspace file may set it, since it can only name files in the workspace, and links are not followed.
    include: tuple[str, ...] | None = option(
        None,
        "More Markdown files of the workspace to index, as patterns like those of a `.gitignore`: `**/*.md` is all of "
        "them, `docs/` a folder, `!archive/` not that one; what a `.gitignore` ignores is left out. `[]` is none",
        kind="list",
        form="a list of patterns, such as **/*.md",
        workspace="yes",
    )
    # A workspace file may not choose `auto`, which could pick a remote provider against the user's own file.
    provider: str = option(
        "auto",
        "Embedding provider: `auto` is the local model if it is installed, else the first of OpenAI, Gemini, Voyage "
        "and Mistral whose key is in the environment; `none` is keyword search only",
        pattern=_PROVIDER_NAME,
        form=f"one of {', '.join(PROVIDERS)}, or the name of a plug-in (a-z, 0-9, - and _)",
        workspace=("local", "none"),
    )
    model: str = option("", "The provider's model; empty is the provider's default")
    fallback: str = option(
        "none",
        "The embedding provider to use when the chosen one is unavailable",
        pattern=_PROVIDER_NAME,
        form=f"none, one of {', '.join(PROVIDERS[1:-1])}, or the name of a plug-in (a-z, 0-9, - and _)",
        workspace=("local", "none"),
    )
    # Only users may choose a program to run.
    backend: Literal["builtin", "qmd"] = option(
        "builtin",
        "What answers searches: the index of this package, or QMD, with this index where QMD fails",
        choices=("builtin", "qmd"),
        workspace=("builtin",),
    )
    qmd: QmdSettings = QmdSettings()
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


OPTIONS: Mapping[str, Option] = {key: declared for key, declared, _ in walk(Settings())}  # "query.max_results": ...
GROUPS: Mapping[str, str] = dict(groups_of(Settings()))  # by key path; the whole is ""


def flatten(settings: Settings) -> dict[str, Any]:
    """Return every value by its key path."""
    return {key: value for key, _, value in walk(settings)}


def to_public_dict(settings: Settings) -> dict[str, Any]:
    """Return all settings as nested plain data that is safe to print, log or send as JSON; secrets are masked."""
    public: dict[str, Any] = {}
    for key, value in flatten(settings).items():
        *groups, name = key.split(".")
        table = public
        for group in groups:
            table = table.setdefault(group, {})
        table[name] = OPTIONS[key].public(value)
    return public
