"""Parses the messages of conversations, and decides what of them becomes memory.

Records are those of OpenClaw, Claude Code and Codex, and bare messages. Each record is recognized by itself, since
formats change over time and within a file.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from notewell.errors import SessionInputError
from notewell.text.fences import strip_fenced

Json = Mapping[str, Any]

TEXT_BLOCKS = ("text", "input_text", "output_text")
SPEAKERS = {"user": "User", "assistant": "Assistant"}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the assistant called."""

    id: str
    name: str
    arguments: Any = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `content` is text, or blocks such as `{"type": "text", "text": ...}`."""

    role: str  # user, assistant, system, tool
    content: str | tuple[Json, ...] = ""
    timestamp: int = 0  # milliseconds since 1970; 0: set by the append
    id: str = ""  # empty: set by the append
    usage: Json | None = None  # inputTokens, outputTokens
    thinking_blocks: tuple[Json, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None  # of a tool's answer
    name: str | None = None
    extra: Json = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The content if it is text, else its text blocks."""
        return text_of(self.content)

    @property
    def line(self) -> str:
        """The message as one line: the speaker, then the text with white space collapsed."""
        return f"{SPEAKERS.get(self.role, self.role)}: {' '.join(self.text.split())}"


def text_of(content: object) -> str:
    """Return the text of a message's content: a string, or the text blocks of a list."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    return "\n".join(
        block["text"]
        for block in content
        if isinstance(block, dict) and block.get("type") in TEXT_BLOCKS and isinstance(block.get("text"), str)
    )


# --- JSON --------------------------------------------------------------------------------------

_KEYS = {"role", "content", "timestamp", "id", "usage", "thinkingBlocks", "toolCalls", "toolCallId", "name"}


def message_from_json(values: object) -> Message:
    """Return the message that JSON describes; raises SessionInputError when it describes none."""
    # `dict` first: a check for an abstract class takes longer, and transcripts have many messages.
    if not isinstance(values, dict | Mapping) or not isinstance(values.get("role"), str) or not values["role"].strip():
        raise SessionInputError("a message needs a role", hint='for example {"role": "user", "content": "Hello"}')
    content = values.get("content")
    if isinstance(content, list | tuple):
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
        id=_optional_text(values.get("id")) or "",
        usage=usage if isinstance(usage := values.get("usage"), dict | Mapping) else None,
        thinking_blocks=_mappings(values.get("thinkingBlocks")),
        tool_calls=_tool_calls(values["toolCalls"]) if "toolCalls" in values else (),
        tool_call_id=_optional_text(values.get("toolCallId")),
        name=_optional_text(values.get("name")),
        extra={key: value for key, value in values.items() if key not in _KEYS},
    )


def message_to_json(message: Message) -> dict[str, Any]:
    """Return the message as JSON, without empty fields other than role and content."""
    values = {
        "id": message.id,
        "role": message.role,
        "content": message.content if isinstance(message.content, str) else list(message.content),
        "timestamp": message.timestamp,
        "name": message.name,
        "toolCallId": message.tool_call_id,
        "usage": message.usage,
        "thinkingBlocks": list(message.thinking_blocks),
        "toolCalls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls],
    }
    return {key: value for key, value in values.items() if value or key in {"role", "content"}} | dict(message.extra)


def tokens_of(usage: Json) -> tuple[int, int]:
    """Return how many tokens went in and came out, according to the usage of a message."""

    def first(*names: str) -> int:
        return next((value for name in names if isinstance(value := usage.get(name), int) and value > 0), 0)

    return first("inputTokens", "input", "input_tokens"), first("outputTokens", "output", "output_tokens")


def _tool_calls(value: object) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(str(call.get("id") or ""), str(call.get("name") or ""), call.get("arguments"))
        for call in _mappings(value)
    )


def _mappings(value: object) -> tuple[Json, ...]:
    return tuple(each for each in value if isinstance(each, Mapping)) if isinstance(value, list | tuple) else ()


def _optional_text(value: object) -> str | None:
    return str(value) if value not in (None, "") else None


# --- times -------------------------------------------------------------------------------------

_SECONDS_UNTIL = 100_000_000_000  # the year 5138 in seconds, 1973 in milliseconds


def now_ms() -> int:
    """Return the time now, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def milliseconds(value: object) -> int:
    """Return a time as milliseconds since 1970, given as such, as seconds or as ISO text (UTC by default); else 0."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
            return int(value * 1000) if 0 < value < _SECONDS_UNTIL else int(value)
    except (ValueError, OverflowError, OSError):
        return 0
    return 0


# --- what becomes memory -------------------------------------------------------------------------


class LeftOut(StrEnum):
    """Why a record of a transcript is not indexed."""

    NO_MESSAGE = "no message"  # settings, snapshots, summaries, duplicate events
    OTHER_ROLE = "neither user nor assistant"
    TOOL = "tool call or result"
    SIDE_TALK = "between agents"
    MACHINE = "written by the program"
    HEARTBEAT = "heartbeat"
    RECALLED = "recalled memory"
    EMPTY = "empty"


# Tags of text that programs put into messages; people do not write them by hand.
_MACHINE_TAGS = (
    "system-reminder",
    "command-name",
    "command-message",
    "command-args",
    "command-contents",
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
    "task-notification",
    "environment_context",
    "user_instructions",
    "permissions instructions",
    "turn_aborted",
    "relevant-memories",
)
_TAGGED = re.compile(
    rf"<({'|'.join(_MACHINE_TAGS)})(?:\s[^<>]*)?>.*?(?:</\1>|\Z)", re.DOTALL
)  # if it is not closed, the rest is the program's, too
# OpenClaw's description of the sender above a chat message.
_METADATA = re.compile(r"^[^\n]*\(untrusted[^\n()]*\):\s*```json\n.*?```\s*", re.DOTALL | re.MULTILINE)
_WHOLE_MACHINE = re.compile(
    r"\[Request interrupted by user[^\]]*\]|No response requested\.|# AGENTS\.md instructions for .*"
    r"|Caveat: The messages below were generated by the user while running local commands\..*",
    re.DOTALL,
)
# Replies that mean "nothing to say", perhaps emphasised, and the prompts that ask for them.
_SILENT_REPLY = re.compile(r"[*_`\s]*(?:HEARTBEAT_OK|NO_REPLY|REPLY_SKIP|ANNOUNCE_SKIP)[*_`\s.!]*")
_HEARTBEAT_PROMPT = re.compile(r"\s*Read HEARTBEAT\.md\b|.*\breply (?:with )?(?:exactly )?HEARTBEAT_OK\b", re.DOTALL)


def spoken(message: Message) -> Message | LeftOut:
    """Return the message without text of programs and recalled memory, or why nothing is left."""
    if message.role not in SPEAKERS:
        return LeftOut.TOOL if message.role == "tool" else LeftOut.OTHER_ROLE
    said = _encodable(message.text)
    if not said.strip():
        return LeftOut.TOOL if message.tool_calls else LeftOut.EMPTY
    own = strip_fenced(said)
    if not own.strip():
        return LeftOut.RECALLED
    if "<" in own:
        own = _TAGGED.sub("", own)
    if "(untrusted" in own:
        own = _METADATA.sub("", own)
    own = own.strip()
    if not own or _WHOLE_MACHINE.fullmatch(own):
        return LeftOut.MACHINE
    silent = _SILENT_REPLY.fullmatch(own) if message.role == "assistant" else _HEARTBEAT_PROMPT.match(own)
    if silent:
        return LeftOut.HEARTBEAT
    return message if own == message.content else Message(message.role, own, message.timestamp)


def _encodable(text: str) -> str:
    """Return the text without NUL and with U+FFFD for lone surrogates, which JSON can hold and UTF-8 cannot."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "")


