"""The values of the session store: a session's entry, its messages and summaries, and news of an append."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from notewell.sessions.ids import SessionKind

FORMAT_VERSION = 3  # 1: no version; 2: as OpenClaw describes it; 3: the messages come last, so that appending is cheap
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """What is known of a session beside its messages."""

    session_id: str
    kind: SessionKind
    session_file: str = ""  # below the store's folder, "/" on every platform: chats/<id>.json5
    created_at: int = 0  # milliseconds since 1970, as all times here
    updated_at: int = 0
    archived_at: int | None = None
    title: str | None = None
    # where messages come from and go to
    channel: str | None = None
    origin: Json | None = None
    delivery_context: Json | None = None
    group_id: str | None = None
    group_activation: str | None = None
    # what this session does otherwise than the agent
    model_override: str | None = None
    provider_override: str | None = None
    thinking_level: str | None = None
    auth_profile_override: str | None = None
    exec_host: str | None = None
    exec_security: str | None = None
    exec_node: str | None = None
    response_usage: str | None = None
    tts_auto: str | None = None
    queue_mode: str | None = None
    queue_debounce_ms: int | None = None
    queue_cap: int | None = None
    queue_drop: str | None = None
    skills_snapshot: Json | None = None
    system_prompt_report: Json | None = None
    # running state
    message_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    compaction_count: int = 0
    memory_flush_at: int | None = None
    damage: str = ""  # why the file cannot be read; empty when it can
    extra: Json = field(default_factory=dict)


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
    timestamp: int = 0  # 0: when it was appended
    id: str = ""  # empty: the store gives it one
    usage: Json | None = None  # inputTokens, outputTokens
    thinking_blocks: tuple[Json, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None  # of a tool's answer
    name: str | None = None
    extra: Json = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What was said: the content if it is text, else its text blocks."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(str(block.get("text", "")) for block in self.content if block.get("type") == "text")


@dataclass(frozen=True, slots=True)
class Summary:
    """What took the place of messages that were compacted."""

    content: str
    compacted_at: int
    original_message_count: int
    role: str = "system"
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """A whole conversation."""

    entry: SessionEntry
    messages: tuple[Message, ...]
    summaries: tuple[Summary, ...] = ()  # oldest first; they stand for what came before the messages


@dataclass(frozen=True, slots=True)
class SessionUpdate:
    """Messages that are safely on disk: in which file, and where in it. Each stands on a line of its own."""

    session_id: str
    kind: SessionKind
    path: Path
    first_byte: int
    end_byte: int  # exclusive; bytes behind it are the store's own and change with the next append
    messages: tuple[Message, ...]
    notes: tuple[str, ...] = ()  # what the caller should know, such as a damaged file that was set aside
