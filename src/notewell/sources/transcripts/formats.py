"""Parses the records of transcripts: those of OpenClaw, Claude Code and Codex, and bare messages.

The program shows in each record, not in the file: programs put records of other kinds first, and change over time.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any, NamedTuple

from notewell.errors import SessionInputError
from notewell.sources.transcripts.messages import (
    SPEAKERS,
    Json,
    LeftOut,
    Message,
    ToolCall,
    message_from_json,
    milliseconds,
    spoken,
    text_of,
    tokens_of,
)


class Parsed(NamedTuple):
    """What a record holds: messages, facts about the session, a summary, or the reason why it was left out."""

    messages: tuple[Message, ...] = ()
    head: Json = MappingProxyType({})
    summary: Json | None = None
    left_out: str = ""
    usage_id: str = ""  # of the answer that the token counts belong to
    by_program: bool = False  # the record looks like a message, but nobody said it


class NotARecord(ValueError):  # noqa: N818 - a finding about a line, told in the report
    """The line is not a JSON object."""


def record_in(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line. Raises NotARecord when it holds none."""
    try:
        try:
            record = json.loads(line.decode("utf-8", "surrogatepass"))  # faster than to let json detect the encoding
        except UnicodeDecodeError:
            record = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:  # nested thousands deep, a number with thousands of digits, not JSON
        raise NotARecord from error
    if not isinstance(record, dict):
        raise NotARecord
    return record


def parse_record(record: Json) -> Parsed:
    """Return what a record, parsed from JSON, holds, whichever program wrote it."""
    kind, inner, payload = record.get("type"), record.get("message"), record.get("payload")
    try:
        if isinstance(inner, dict) and kind in ("user", "assistant"):
            return _claude_code(record, inner)
        if isinstance(inner, dict) and kind == "message":
            return Parsed(_openclaw(record, inner))
        if isinstance(payload, dict):
            return _codex(record, payload)
        if isinstance(record.get("role"), str) and kind != "compaction":
            return Parsed((message_from_json(record),))
    except SessionInputError:
        return Parsed(left_out="not a message")
    return _about_session(record)


def spoken_in(record: Json) -> Message | LeftOut:
    """Return what a person or the assistant says in a record, or why it is not part of the memory."""
    inner = record.get("message")
    if isinstance(inner, dict):  # most records of a coding agent are about tools
        content = inner.get("content")
        if inner.get("role") == "toolResult" or (isinstance(content, list) and not text_of(content)):
            return LeftOut.TOOL
    parsed = parse_record(record)
    if parsed.by_program:
        return LeftOut.MACHINE
    if not parsed.messages:
        return {"sidechain": LeftOut.SIDE_TALK, "meta": LeftOut.MACHINE}.get(parsed.left_out, LeftOut.NO_MESSAGE)
    said = parsed.messages[0]
    if len(parsed.messages) > 1:
        said = next((message for message in parsed.messages if message.role in SPEAKERS), said)
    return spoken(said)


def _about_session(record: Json) -> Parsed:
    match record.get("type"):
        case "session":
            return Parsed(head=record)
        case "compaction":
            return Parsed(summary={**record, "content": record.get("content") or record.get("summary")})
        case str() as kind:
            return Parsed(left_out=f"type {kind}")
    return Parsed(left_out="not a message")


# --- one parser a format ------------------------------------------------------------------------

# Marks of records that retell or comment on what the transcript holds already.
_CLAUDE_CODE_ASIDES = ("isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")


def _claude_code(record: Json, inner: Json) -> Parsed:
    """Parse a line of `~/.claude/projects/*/*.jsonl`."""
    if record.get("isSidechain"):
        return Parsed(left_out="sidechain")
    if record.get("isMeta"):
        return Parsed(left_out="meta")
    role = str(record["type"])
    return Parsed(
        _of_blocks(inner, role, milliseconds(record.get("timestamp")), str(record.get("uuid") or "")),
        head={"id": record.get("sessionId"), "timestamp": record.get("timestamp")},
        usage_id=str(inner.get("id") or "") if role == "assistant" else "",
        by_program=any(record.get(mark) for mark in _CLAUDE_CODE_ASIDES),
    )


