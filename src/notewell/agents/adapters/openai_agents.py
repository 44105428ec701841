"""Function tools and a session for the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from notewell.agents.adapters.shared import needs_extra
from notewell.agents.tools import MemoryTools
from notewell.errors import SessionExistsError, SessionNotFoundError
from notewell.sessions import Message, ToolCall, id_of_group

with needs_extra("openai-agents"):
    from agents.memory import SessionSettings

    from agents import FunctionTool

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.tool_context import ToolContext

    from notewell.agents.tools.prompt import Citations
    from notewell.agents.tools.schemas import ToolSpec
    from notewell.memory.memory import Memory
    from notewell.sessions import ConversationStore, SessionKind
    from notewell.sources.privacy import Chat

__all__ = ["ConversationSession", "memory_function_tools"]


def memory_function_tools(
    memory: Memory, *, chat: Chat | None = None, citations: Citations | None = None, read_only: bool | None = None
) -> list[FunctionTool]:
    """Return the memory tools for `Agent(tools=...)`; `read_only` leaves out those that write.

    Errors are returned to the model as results with a hint.
    """
    tools = MemoryTools(memory, chat=chat, citations=citations, read_only=read_only)
    return [_function_tool(tools, spec) for spec in tools.specs]


def _function_tool(tools: MemoryTools, spec: ToolSpec) -> FunctionTool:
    async def call(context: ToolContext[Any], arguments: str) -> str:  # noqa: ARG001 - the framework decides
        return (await asyncio.to_thread(tools.call, spec.name, arguments)).text

    return FunctionTool(
        name=spec.name,
        description=spec.description,
        params_json_schema=spec.parameters,
        on_invoke_tool=call,
        strict_json_schema=False,  # strict mode has no optional parameters
    )


class ConversationSession:
    """A session for `Runner.run(..., session=...)` that stores its items in the memory's conversation store.

    Read them with `notewell sessions show`; search finds them if the memory's sources include sessions. An id that is
    not a valid file name is stored as `stored_id`.
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
        self._kind: SessionKind = "group" if memory.audience.is_group else kind
        self._memory = memory

    @property
    def _store(self) -> ConversationStore:
        return self._memory.conversations

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, oldest first; only the latest with a limit."""
        wanted = limit if limit is not None or self.session_settings is None else self.session_settings.limit
        return await asyncio.to_thread(self._items, wanted)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items; they are on disk when this returns."""
        if items:
            await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the latest item; None if there is none."""
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
        items += [item for message in session.messages for item in _items_of(message)]
        if limit is None or limit < 0:
            return items
        return items[len(items) - min(limit, len(items)) :]

    def _add(self, items: list[TResponseInputItem]) -> None:
        messages = [_message_of(item) for item in items]
        if not self._store.exists(self.stored_id):
            with suppress(SessionExistsError):  # created by another process in the meantime
                self._store.create(self.stored_id, kind=self._kind, channel="openai-agents")
        self._store.append(self.stored_id, *messages)

    def _pop(self) -> TResponseInputItem | None:
        try:
            message = self._store.take_last(self.stored_id)
        except SessionNotFoundError:
            return None
        if message is None:
            return None
        *before, last = _items_of(message)
        if before:  # another program's message of several items
            self._store.append(self.stored_id, *(_message_of(item) for item in before))
        return last  # type: ignore[return-value]  # as it was given

    def _clear(self) -> None:
        with suppress(SessionNotFoundError):  # nothing was added yet
            self._store.delete(self.stored_id)


# --- items of the Responses API as messages ------------------------------------------------------

KEPT = "openaiItem"  # the field of a stored message with the original item


def _message_of(item: Any) -> Message:
    """Return the message for an item; its text is what readers and searches see."""
    values = json.loads(json.dumps(_as_mapping(item), default=_as_mapping))
    content = values.get("content")
    if set(values) == {"role", "content"} and isinstance(content, str) and isinstance(values["role"], str):
        return Message(values["role"], content)
    extra = {KEPT: values}
    match values.get("type"):
        case "function_call":
            call = ToolCall(str(values.get("call_id") or ""), str(values.get("name") or ""), values.get("arguments"))
            return Message("assistant", "", tool_calls=(call,), extra=extra)
        case "function_call_output":
            call_id = str(values.get("call_id") or "") or None
            return Message("tool", _text(values.get("output")), tool_call_id=call_id, extra=extra)
        case "reasoning":
            return Message("assistant", "", extra=extra)
    return Message(str(values.get("role") or "assistant"), _text(content), extra=extra)


def _items_of(message: Message) -> list[dict[str, Any]]:
    """Return the items of a message: the original one, or those made from another program's message."""
    kept = message.extra.get(KEPT)
    if isinstance(kept, Mapping):
        return [dict(kept)]
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id or "", "output": message.text}]
    calls = [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
        }
        for call in message.tool_calls
    ]
    said = [{"role": message.role, "content": message.text}] if message.text or not calls else []
    return [*said, *calls]


def _as_mapping(item: Any) -> Any:
    return item.model_dump(exclude_unset=True) if hasattr(item, "model_dump") else item


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return "" if content is None else json.dumps(content, ensure_ascii=False)
