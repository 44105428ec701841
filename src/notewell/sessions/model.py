"""The values of the session store: sessions, their entries and summaries, and updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from notewell.errors import SessionInputError
from notewell.sources.transcripts.messages import Json, Message, milliseconds

SessionKind = Literal["direct", "group"]


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """What is known about a session besides its messages; in camel case in files."""

    session_id: str
    kind: SessionKind
    session_file: str = ""  # below the store's folder, "/" on every platform: chats/<id>.json5
    created_at: int = 0  # milliseconds since 1970, as all times here
    updated_at: int = 0
    archived_at: int | None = None
    title: str | None = None
    # routing
    channel: str | None = None
    origin: Json | None = None
    delivery_context: Json | None = None
    group_id: str | None = None
    group_activation: str | None = None
    # overrides of the agent's settings
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
    compacted_files: tuple[str, ...] = ()  # archives of compacted messages, oldest first: names in `compacted/`
    memory_flush_at: int | None = None
    damage: str = ""  # why the file cannot be read; empty when it can
    extra: Json = field(default_factory=dict)  # fields of other programs


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary that replaced compacted messages."""

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
    summaries: tuple[Summary, ...] = ()  # oldest first; of what came before the messages


@dataclass(frozen=True, slots=True)
class SessionUpdate:
    """Messages that were appended and are on disk: the file and their place in it, one message a line."""

    session_id: str
    kind: SessionKind
    path: Path
    first_byte: int
    end_byte: int  # exclusive; the bytes after it change with every append
    messages: tuple[Message, ...]
    notes: tuple[str, ...] = ()  # what the caller should know, such as a corrupt file that was set aside


# --- entries and JSON ---------------------------------------------------------------------------

# Fields that a caller may set, with their types or values. The rest is the store's own bookkeeping.
SETTABLE: dict[str, type | tuple[str, ...]] = {
    "title": str,
    "channel": str,
    "origin": Mapping,
    "delivery_context": Mapping,
    "group_id": str,
    "group_activation": ("mention", "always"),
    "model_override": str,
    "provider_override": str,
    "thinking_level": ("off", "minimal", "low", "medium", "high"),
    "auth_profile_override": str,
    "exec_host": ("workspace", "docker", "node"),
    "exec_security": ("allow", "ask", "deny"),
    "exec_node": str,
    "response_usage": ("on", "off", "tokens", "full"),
    "tts_auto": ("on", "off", "dm-only"),
    "queue_mode": ("steer", "followup", "collect", "interrupt"),
    "queue_debounce_ms": int,
    "queue_cap": int,
    "queue_drop": ("old", "new", "summarize"),
    "skills_snapshot": Mapping,
    "system_prompt_report": Mapping,
}
_TYPE_NAMES = {str: "text", int: "a number", Mapping: "a table"}
# Kept after the messages, where an append can rewrite them in place.
RUNNING = ("updated_at", "message_count", "input_tokens", "output_tokens", "memory_flush_at")
COUNTED = frozenset({"messageCount", "inputTokens", "outputTokens"})  # derived from the messages


def camel(name: str) -> str:
    """Return the name in camel case, as in files."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_IN_FILES = {
    camel(each.name): each.name for each in fields(SessionEntry) if each.name not in {"extra", "damage", "session_file"}
}
_FILE_ONLY = {"version", "messages", "compactedHistory", "sessionFile", "messagesEnd"}


def entry_from_json(values: Json, *, kind: SessionKind, session_id: str, session_file: str) -> SessionEntry:
    """Return the entry in a session's file or the registry; id and kind come from the path."""
    known = {own: values[name] for name, own in _IN_FILES.items() if values.get(name) is not None}
    for name in ("created_at", "updated_at", "archived_at", "memory_flush_at"):
        if name in known:
            known[name] = milliseconds(known[name])
    for name in ("message_count", "input_tokens", "output_tokens", "compaction_count"):
        known[name] = known[name] if isinstance(known.get(name), int) else 0
    archives = known.get("compacted_files")
    known["compacted_files"] = tuple(map(str, archives)) if isinstance(archives, list | tuple) else ()
    extra = {key: value for key, value in values.items() if key not in _IN_FILES and key not in _FILE_ONLY}
    return SessionEntry(
        **{**known, "kind": kind, "session_id": session_id, "session_file": session_file, "extra": extra}
    )


def entry_to_json(entry: SessionEntry) -> dict[str, Any]:
    """Return the entry as the head of a session's file, without running state and empty fields."""
    values = {
        name: getattr(entry, own)
        for name, own in _IN_FILES.items()
        if own not in RUNNING and getattr(entry, own) not in (None, "", 0, ())
    }
    return {**values, **entry.extra}


def checked_fields(values: Json) -> dict[str, Any]:
    """Return the fields if a caller may set them to these values; raises SessionInputError."""
    for name, value in values.items():
        if name not in SETTABLE:
            raise SessionInputError(
                f"{name!r} is not a field of a session", hint=f"use one of {', '.join(sorted(SETTABLE))}"
            )
        allowed = SETTABLE[name]
        if value is None:
            continue
        if isinstance(allowed, tuple):
            if value not in allowed:
                raise SessionInputError(f"{name} = {value!r}", hint=f"use one of {', '.join(allowed)}")
        elif not isinstance(value, allowed) or isinstance(value, bool):
            raise SessionInputError(f"{name} = {value!r}", hint=f"{name} is {_TYPE_NAMES[allowed]}")
    return dict(values)


def checked_kind(kind: object) -> SessionKind:
    """Return the kind, or raise SessionInputError."""
    known: tuple[SessionKind, ...] = get_args(SessionKind)
    for each in known:
        if kind == each:
            return each
    raise SessionInputError(f"{kind!r} is not a kind of session", hint=f"use {' or '.join(known)}")


# --- summaries and JSON -------------------------------------------------------------------------


def summaries_in(values: Json) -> list[Summary]:
    """Return the summaries in a session's file, oldest first."""
    history = values.get("compactedHistory")
    found = map(summary_from_json, history) if isinstance(history, list) else ()
    return [summary for summary in found if summary]


def summary_from_json(values: object) -> Summary | None:
    """Return the summary that JSON describes, or None when it describes none."""
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


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """Return the summary as it is stored in session files."""
    return {
        "role": summary.role,
        "content": summary.content,
        "compactedAt": summary.compacted_at,
        "originalMessageCount": summary.original_message_count,
        **summary.extra,
    }
