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
    NoteUnreadableError,
    PathRefusedError,
    QueryError,
    RecollectError,
    RerankerError,
    SettingsError,
    StoreError,
    WorkspaceError,
    WorkspaceNotFoundError,
)
from recollect.types import (
    Check,
    Hit,
    IndexPreview,
    IndexReport,
    IndexState,
    NoteText,
    Problem,
    Progress,
    SearchAnswer,
    Status,
)

if TYPE_CHECKING:
    from recollect.async_memory import AsyncMemory
    from recollect.memory import Memory
    from recollect.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "AsyncMemory",
    "BadVectorError",
    "Check",
    "DiskFullError",
    "EmbedderError",
    "EmbedderUnavailableError",
    "Hit",
    "IndexBusyError",
    "IndexCorruptError",
    "IndexMismatchError",
    "IndexPreview",
    "IndexReadOnlyError",
    "IndexReport",
    "IndexState",
    "IndexTooNewError",
    "Memory",
    "MemoryDisabledError",
    "NoteNotFoundError",
    "NoteText",
    "NoteUnreadableError",
    "PathRefusedError",
    "Problem",
    "Progress",
    "QueryError",
    "RecollectError",
    "RerankerError",
    "SearchAnswer",
    "Settings",
    "SettingsError",
    "Status",
    "StoreError",
    "WorkspaceError",
    "WorkspaceNotFoundError",
    "__version__",
]


_HOMES = {"AsyncMemory": "recollect.async_memory", "Memory": "recollect.memory", "Settings": "recollect.settings"}


def __getattr__(name: str) -> object:
    """Import the working parts when they are first used: `import recollect` alone costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
