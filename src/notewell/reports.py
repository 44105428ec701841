"""The results of single commands: lists, previews, status, and what was remembered or forgotten.

Values that every search and sync needs are in `types`: a search does not import this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from notewell.types import (
    Backend,
    BatchJob,
    Category,
    Check,
    CostEstimate,
    EntryPlace,
    Fallback,
    Problem,
    SearchMode,
    SourceCounts,
    SourceName,
)

# --- reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listed:
    """A remembered entry, a note or a conversation, as `list` and `history` show it."""

    kind: Literal["entry", "note", "conversation"]
    path: str
    citation: str  # path#L5-L9 of an entry, else the path
    text: str  # all of an entry; the title or first line of a note or conversation
    when: datetime  # an entry: remembered; a note: its day, else its last change; a conversation: its last change
    source: SourceName
    first_line: int | None = None  # of an entry, 1-based
    last_line: int | None = None
    entry: str | None = None  # id of an entry
    author: str | None = None  # of an entry
    origin: str | None = None  # of an entry: where it was remembered, such as "the command line"
    category: Category | None = None  # of an entry
    importance: int | None = None  # of an entry, 1 to 10
    replaces: tuple[str, ...] = ()  # ids of older entries
    replaced_by: str | None = None  # id of the newer entry
    replaced_at: datetime | None = None
    chat: str | None = None  # of an entry: the group that wrote it


@dataclass(frozen=True, slots=True)
class MemoryList:
    """The contents of a memory, newest first."""

    items: tuple[Listed, ...]
    total: int  # count without the limit
    problems: tuple[Problem, ...] = ()  # what could not be read


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A file of a session's context, and how much of it is included."""

    path: str  # relative to the workspace
    missing: bool  # or hidden from the audience
    raw_chars: int
    injected_chars: int

    @property
    def truncated(self) -> bool:
        """Whether a part was left out."""
        return self.injected_chars < self.raw_chars


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What an agent should know at the start of a session."""

    text: str  # for the system prompt, fenced as data; may be empty
    files: tuple[ContextFile, ...]
    workspace: str
    generated_at_ms: int  # since 1970
    notes: tuple[str, ...] = ()

    def report(self, prompt: str = "", *, provider: str | None = None, model: str | None = None) -> dict[str, Any]:
        """Return the report that OpenClaw stores with a session as `system_prompt_report`.

        `prompt` is the system prompt that was sent, including the text of this context, to `provider` and `model`.
        Without a prompt the report is an estimate.
        """
        injected = len(self.text) if not prompt or self.text in prompt else 0
        chars = len(prompt) or injected
        answered_by = {"provider": provider, "model": model}
        return {
            "source": "run" if prompt else "estimate",
            "generatedAt": self.generated_at_ms,
            **{name: value for name, value in answered_by.items() if value is not None},
            "workspaceDir": self.workspace,
            "systemPrompt": {
                "chars": chars,
                "projectContextChars": injected,
                "nonProjectContextChars": chars - injected,
            },
            "injectedWorkspaceFiles": [
                {
                    "name": file.path.rpartition("/")[2],
                    "path": str(Path(self.workspace) / file.path),
                    "missing": file.missing,
                    "rawChars": file.raw_chars,
                    "injectedChars": file.injected_chars,
                    "truncated": file.truncated,
                }
                for file in self.files
            ],
        }


# --- the index -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexPreview:
    """What an indexing run would do."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    chunks: int  # in the added and changed files
    tokens: int  # about, in those chunks
    known: int  # of those chunks, how many already have a vector
    pending: int  # chunks indexed earlier that have no vector yet
    rebuild_reason: str = ""  # why the index would be rebuilt; empty if it would not
    problems: tuple[Problem, ...] = ()
    to_embed: int = 0  # distinct texts without a vector, including those of earlier runs
    cost: CostEstimate | None = None  # of embedding them; None without an embedder


@dataclass(frozen=True, slots=True)
class Verification:
    """The comparison of the index with the files and with a fresh index."""

    findings: tuple[str, ...]  # how they differ
    files: int  # as indexed
    chunks: int
    seconds: float = 0.0

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class Migration:
    """What was copied from one storage engine into another."""

    source: str  # for messages
    target: str
    files: int
    chunks: int
    vectors: int  # copied; nothing is embedded
    pending: int  # chunks without a vector
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CacheState:
    """The embedding cache."""

    enabled: bool
    entries: int
    max_entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FtsState:
    """Keyword search."""

    enabled: bool
    available: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class VectorState:
    """Vector search."""

    enabled: bool
    available: bool | None  # None before an index that needs an extension was opened
    driver: str
    extension_path: str = ""  # of the settings
    load_error: str = ""
    dims: int | None = None  # of the stored vectors


