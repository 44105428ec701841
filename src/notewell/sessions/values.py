"""Entries, messages and summaries in, JSON as the files hold it out, and back; what is wrong in them is refused.

Names are in camel case in the files. What a file holds beyond the known fields is kept in `extra` and written back.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from notewell.errors import SessionInputError
from notewell.sessions.ids import SessionKind
from notewell.sessions.model import Json, Message, SessionEntry, Summary, ToolCall

# The fields that people choose from a list; anything else in them is a slip of the pen.
CHOICES: dict[str, tuple[str, ...]] = {
    "thinking_level": ("off", "minimal", "low", "medium", "high"),
    "group_activation": ("mention", "always"),
    "exec_host": ("workspace", "docker", "node"),
    "exec_security": ("allow", "ask", "deny"),
    "response_usage": ("on", "off", "tokens", "full"),
    "tts_auto": ("on", "off", "dm-only"),
    "queue_mode": ("steer", "followup", "collect", "interrupt"),
    "queue_drop": ("old", "new", "summarize"),
}
NUMBERS = ("queue_debounce_ms", "queue_cap")
TABLES = ("origin", "delivery_context", "skills_snapshot", "system_prompt_report")
# What a caller may set; the rest is the store's own bookkeeping.
SETTABLE = frozenset(
    "title channel origin delivery_context group_id group_activation model_override provider_override thinking_level "
    "auth_profile_override exec_host exec_security exec_node response_usage tts_auto queue_mode queue_debounce_ms "
    "queue_cap queue_drop skills_snapshot system_prompt_report".split()
)
# Kept behind the messages, where an append can rewrite it without moving anything.
RUNNING = ("updated_at", "message_count", "input_tokens", "output_tokens", "memory_flush_at")
_NOT_IN_FILES = {"extra", "damage", "session_file"}


def camel(name: str) -> str:
    """Return the name as the files have it."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_ENTRY_FIELDS = {camel(each.name): each.name for each in fields(SessionEntry) if each.name not in _NOT_IN_FILES}
_ENTRY_FILE_ONLY = {"version", "messages", "compactedHistory", "sessionFile", "messagesEnd"}


def entry_of(values: Json, *, kind: SessionKind, session_id: str, session_file: str) -> SessionEntry:
    """Return the entry that a session's file or the registry holds; where the file lies says its id and kind."""
    known = {own: values[name] for name, own in _ENTRY_FIELDS.items() if values.get(name) is not None}
    for name in ("created_at", "updated_at", "archived_at", "memory_flush_at"):
        if name in known:
            known[name] = milliseconds(known[name])
    for name in ("message_count", "input_tokens", "output_tokens", "compaction_count"):
        known[name] = known[name] if isinstance(known.get(name), int) else 0
    extra = {key: value for key, value in values.items() if key not in _ENTRY_FIELDS and key not in _ENTRY_FILE_ONLY}
    return SessionEntry(
        **{**known, "kind": kind, "session_id": session_id, "session_file": session_file, "extra": extra}
    )


def entry_values(entry: SessionEntry) -> dict[str, Any]:
    """Return what the head of a session's file holds of the entry; running state and empty fields are left out."""
    values = {
        name: getattr(entry, own)
        for name, own in _ENTRY_FIELDS.items()
        if own not in RUNNING and getattr(entry, own) not in (None, "", 0)
    }
    return {**values, **entry.extra}


def checked_fields(values: Json) -> dict[str, Any]:
    """Return the fields of an entry that a caller wants to set, or raise SessionInputError for the first wrong one."""
    for name, value in values.items():
        if name not in SETTABLE:
            raise SessionInputError(
                f"{name!r} is not a field of a session", hint=f"use one of {', '.join(sorted(SETTABLE))}"
            )
        if value is None:
            continue
        choices = CHOICES.get(name)
        if choices and value not in choices:
            raise SessionInputError(f"{name} = {value!r}", hint=f"use one of {', '.join(choices)}")
        expected: type = int if name in NUMBERS else Mapping if name in TABLES else str
        if not isinstance(value, expected) or isinstance(value, bool):
            kind = "a number" if expected is int else "a table" if expected is Mapping else "text"
            raise SessionInputError(f"{name} = {value!r}", hint=f"{name} is {kind}")
    return dict(values)


# --- messages and JSON -------------------------------------------------------------------------

_MESSAGE_KEYS = {
    "role", "content", "timestamp", "id", "usage", "thinkingBlocks", "toolCalls", "toolCallId", "name",
}  # fmt: skip


