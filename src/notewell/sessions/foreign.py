"""Transcripts of other programs: one record of Claude Code, Codex or OpenClaw's agent in, our messages out.

Each reader answers None for a record that is not its own, so that they can be asked in turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from notewell.sessions.model import Message, ToolCall
from notewell.sessions.values import milliseconds

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Taken:
    """What a record holds: messages, facts about the session, or the reason why it was left out."""

    messages: tuple[Message, ...] = ()
    head: Record = field(default_factory=dict)
    left_out: str = ""
    usage_id: str = ""  # of the answer that the token counts belong to


def claude_code(record: Record) -> Taken | None:
    """Read a line of `~/.claude/projects/*/*.jsonl`."""
    kind, inner = record.get("type"), record.get("message")
    if "uuid" not in record and "sessionId" not in record:
        return None
    if kind not in ("user", "assistant") or not isinstance(inner, Mapping):
        return Taken(left_out=f"type {kind}")
    if record.get("isSidechain"):
        return Taken(left_out="sidechain")
    if record.get("isMeta"):
        return Taken(left_out="meta")
    head = {"id": record.get("sessionId"), "timestamp": record.get("timestamp")}
    time = milliseconds(record.get("timestamp"))
    messages = _of_blocks(inner, str(kind), time, str(record.get("uuid") or ""))
    return Taken(messages, head, usage_id=str(inner.get("id") or "") if kind == "assistant" else "")


def codex(record: Record) -> Taken | None:
    """Read a line of `~/.codex/sessions/**/rollout-*.jsonl`."""
    kind, payload = record.get("type"), record.get("payload")
    if not isinstance(payload, Mapping):
        return None
    if kind == "session_meta":
        return Taken(head={"id": payload.get("id"), "timestamp": payload.get("timestamp") or record.get("timestamp")})
    if kind != "response_item":
        return Taken(left_out=f"type {kind}")
    message = _codex_item(payload, milliseconds(record.get("timestamp")))
    return Taken((message,)) if message else Taken(left_out=f"type {payload.get('type')}")


def _codex_item(payload: Record, time: int) -> Message | None:
    call_id = str(payload.get("call_id") or "")
    match payload.get("type"):
        case "message":
            return Message(str(payload.get("role") or "user"), _text(payload.get("content")), time)
        case "reasoning":
            thoughts = tuple({"type": "thought", "content": text} for text in _texts(payload.get("summary")))
            return Message("assistant", "", time, thinking_blocks=thoughts) if thoughts else None
        case "function_call" | "custom_tool_call":
            arguments = _arguments(payload.get("arguments", payload.get("input")))
            return Message(
                "assistant", "", time, tool_calls=(ToolCall(call_id, str(payload.get("name") or ""), arguments),)
            )
        case "function_call_output" | "custom_tool_call_output":
            return Message("tool", _text(payload.get("output")), time, tool_call_id=call_id)
    return None


def openclaw_agent(record: Record) -> Taken | None:
    """Read a message of OpenClaw whose content is blocks with thoughts and tool calls, or a tool's answer."""
    inner = record.get("message")
    if record.get("type") != "message" or not isinstance(inner, Mapping) or not isinstance(inner.get("content"), list):
        return None
    known = {"thinking", "toolCall", "tool_use", "tool_result"}
    blocks = [block for block in inner["content"] if isinstance(block, Mapping)]
    if inner.get("role") != "toolResult" and known.isdisjoint(str(block.get("type")) for block in blocks):
        return None
    time = milliseconds(inner.get("timestamp")) or milliseconds(record.get("timestamp"))
    if inner.get("role") == "toolResult":
        name = str(inner.get("toolName") or inner.get("name") or "") or None
        call_id = str(inner.get("toolCallId") or "") or None
        return Taken(
            (Message("tool", _text(blocks), time, str(record.get("id") or ""), tool_call_id=call_id, name=name),)
        )
    return Taken(_of_blocks(inner, str(inner.get("role") or "assistant"), time, str(record.get("id") or "")))


FOREIGN: tuple[Callable[[Record], Taken | None], ...] = (claude_code, codex, openclaw_agent)


def _of_blocks(inner: Record, role: str, time: int, message_id: str) -> tuple[Message, ...]:
    """Return the message that blocks make, and one for each tool's answer among them."""
    content = inner.get("content")
    if isinstance(content, str):
        return (Message(role, content, time, message_id, _usage(inner)),)
    blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
    calls = tuple(
        ToolCall(str(block.get("id") or ""), str(block.get("name") or ""), block.get("input", block.get("arguments")))
        for block in blocks
        if block.get("type") in ("tool_use", "toolCall")
    )
    thoughts = tuple(
        {"type": "thought", "content": str(block.get("thinking") or "")}
        for block in blocks
        if block.get("type") == "thinking"
    )
    answers = [
        Message("tool", _text(block.get("content")), time, tool_call_id=str(block.get("tool_use_id") or "") or None)
        for block in blocks
        if block.get("type") == "tool_result"
    ]
    text = _text(blocks)
    said = [Message(role, text, time, message_id, _usage(inner), thoughts, calls)] if text or calls or thoughts else []
    return (*answers, *said)


def _usage(inner: Record) -> Record | None:
    usage = inner.get("usage")
    if not isinstance(usage, Mapping):
        return None
    names = {
        "inputTokens": ("inputTokens", "input_tokens", "input"),
        "outputTokens": ("outputTokens", "output_tokens", "output"),
    }
    found = {
        ours: next((value for name in theirs if isinstance(value := usage.get(name), int)), 0)
        for ours, theirs in names.items()
    }
    return found if any(found.values()) else None


def _text(content: object) -> str:
    return "\n".join(_texts(content))


def _texts(content: object) -> Iterable[str]:
    """Return the texts of a string, or of blocks whatever their kind is called."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return [] if content is None else [json.dumps(content, ensure_ascii=False)]
    return [
        str(block["text"])
        for block in content
        if isinstance(block, Mapping) and isinstance(block.get("text"), str) and block.get("type") != "thinking"
    ]


def _arguments(value: object) -> object:
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
