"""What single commands answer: lists, previews, states, and what was remembered or forgotten.

Values that every search and every sync needs are in `types`: a search does not import this module.
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
    """What a memory holds, the newest first."""

    items: tuple[Listed, ...]
    total: int  # how many there are without the limit
    problems: tuple[Problem, ...] = ()  # what could not be read


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A file that belongs into the context of a session, and how much of it is there."""

    path: str  # relative to the workspace
    missing: bool  # also what the audience may not see
    raw_chars: int
    injected_chars: int

    @property
    def truncated(self) -> bool:
        """Whether a part was left out."""
        return self.injected_chars < self.raw_chars


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What an agent should know at the start of a session."""

    text: str  # for the system prompt, fenced as data; empty when there is nothing to know
    files: tuple[ContextFile, ...]
    workspace: str
    generated_at_ms: int  # since 1970
    notes: tuple[str, ...] = ()

    def report(self, prompt: str = "", *, provider: str | None = None, model: str | None = None) -> dict[str, Any]:
        """Return the report that OpenClaw keeps with a session, as `system_prompt_report`.

        `prompt` is the system prompt that was sent, the text of this context in it; `provider` and `model` are those
        that it was sent to. Without a prompt the report is an estimate.
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
    known: int  # of those chunks, how many have their vector already
    pending: int  # chunks indexed earlier that have no vector yet
    rebuild_reason: str = ""  # why the index would be rebuilt; empty when it would not
    problems: tuple[Problem, ...] = ()
    to_embed: int = 0  # different texts without a vector, those of earlier runs included
    cost: CostEstimate | None = None  # of embedding them; None without an embedder


@dataclass(frozen=True, slots=True)
class Verification:
    """How the index compares with the files and with a fresh index of them."""

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

    source: str  # where it was and is, for messages
    target: str
    files: int
    chunks: int
    vectors: int  # none was embedded again
    pending: int  # chunks that had no vector and have none now
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
    available: bool | None  # None before an index was opened that needs an extension
    driver: str
    extension_path: str = ""  # of the settings
    load_error: str = ""
    dims: int | None = None  # of the stored vectors


@dataclass(frozen=True, slots=True)
class BatchState:
    """The settings for batch jobs, and how the last run with any went."""

    enabled: bool
    failures: int
    limit: int  # of failures: then the run goes on without jobs
    wait: bool
    concurrency: int
    poll_interval_ms: int
    timeout_ms: int
    last_error: str = ""
    last_provider: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """Where the memory is, what it holds and how it would answer."""

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
    index_bytes: int  # in a database an estimate, by a few rows
    cache: CacheState
    vector: VectorState
    fts: FtsState
    batch: BatchState
    read_only: bool
    stale: bool
    checks: tuple[Check, ...] = ()  # with deep=True
    notes: tuple[str, ...] = ()
    backend: Backend = "builtin"  # which answers searches now
    fallback: Fallback | None = None  # the backend or the embedding provider that the settings ask for cannot be used
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
    """A statement of a note that is similar to a text to be remembered."""

    citation: str  # path#L5
    text: str
    likeness: float  # share of words in common, 0 to 1
    same: bool  # states the same, so the text was not written again
    differs: bool = False  # gives the same subject another value, as far as words tell


@dataclass(frozen=True, slots=True)
class Remembered:
    """The outcome of remembering a text."""

    written: bool  # False: it is known already
    path: str  # the note it was put into, or would have been
    first_line: int | None = None  # of the new entry, 1-based; None when nothing was written
    last_line: int | None = None
    citation: str = ""  # path#L5-L7 of the new entry's text, or where it was known
    entry: str = ""  # the short id of the new entry; empty when nothing was written
    replaced: EntryPlace | None = None  # the older entry that is marked as replaced by it
    known: tuple[KnownAlready, ...] = ()  # the same or similar statements, the most similar first
    redacted: tuple[str, ...] = ()  # kinds of secrets that were redacted
    kept: tuple[str, ...] = ()  # kinds of secrets that were written as they are, because it was asked for
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgottenLine:
    """A line of a note, or a message of a conversation, that is forgotten."""

    line: int  # 1-based; 0: a message
    text: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """One note or conversation that lost something, or would."""

    path: str  # as stored and cited
    source: SourceName
    whole: bool  # the file itself goes
    count: int  # lines of a note, or messages of a conversation
    lines: tuple[ForgottenLine, ...] = ()  # what goes; of a conversation the passages that contain the text
    in_trash: bool = False  # it was forgotten before, and is erased now


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was forgotten, or would be."""

    dry_run: bool
    forgotten: tuple[Forgotten, ...] = ()
    chunks: int = 0  # that are no longer in the index; counted where it is for good
    vectors: int = 0  # that are no longer in the embedding cache
    problems: tuple[Problem, ...] = ()  # what could not be forgotten, and why
    notes: tuple[str, ...] = ()
    for_good: bool = False  # erased; otherwise it is in the trash
    undo: str = ""  # the id by which `undo` restores it


@dataclass(frozen=True, slots=True)
class Trashed:
    """What one call of `forget` moved to the trash."""

    id: str  # for `undo`
    forgotten_at: datetime
    kept_until: datetime  # then it is erased
    forgotten: tuple[Forgotten, ...]


@dataclass(frozen=True, slots=True)
class UndoReport:
    """What was restored from the trash."""

    id: str
    restored: tuple[Forgotten, ...] = ()
    problems: tuple[Problem, ...] = ()  # what could not be restored and stays in the trash
    notes: tuple[str, ...] = ()