def message_of(values: object) -> Message:
    """Return the message that JSON describes; raises SessionInputError when it is none."""
    if not isinstance(values, Mapping) or not isinstance(values.get("role"), str) or not values["role"].strip():
        raise SessionInputError("a message needs a role", hint='for example {"role": "user", "content": "Hello"}')
    content = values.get("content")
    if isinstance(content, (list, tuple)):
        content = tuple(
            block if isinstance(block, Mapping) else {"type": "text", "text": str(block)} for block in content
        )
    elif content is None:
        content = ""
    elif not isinstance(content, str):
        raise SessionInputError("the content of a message is text or a list of blocks", hint="convert it to text")
    return Message(
        role=values["role"],
        content=content,
        timestamp=milliseconds(values.get("timestamp")),
        id=_text(values.get("id")) or "",
        usage=usage if isinstance(usage := values.get("usage"), Mapping) else None,
        thinking_blocks=tuple(b for b in _list(values.get("thinkingBlocks")) if isinstance(b, Mapping)),
        tool_calls=tuple(_tool_call(call) for call in _list(values.get("toolCalls")) if isinstance(call, Mapping)),
        tool_call_id=_text(values.get("toolCallId")),
        name=_text(values.get("name")),
        extra={key: value for key, value in values.items() if key not in _MESSAGE_KEYS},
    )


def message_values(message: Message) -> dict[str, Any]:
    """Return the message as it is written; empty fields are left out."""
    values: dict[str, Any] = {"id": message.id, "role": message.role}
    values["content"] = message.content if isinstance(message.content, str) else list(message.content)
    values["timestamp"] = message.timestamp
    values["name"] = message.name
    values["toolCallId"] = message.tool_call_id
    values["usage"] = message.usage
    values["thinkingBlocks"] = list(message.thinking_blocks)
    values["toolCalls"] = [
        {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
    ]
    optional = {"id", "timestamp", "name", "toolCallId", "usage", "thinkingBlocks", "toolCalls"}
    return {key: value for key, value in values.items() if value or key not in optional} | dict(message.extra)


def numbered(message: Message) -> Message:
    """Return the message with an id and a time, if it had none."""
    if message.id and message.timestamp:
        return message
    return Message(
        message.role, message.content, message.timestamp or now_ms(), message.id or secrets.token_hex(6), message.usage,
        message.thinking_blocks, message.tool_calls, message.tool_call_id, message.name, message.extra,
    )  # fmt: skip


def summary_of(values: object) -> Summary | None:
    """Return the summary that JSON describes, or None when it is none."""
    if not isinstance(values, Mapping):
        return None
    count = values.get("originalMessageCount")
    known = {"role", "content", "compactedAt", "originalMessageCount"}
    return Summary(
        content=str(values.get("content") or ""),
        compacted_at=milliseconds(values.get("compactedAt")),
        original_message_count=count if isinstance(count, int) else 0,
        role=str(values.get("role") or "system"),
        extra={key: value for key, value in values.items() if key not in known},
    )


def summary_values(summary: Summary) -> dict[str, Any]:
    """Return the summary as it is written."""
    return {
        "role": summary.role,
        "content": summary.content,
        "compactedAt": summary.compacted_at,
        "originalMessageCount": summary.original_message_count,
        **summary.extra,
    }


# --- small things ------------------------------------------------------------------------------


def now_ms() -> int:
    """Return the time now, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def milliseconds(value: object) -> int:
    """Return a time as milliseconds since 1970: of milliseconds, seconds (version 1) or an ISO date; else 0."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, (int, float)) and value == value and abs(value) < 1e15:  # noqa: PLR0124  (not NaN)
        seconds_until = 100_000_000_000  # as seconds the year 5138, as milliseconds 1973: no chat is of either
        return int(value * 1000) if 0 < value < seconds_until else int(value)
    if isinstance(value, str):
        try:
            return int(datetime.fromisoformat(value).timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            return 0
    return 0


def tokens_of(message: Message) -> tuple[int, int]:
    """Return how many tokens went in and came out, as the message's usage says."""
    usage = message.usage or {}

    def first(*names: str) -> int:
        return next((value for name in names if isinstance(value := usage.get(name), int) and value > 0), 0)

    return first("inputTokens", "input", "input_tokens"), first("outputTokens", "output", "output_tokens")


def _tool_call(values: Json) -> ToolCall:
    return ToolCall(str(values.get("id") or ""), str(values.get("name") or ""), values.get("arguments"))


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _text(value: object) -> str | None:
    return str(value) if value not in (None, "") else None
