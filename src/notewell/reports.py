"""Defines the results of single commands: lists, previews, states, and what was remembered or forgotten.

Values that every search and sync needs are in `types`, so that a search does not import this module.
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
    when: datetime  # when an entry was remembered; the day of a note, or its last change; the end of a conversation
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
    """The content of a memory, newest first."""

    items: tuple[Listed, ...]
    total: int  # without the limit
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A file in the context of a session, and how much of it was injected."""

    path: str  # relative to the workspace
    missing: bool  # or hidden from the audience
    raw_chars: int
    injected_chars: int

    @property
    def truncated(self) -> bool:
        """Whether a part is missing."""
        return self.injected_chars < self.raw_chars


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The context of an agent at the start of a session."""

    text: str  # for the system prompt, fenced as data; may be empty
    files: tuple[ContextFile, ...]
    workspace: str
    generated_at_ms: int  # since 1970
    notes: tuple[str, ...] = ()

    def report(self, prompt: str = "", *, provider: str | None = None, model: str | None = None) -> dict[str, Any]:
        """Return the report that OpenClaw stores with a session as `system_prompt_report`.

        `prompt` is the system prompt that was sent, with the text of this context; `provider` and `model` received it.
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
    """A preview of an indexing run."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    chunks: int  # in the added and changed files
    tokens: int  # about, in those chunks
    known: int  # of those chunks, the ones with a known vector
    pending: int  # chunks of earlier runs without a vector
    rebuild_reason: str = ""  # empty: no rebuild
    problems: tuple[Problem, ...] = ()
    to_embed: int = 0  # distinct texts without a vector, also of earlier runs
    cost: CostEstimate | None = None  # of embedding them; None without an embedder


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of comparing the index with the files and with a fresh index."""

    findings: tuple[str, ...]  # differences
    files: int  # as indexed
    chunks: int
    seconds: float = 0.0

    @property
    def equal(self) -> bool:
        """Whether there is no difference."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class Migration:
    """The result of copying an index to another storage engine."""

    source: str  # for messages
    target: str
    files: int
    chunks: int
    vectors: int  # copied
    pending: int  # chunks without a vector
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CacheState:
    """The state of the embedding cache."""

    enabled: bool
    entries: int
    max_entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FtsState:
    """The state of keyword search."""

    enabled: bool
    available: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class VectorState:
    """The state of vector search."""

    enabled: bool
    available: bool | None  # None: an extension was not loaded yet
    driver: str
    extension_path: str = ""  # of the settings
    load_error: str = ""
    dims: int | None = None  # of the stored vectors


@dataclass(frozen=True, slots=True)
class BatchState:
    """The settings for batch jobs, and the failures of the last run."""

    enabled: bool
    failures: int
    limit: int  # of failures, then a run continues without jobs
    wait: bool
    concurrency: int
    poll_interval_ms: int
    timeout_ms: int
    last_error: str = ""
    last_provider: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a memory."""

    workspace: str
    agent: str
    state_folder: str
    files: int
    chunks: int
    pending: int
    mode: SearchMode
    embedder: str | None  # its identity; None: keyword search only
    embedder_reason: str  # why this one, or why none
    index_embedder: str | None  # the identity of the stored vectors
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
    backend: Backend = "builtin"  # that answers searches now
    fallback: Fallback | None = None  # if the backend or provider in the settings cannot be used
    jobs: tuple[BatchJob, ...] = ()  # in progress at a provider
    provider: str = "none"  # of the embedder in use
    model: str = ""  # of the embedder in use
    requested_provider: str = "auto"
    db_path: str | None = None  # the current index file; None before the first index
    extra_paths: tuple[str, ...] = ()
    source_counts: tuple[SourceCounts, ...] = ()


# --- remembering and forgetting --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KnownAlready:
    """A statement in a note that is similar to a new one."""

    citation: str  # path#L5
    text: str
    likeness: float  # share of common words, 0 to 1
    same: bool  # the same statement, so the text was not written again
    differs: bool = False  # another value for the same subject, judged by words


@dataclass(frozen=True, slots=True)
class Remembered:
    """The result of remembering a text."""

    written: bool  # False: already known
    path: str  # the note for the entry
    first_line: int | None = None  # of the new entry, 1-based; None when nothing was written
    last_line: int | None = None
    citation: str = ""  # path#L5-L7 of the new entry, or of the known statement
    entry: str = ""  # the short id of the new entry; empty when nothing was written
    replaced: EntryPlace | None = None  # the older entry that it replaces
    known: tuple[KnownAlready, ...] = ()  # similar statements, most similar first
    redacted: tuple[str, ...] = ()  # kinds of redacted secrets
    kept: tuple[str, ...] = ()  # kinds of secrets that were written on request
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgottenLine:
    """A forgotten line of a note or message of a conversation."""

    line: int  # 1-based; 0: a message
    text: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A note or conversation from which something was forgotten, or would be."""

    path: str  # as stored and cited
    source: SourceName
    whole: bool  # the whole file
    count: int  # lines of a note, or messages of a conversation
    lines: tuple[ForgottenLine, ...] = ()  # of a conversation the passages that contain the text
    in_trash: bool = False  # forgotten before, erased now


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """The result of forgetting, or a preview."""

    dry_run: bool
    forgotten: tuple[Forgotten, ...] = ()
    chunks: int = 0  # erased from the index
    vectors: int = 0  # erased from the embedding cache
    problems: tuple[Problem, ...] = ()  # what could not be forgotten, and why
    notes: tuple[str, ...] = ()
    for_good: bool = False  # erased rather than moved to the trash
    undo: str = ""  # the id for `undo`


@dataclass(frozen=True, slots=True)
class Trashed:
    """What a call of `forget` moved to the trash."""

    id: str  # for `undo`
    forgotten_at: datetime
    kept_until: datetime
    forgotten: tuple[Forgotten, ...]


@dataclass(frozen=True, slots=True)
class UndoReport:
    """The result of restoring from the trash."""

    id: str
    restored: tuple[Forgotten, ...] = ()
    problems: tuple[Problem, ...] = ()  # what could not be restored
    notes: tuple[str, ...] = ()
