"""Long-term memory for AI agents, kept in plain Markdown.

from notewell import Memory

with Memory.open("~/notes") as memory:
    memory.index()
    for hit in memory.search("guest wifi password").hits:
        print(hit.citation, hit.snippet)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from notewell.errors import (
    BackendError,
    BadVectorError,
    ConversationError,
    CostLimitError,
    DiskFullError,
    EmbedderError,
    EmbedderUnavailableError,
    EntryNotFoundError,
    IndexBusyError,
    IndexCorruptError,
    IndexForeignError,
    IndexMismatchError,
    IndexReadOnlyError,
    IndexTooNewError,
    MemoryDisabledError,
    NoteNotFoundError,
    NotesBusyError,
    NoteUnreadableError,
    NotewellError,
    PathRefusedError,
    ProviderError,
    QueryError,
    RememberError,
    RerankerError,
    SessionBusyError,
    SessionDamagedError,
    SessionExistsError,
    SessionInputError,
    SessionNotFoundError,
    SessionTooNewError,
    SettingsError,
    StoreError,
    StoreUnavailableError,
    TenantClaimedError,
    TrashError,
    WorkspaceError,
    WorkspaceNotFoundError,
)
from notewell.types import (
    BatchJob,
    Check,
    Citation,
    CostEstimate,
    EntryPlace,
    Fallback,
    Hit,
    IndexReport,
    IndexState,
    NoteText,
    Price,
    Problem,
    Progress,
    SearchAnswer,
    SourceCounts,
    Uncovered,
)

if TYPE_CHECKING:
    from notewell.embedding.local.download import download_model
    from notewell.memory.async_memory import AsyncMemory
    from notewell.memory.memory import Memory
    from notewell.memory.migration import migrate_index
    from notewell.memory.shared import close_shared_memories, shared_memory
    from notewell.reports import (
        BatchState,
        CacheState,
        ContextFile,
        ForgetReport,
        Forgotten,
        ForgottenLine,
        FtsState,
        IndexPreview,
        KnownAlready,
        Listed,
        MemoryList,
        Migration,
        Remembered,
        SessionContext,
        Status,
        Trashed,
        UndoReport,
        VectorState,
        Verification,
    )
    from notewell.search.options import SearchOptions
    from notewell.sessions import ConversationStore
    from notewell.settings import Settings
    from notewell.store.lancedb import LanceEntry, LanceHit, LanceMemory

__version__ = "0.1.0"

__all__ = [
    "AsyncMemory",
    "BackendError",
    "BadVectorError",
    "BatchJob",
    "BatchState",
    "CacheState",
    "Check",
    "Citation",
    "ContextFile",
    "ConversationError",
    "ConversationStore",
    "CostEstimate",
    "CostLimitError",
    "DiskFullError",
    "EmbedderError",
    "EmbedderUnavailableError",
    "EntryNotFoundError",
    "EntryPlace",
    "Fallback",
    "ForgetReport",
    "Forgotten",
    "ForgottenLine",
    "FtsState",
    "Hit",
    "IndexBusyError",
    "IndexCorruptError",
    "IndexForeignError",
    "IndexMismatchError",
    "IndexPreview",
    "IndexReadOnlyError",
    "IndexReport",
    "IndexState",
    "IndexTooNewError",
    "KnownAlready",
    "LanceEntry",
    "LanceHit",
    "LanceMemory",
    "Listed",
    "Memory",
    "MemoryDisabledError",
    "MemoryList",
    "Migration",
    "NoteNotFoundError",
    "NoteText",
    "NoteUnreadableError",
    "NotesBusyError",
    "NotewellError",
    "PathRefusedError",
    "Price",
    "Problem",
    "Progress",
    "ProviderError",
    "QueryError",
    "RememberError",
    "Remembered",
    "RerankerError",
    "SearchAnswer",
    "SearchOptions",
    "SessionBusyError",
    "SessionContext",
    "SessionDamagedError",
    "SessionExistsError",
    "SessionInputError",
    "SessionNotFoundError",
    "SessionTooNewError",
    "Settings",
    "SettingsError",
    "SourceCounts",
    "Status",
    "StoreError",
    "StoreUnavailableError",
    "TenantClaimedError",
    "TrashError",
    "Trashed",
    "Uncovered",
    "UndoReport",
    "VectorState",
    "Verification",
    "WorkspaceError",
    "WorkspaceNotFoundError",
    "__version__",
    "close_shared_memories",
    "download_model",
    "migrate_index",
    "shared_memory",
]


_HOMES = {  # the rest is in notewell.reports
    "AsyncMemory": "notewell.memory.async_memory",
    "ConversationStore": "notewell.sessions",
    "LanceEntry": "notewell.store.lancedb",
    "LanceHit": "notewell.store.lancedb",
    "LanceMemory": "notewell.store.lancedb",
    "Memory": "notewell.memory.memory",
    "SearchOptions": "notewell.search.options",
    "Settings": "notewell.settings",
    "close_shared_memories": "notewell.memory.shared",
    "download_model": "notewell.embedding.local.download",
    "migrate_index": "notewell.memory.migration",
    "shared_memory": "notewell.memory.shared",
}


def __getattr__(name: str) -> object:
    """Import the working parts when they are first used: `import notewell` alone costs next to nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'notewell' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "notewell.reports")), name)


def __dir__() -> list[str]:
    return __all__