@dataclass(frozen=True, slots=True)
class BatchState:
    """The settings for batch jobs, and the failures of the last run that had any."""

    enabled: bool
    failures: int
    limit: int  # of failures, after which a run continues without jobs
    wait: bool
    concurrency: int
    poll_interval_ms: int
    timeout_ms: int
    last_error: str = ""
    last_provider: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a memory: where it is, what is indexed and how a search would answer."""

    workspace: str
    agent: str
    state_folder: str
    files: int
    chunks: int
    pending: int
    mode: SearchMode
    embedder: str | None  # the identity in use; None when search is keyword only
    embedder_reason: str  # why this one, or why none
    index_embedder: str | None  # the identity the stored vectors belong to
    sources: Sequence[SourceName]
    index_bytes: int  # an estimate in a database
    cache: CacheState
    vector: VectorState
    fts: FtsState
    batch: BatchState
    read_only: bool
    stale: bool
    checks: tuple[Check, ...] = ()  # with deep=True
    notes: tuple[str, ...] = ()
    backend: Backend = "builtin"  # in use
    fallback: Fallback | None = None  # if the backend or embedding provider in the settings cannot be used
    jobs: tuple[BatchJob, ...] = ()  # in progress at a provider
    provider: str = "none"  # of the embedder in use
    model: str = ""  # of the embedder in use
    requested_provider: str = "auto"
    db_path: str | None = None  # the index file that answers; None before the first index
    extra_paths: tuple[str, ...] = ()
    source_counts: tuple[SourceCounts, ...] = ()


# --- remembering and forgetting --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KnownAlready:
    """A statement in a note that is similar to a text to be remembered."""

    citation: str  # path#L5
    text: str
    likeness: float  # share of words in common, 0 to 1
    same: bool  # says the same, so the text was not written
    differs: bool = False  # states another value of the same subject, judging by the words


@dataclass(frozen=True, slots=True)
class Remembered:
    """The outcome of remembering a text."""

    written: bool  # False: already known
    path: str  # of the note
    first_line: int | None = None  # of the new entry, 1-based; None when nothing was written
    last_line: int | None = None
    citation: str = ""  # path#L5-L7 of the new entry's text, or where it was known
    entry: str = ""  # id of the new entry; empty if nothing was written
    replaced: EntryPlace | None = None  # the older entry, now marked as replaced
    known: tuple[KnownAlready, ...] = ()  # the same or similar statements, the most similar first
    redacted: tuple[str, ...] = ()  # kinds of secrets that were redacted
    kept: tuple[str, ...] = ()  # kinds of secrets that were written on request
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgottenLine:
    """A line of a note, or a message of a conversation, that is forgotten."""

    line: int  # 1-based; 0: a message
    text: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A note or conversation from which something was removed, or would be."""

    path: str  # as stored and cited
    source: SourceName
    whole: bool  # the whole file
    count: int  # lines of a note, or messages of a conversation
    lines: tuple[ForgottenLine, ...] = ()  # what is removed; excerpts for conversations
    in_trash: bool = False  # forgotten earlier, and now erased


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was forgotten, or would be."""

    dry_run: bool
    forgotten: tuple[Forgotten, ...] = ()
    chunks: int = 0  # removed from the index, with `for_good`
    vectors: int = 0  # removed from the embedding cache, with `for_good`
    problems: tuple[Problem, ...] = ()  # what could not be forgotten, and why
    notes: tuple[str, ...] = ()
    for_good: bool = False  # erased instead of moved to the trash
    undo: str = ""  # the id for `undo`


@dataclass(frozen=True, slots=True)
class Trashed:
    """What one call of `forget` moved to the trash."""

    id: str  # for `undo`
    forgotten_at: datetime
    kept_until: datetime  # erased after that
    forgotten: tuple[Forgotten, ...]


@dataclass(frozen=True, slots=True)
class UndoReport:
    """What was restored from the trash."""

    id: str
    restored: tuple[Forgotten, ...] = ()
    problems: tuple[Problem, ...] = ()  # what could not be restored and stays in the trash
    notes: tuple[str, ...] = ()
