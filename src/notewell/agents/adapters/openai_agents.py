"""OpenAI Agents SDK: a memory in, function tools and a session that keeps its items in the conversation store out."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from notewell.agents.adapters.needed import needs_extra
from notewell.agents.adapters.openai_items import items_of, message_of_item
from notewell.agents.tools import MemoryTools
from notewell.errors import SessionExistsError, SessionNotFoundError
from notewell.sessions.ids import id_of_group

with needs_extra("openai-agents"):
    from agents.memory import SessionSettings

    from agents import FunctionTool

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.tool_context import ToolContext

    from notewell.agents.tools.injection import Citations
    from notewell.agents.tools.schemas import ToolSpec
    from notewell.memory.memory import Memory
    from notewell.sessions import ConversationStore, SessionKind
    from notewell.sources.privacy import Chat

__all__ = ["ConversationSession", "memory_function_tools"]


def memory_function_tools(
    memory: Memory, *, chat: Chat | None = None, citations: Citations | None = None, append: bool | None = None
) -> list[FunctionTool]:
    """Return memory_search, memory_get and memory_status, with `append` memory_append too, for `Agent(tools=...)`.

    What goes wrong comes back to the model as a result that says what to do next.
    """
    tools = MemoryTools(memory, chat=chat, citations=citations, append=append)
    return [_function_tool(tools, spec) for spec in tools.specs]


def _function_tool(tools: MemoryTools, spec: ToolSpec) -> FunctionTool:
    async def call(context: ToolContext[Any], arguments: str) -> str:  # noqa: ARG001 - the framework decides
        return (await asyncio.to_thread(tools.call, spec.name, arguments)).text

    return FunctionTool(
        name=spec.name,
        description=spec.description,
        params_json_schema=spec.parameters,
        on_invoke_tool=call,
        strict_json_schema=False,  # strict mode knows no optional parameters
    )


class ConversationSession:
    """A session for `Runner.run(..., session=...)` whose items are messages of the memory's conversation store.

    They can be read with `notewell sessions show`, and searched where the memory's sources include sessions. An id
    that the store could not keep as a file name gets a name made from it, which is `stored_id`.
    """

    session_settings: SessionSettings | None

    def __init__(
        self,
        memory: Memory,
        session_id: str,
        *,
        kind: SessionKind = "direct",
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.stored_id = id_of_group(session_id)
        self.session_settings = session_settings or SessionSettings()
        self._kind: SessionKind = kind
        self._memory = memory

    @property
    def _store(self) -> ConversationStore:
        return self._memory.conversations

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, oldest first; with a limit the latest ones."""
        wanted = limit if limit is not None or self.session_settings is None else self.session_settings.limit
        return await asyncio.to_thread(self._items, wanted)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Write items at the end; they are on disk when this returns."""
        if items:
            await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the latest item away and return it; None when there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Delete the conversation."""
        await asyncio.to_thread(self._clear)

    def _items(self, limit: int | None) -> list[TResponseInputItem]:
        try:
            session = self._store.get(self.stored_id)
        except SessionNotFoundError:
            return []
        items: list[Any] = [{"role": "system", "content": summary.content} for summary in session.summaries]
        items += [item for message in session.messages for item in items_of(message)]
        if limit is None or limit < 0:
            return items
        return items[len(items) - min(limit, len(items)) :]

    def _add(self, items: list[TResponseInputItem]) -> None:
        messages = [message_of_item(item) for item in items]
        if not self._store.exists(self.stored_id):
            with suppress(SessionExistsError):  # another process was faster
                self._store.create(self.stored_id, kind=self._kind, channel="openai-agents")
        self._store.append(self.stored_id, *messages)

    def _pop(self) -> TResponseInputItem | None:
        try:
            message = self._store.take_last(self.stored_id)
        except SessionNotFoundError:
            return None
        if message is None:
            return None
        *before, last = items_of(message)
        if before:  # a message of another program that was several items here
            self._store.append(self.stored_id, *(message_of_item(item) for item in before))
        return last  # type: ignore[return-value]  # as it was given

    def _clear(self) -> None:
        with suppress(SessionNotFoundError):  # nothing was said yet
            self._store.delete(self.stored_id)
