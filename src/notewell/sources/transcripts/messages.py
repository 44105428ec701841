"""The message of a conversation: its fields, its JSON, and the text of it that becomes memory."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

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
    timestamp: int = 0  # milliseconds since 1970; 0: the store sets the time of the append
    id: str = ""  # empty: the store gives it one
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
    # A dict is asked for first here: that of an abstract class alone takes longer, and transcripts have many messages.
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
    """Return the message as session files hold it; empty fields are left out, but for role and content."""
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

_SECONDS_UNTIL = 100_000_000_000  # as seconds the year 5138, as milliseconds 1973: no chat is of either


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
    """Why a record of a transcript is not part of the memory."""

    NO_MESSAGE = "no message"  # settings, snapshots, summaries, events told elsewhere
    OTHER_ROLE = "neither user nor assistant"
    TOOL = "tool call or result"
    SIDE_TALK = "between agents"
    MACHINE = "written by the program"
    HEARTBEAT = "heartbeat"
    RECALLED = "recalled memory"
    EMPTY = "empty"


# What programs put into messages between tags of their own; people do not write these by hand.
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
)  # one that does not end is cut off, and what follows is still the program's
# OpenClaw puts facts about the sender above a message from a chat.
_METADATA = re.compile(r"^[^\n]*\(untrusted[^\n()]*\):\s*```json\n.*?```\s*", re.DOTALL | re.MULTILINE)
_WHOLE_MACHINE = re.compile(
    r"\[Request interrupted by user[^\]]*\]|No response requested\.|# AGENTS\.md instructions for .*"
    r"|Caveat: The messages below were generated by the user while running local commands\..*",
    re.DOTALL,
)
# What an assistant says to say nothing, perhaps emphasised; and the prompts that ask for it.
_SILENT_REPLY = re.compile(r"[*_`\s]*(?:HEARTBEAT_OK|NO_REPLY|REPLY_SKIP|ANNOUNCE_SKIP)[*_`\s.!]*")
_HEARTBEAT_PROMPT = re.compile(r"\s*Read HEARTBEAT\.md\b|.*\breply (?:with )?(?:exactly )?HEARTBEAT_OK\b", re.DOTALL)


def spoken(message: Message) -> Message | LeftOut:
    """Return the message without what programs and recalled memory put into it, or why nothing is left of it."""
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
