"""Long-term memory for AI agents, kept in plain Markdown.

from recollect import Memory

with Memory.open("~/notes") as memory:
    memory.index()
    for hit in memory.search("guest wifi password").hits:
        print(hit.citation, hit.snippet)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import (
    BadVectorError,
    ConversationError,
    CostLimitError,
    DiskFullError,
    EmbedderError,
    EmbedderUnavailableError,
    IndexBusyError,
    IndexCorruptError,
    IndexMismatchError,
    IndexReadOnlyError,
    IndexTooNewError,
    MemoryDisabledError,
    NoteNotFoundError,
    NotesBusyError,
    NoteUnreadableError,
    PathRefusedError,
    ProviderError,
    QueryError,
    RecollectError,
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
    WorkspaceError,
    WorkspaceNotFoundError,
)
from recollect.types import (
    BatchJob,
    Check,
    CostEstimate,
    ForgetReport,
    Forgotten,
    Hit,
    IndexPreview,
    IndexReport,
    IndexState,
    KnownAlready,
    NoteText,
    Price,
    Problem,
    Progress,
    Remembered,
    SearchAnswer,
    Status,
    Verification,
)

if TYPE_CHECKING:
    from recollect.async_memory import AsyncMemory
    from recollect.conversations import ConversationStore
    from recollect.embedding.download import download_model
    from recollect.memories import close_shared_memories, shared_memory
    from recollect.memory import Memory
    from recollect.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "AsyncMemory",
    "BadVectorError",
    "BatchJob",
    "Check",
    "ConversationError",
    "ConversationStore",
    "CostEstimate",
    "CostLimitError",
    "DiskFullError",
    "EmbedderError",
    "EmbedderUnavailableError",
    "ForgetReport",
    "Forgotten",
    "Hit",
    "IndexBusyError",
    "IndexCorruptError",
    "IndexMismatchError",
    "IndexPreview",
    "IndexReadOnlyError",
    "IndexReport",
    "IndexState",
    "IndexTooNewError",
    "KnownAlready",
    "Memory",
    "MemoryDisabledError",
    "NoteNotFoundError",
    "NoteText",
    "NoteUnreadableError",
    "NotesBusyError",
    "PathRefusedError",
    "Price",
    "Problem",
    "Progress",
    "ProviderError",
    "QueryError",
    "RecollectError",
    "RememberError",
    "Remembered",
    "RerankerError",
    "SearchAnswer",
    "SessionBusyError",
    "SessionDamagedError",
    "SessionExistsError",
    "SessionInputError",
    "SessionNotFoundError",
    "SessionTooNewError",
    "Settings",
    "SettingsError",
    "Status",
    "StoreError",
    "Verification",
    "WorkspaceError",
    "WorkspaceNotFoundError",
    "__version__",
    "close_shared_memories",
    "download_model",
    "shared_memory",
]


_HOMES = {
    "AsyncMemory": "recollect.async_memory",
    "ConversationStore": "recollect.conversations",
    "Memory": "recollect.memory",
    "Settings": "recollect.settings",
    "close_shared_memories": "recollect.memories",
    "shared_memory": "recollect.memories",
    "download_model": "recollect.embedding.download",
}


def __getattr__(name: str) -> object:
    """Import the working parts when they are first used: `import recollect` alone costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
