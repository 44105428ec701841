"""Items of OpenAI's Responses API in, messages of the conversation store out, and back again unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from notewell.sessions import Message, ToolCall

KEPT = "openaiItem"  # the field of a stored message that holds an item which its text alone could not give back
_PLAIN = {"role", "content"}


def message_of_item(item: Any) -> Message:
    """Return the message that holds an item; what a reader or a search should see of it is its text."""
    values = json.loads(json.dumps(_as_mapping(item), default=_as_mapping))
    content = values.get("content")
    if set(values) == _PLAIN and isinstance(content, str) and isinstance(values["role"], str):
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


def items_of(message: Message) -> list[dict[str, Any]]:
    """Return the items of a message: the one that was given, or those that a message of another program makes."""
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
