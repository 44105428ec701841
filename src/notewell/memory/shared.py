"""Shares open memories within a process: one for each agent, workspace and settings.

A server that answers many requests opens the index, the model and the cache once. A forked child starts without any: an
open index must not be used on both sides of a fork.
"""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import QueryError
from notewell.memory.memory import Memory
from notewell.settings import Settings, load_settings
from notewell.settings.arguments import checked_call
from notewell.settings.workspace import checked_workspace, expanded
from notewell.sources.privacy import Chat

if TYPE_CHECKING:
    from collections.abc import Callable

    Key = tuple[str, str, str, str | None, str | None]

_lock = threading.Lock()
_open: dict[Key, Memory] = {}
_inherited: list[dict[Key, Memory]] = []  # a parent's: kept from being collected, and so closed, in the child


@checked_call(QueryError)
def shared_memory(
    workspace: str | Path,
    *,
    agent: str = "main",
    settings: Settings | None = None,
    chat: Chat | None = None,
    session: str | None = None,
    **overrides: object,
) -> Memory:
    """Return the memory that this process has open for the agent, workspace and settings; opened now if there is none.

    Another `chat` or `session`, which may see other notes, gets another memory.

    It stays open until `close_shared_memories` or the end of the process. Once closed, the next call opens it again.
    """
    folder = checked_workspace(expanded(Path(workspace)))
    if settings is None:
        flags = {key.replace("__", "."): value for key, value in overrides.items()}
        settings = load_settings(folder, agent=agent, flags=flags).settings
    key = (agent, os.path.realpath(folder), repr(settings), chat, session)
    with _lock:
        if key not in _open:
            _open[key] = Memory(folder, settings, agent=agent, chat=chat, session=session)
        return _open[key]


def close_shared_memories() -> None:
    """Close every shared memory; work in progress is finished first."""
    with _lock:
        closing = list(_open.values())
        _open.clear()
    for memory in closing:
        memory.close()


def _forget_in_child() -> None:
    global _lock, _open  # the lock may be held by a thread that the child does not have
    _inherited.append(_open)
    _lock, _open = threading.Lock(), {}


atexit.register(close_shared_memories)
_register: Callable[..., None] | None = getattr(os, "register_at_fork", None)  # no fork on Windows
if _register is not None:
    _register(after_in_child=_forget_in_child)
