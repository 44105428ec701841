"""The same memory for code in an event loop: every method of `Memory`, run in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from notewell.memory.memory import Memory

if TYPE_CHECKING:
    from notewell.sessions import ConversationStore

P = ParamSpec("P")
R = TypeVar("R")


def _in_thread(
    method: Callable[Concatenate[Memory, P], R],
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, R]]:
    """Return a method of `Memory` as one to await, with the same parameters, types and docstring."""

    @wraps(method)
    async def awaited(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self._memory, *args, **kwargs)

    return awaited


def _opened_in_thread(
    opening: Callable[P, Memory],
) -> Callable[Concatenate[type[AsyncMemory], P], Coroutine[Any, Any, AsyncMemory]]:
    unbound = vars(Memory)["open"].__func__  # has `cls`, as the signature of a class method needs it

    @wraps(unbound)
    async def awaited(cls: type[AsyncMemory], /, *args: P.args, **kwargs: P.kwargs) -> AsyncMemory:
        return cls(await asyncio.to_thread(opening, *args, **kwargs))

    return awaited


class AsyncMemory:
    """One agent's memory of one workspace; use it in an `async with` block, or close it.

    Callbacks such as `progress`, `on_sync` and `summarize` are called from another thread.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    open = classmethod(_opened_in_thread(Memory.open))
    close = _in_thread(Memory.close)
    index = _in_thread(Memory.index)
    sync = _in_thread(Memory.sync)
    preview = _in_thread(Memory.preview)
    remember = _in_thread(Memory.remember)
    forget = _in_thread(Memory.forget)
    trash = _in_thread(Memory.trash)
    undo = _in_thread(Memory.undo)
    search = _in_thread(Memory.search)
    timeline = _in_thread(Memory.timeline)
    files = _in_thread(Memory.files)
    get = _in_thread(Memory.get)
    list = _in_thread(Memory.list)
    history = _in_thread(Memory.history)
    session_context = _in_thread(Memory.session_context)
    status = _in_thread(Memory.status)
    uncovered = _in_thread(Memory.uncovered)
    unsearched_conversations = _in_thread(Memory.unsearched_conversations)
    doctor = _in_thread(Memory.doctor)
    verify = _in_thread(Memory.verify)
    flush_session = _in_thread(Memory.flush_session)
    on_transcript_update = _in_thread(Memory.on_transcript_update)
    begin_session = _in_thread(Memory.begin_session)
    wait_until_synced = _in_thread(Memory.wait_until_synced)
    watch = _in_thread(Memory.watch)

    @wraps(Memory.seen_by)
    async def seen_by(self, **audience: Any) -> AsyncMemory:
        return AsyncMemory(self._memory.seen_by(**audience))

    @property
    def conversations(self) -> ConversationStore:
        """The agent's session store; its calls block for some milliseconds, so use `asyncio.to_thread`."""
        return self._memory.conversations