# --- the records of programs ---------------------------------------------------------------------


class Parsed(NamedTuple):
    """The content of a record: messages, facts about the session, a summary, or why it was left out."""

    messages: tuple[Message, ...] = ()
    head: Json = MappingProxyType({})
    summary: Json | None = None
    left_out: str = ""
    usage_id: str = ""  # id of the answer that the token counts belong to
    by_program: bool = False  # looks like a message, but is the program's


class NotARecord(ValueError):  # noqa: N818 - reported, not raised to users
    """The line is not a JSON object."""


def record_in(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line. Raises NotARecord when it holds none."""
    try:
        try:
            record = json.loads(line.decode("utf-8", "surrogatepass"))  # faster than detecting the encoding
        except UnicodeDecodeError:
            record = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:  # nested thousands deep, a number with thousands of digits, not JSON
        raise NotARecord from error
    if not isinstance(record, dict):
        raise NotARecord
    return record


def parse_record(record: Json) -> Parsed:
    """Return the content of a record, whichever program wrote it."""
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
    """Return what a person or the assistant says in a record, or why it is not indexed."""
    inner = record.get("message")
    if isinstance(inner, dict):  # a shortcut: most records of a coding agent are about tools
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


# Marks of records that repeat or comment on others.
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

    `event_msg` records repeat the same messages for the screen. Before September 2025 there was only the payload, which
    is parsed as a bare message.
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
    """Parse a message of OpenClaw's transcripts, and of our own exports."""
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
    """Return the message in the blocks, preceded by one for each tool result."""
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
    """Return the output of a tool: a string, the text of blocks, or the JSON of anything else."""
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