def _codex(record: Json, payload: Json) -> Parsed:
    """Parse a line of `~/.codex/sessions/**/rollout-*.jsonl`.

    `event_msg` records tell the same messages a second time, for the screen. Before September 2025 a payload stood
    alone, which makes it a bare message.
    """
    kind = record.get("type")
    if kind == "session_meta":
        return Parsed(head={"id": payload.get("id"), "timestamp": payload.get("timestamp") or record.get("timestamp")})
    if kind != "response_item":
        return Parsed(left_out=f"type {kind}")
    message = _codex_item(payload, milliseconds(record.get("timestamp")))
    return Parsed((message,)) if message else Parsed(left_out=f"type {payload.get('type')}")


def _codex_item(payload: Json, time: int) -> Message | None:
    call_id = str(payload.get("call_id") or "")
    match payload.get("type"):
        case "message":
            return Message(str(payload.get("role") or "user"), text_of(payload.get("content")), time)
        case "reasoning":
            thoughts = tuple(
                {"type": "thought", "content": block["text"]}
                for block in _blocks(payload.get("summary"))
                if isinstance(block.get("text"), str)
            )
            return Message("assistant", "", time, thinking_blocks=thoughts) if thoughts else None
        case "function_call" | "custom_tool_call":
            call = ToolCall(call_id, str(payload.get("name") or ""), _arguments(payload))
            return Message("assistant", "", time, tool_calls=(call,))
        case "function_call_output" | "custom_tool_call_output":
            return Message("tool", _any_text(payload.get("output")), time, tool_call_id=call_id)
    return None


_OPENCLAW_BLOCKS = ("thinking", "toolCall", "tool_use", "tool_result")


def _openclaw(record: Json, inner: Json) -> tuple[Message, ...]:
    """Parse a message of OpenClaw's transcripts, which our own exports are written as."""
    stated = inner.get("timestamp") if milliseconds(inner.get("timestamp")) else record.get("timestamp")
    own_id = str(record.get("id") or "")
    content = inner.get("content")
    if inner.get("role") == "toolResult":
        name = str(inner.get("toolName") or inner.get("name") or "") or None
        call_id = str(inner.get("toolCallId") or "") or None
        text = _any_text(content)
        return (Message("tool", text, milliseconds(stated), own_id, tool_call_id=call_id, name=name),)
    if not isinstance(content, str) and any(block.get("type") in _OPENCLAW_BLOCKS for block in _blocks(content)):
        return _of_blocks(inner, str(inner.get("role") or "assistant"), milliseconds(stated), own_id)
    return (message_from_json({**inner, "id": inner.get("id") or own_id, "timestamp": stated}),)


def _of_blocks(inner: Json, role: str, time: int, message_id: str) -> tuple[Message, ...]:
    """Return the message that blocks make, after one for each tool's answer among them."""
    content = inner.get("content")
    if isinstance(content, str):
        return (Message(role, content, time, message_id, _usage(inner)),)
    texts: list[str] = []
    calls: list[ToolCall] = []
    thoughts: list[Json] = []
    answers: list[Message] = []
    for block in _blocks(content):
        match block.get("type"):
            case "tool_result":
                call_id = str(block.get("tool_use_id") or "") or None
                answers.append(Message("tool", _any_text(block.get("content")), time, tool_call_id=call_id))
            case "tool_use" | "toolCall":
                arguments = block.get("input", block.get("arguments"))
                calls.append(ToolCall(str(block.get("id") or ""), str(block.get("name") or ""), arguments))
            case "thinking":
                thoughts.append({"type": "thought", "content": str(block.get("thinking") or "")})
            case _:
                texts += [text] if (text := text_of([block])) else []
    text = "\n".join(texts)
    if not (text or calls or thoughts):
        return tuple(answers)
    return (*answers, Message(role, text, time, message_id, _usage(inner), tuple(thoughts), tuple(calls)))


def _usage(inner: Json) -> Json | None:
    usage = inner.get("usage")
    tokens = tokens_of(usage) if isinstance(usage, dict) else (0, 0)
    return {"inputTokens": tokens[0], "outputTokens": tokens[1]} if any(tokens) else None


def _any_text(content: object) -> str:
    """Return what a tool printed: a string, the text of blocks of any kind, or the JSON of anything else."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, ensure_ascii=False)
    return "\n".join(block["text"] for block in _blocks(content) if isinstance(block.get("text"), str))


def _arguments(payload: Json) -> object:
    value = payload.get("arguments", payload.get("input"))
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _blocks(content: object) -> list[Json]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
