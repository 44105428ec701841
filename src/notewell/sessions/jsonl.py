"""Conversations as JSONL: a session in, lines out; a transcript's lines in, a session and what was left out, out.

Written as OpenClaw writes transcripts. Read besides: those of Claude Code and Codex, with their tool calls, thoughts
and token counts; which one it is shows in each line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from notewell.errors import SessionInputError
from notewell.sessions.foreign import FOREIGN, Taken
from notewell.sessions.ids import SessionKind, checked_id, new_id
from notewell.sessions.json5 import write_json
from notewell.sessions.model import FORMAT_VERSION, Message, Session, Summary
from notewell.sessions.values import (
    entry_of,
    entry_values,
    message_of,
    message_values,
    milliseconds,
    numbered,
    summary_of,
    summary_values,
)

LONGEST_LINE = 64 * 2**20  # characters; a line beyond it is a picture or a mistake, and is left out


@dataclass(frozen=True, slots=True)
class Imported:
    """A conversation read from a transcript, and what of it was left out, by reason."""

    session: Session
    left_out: Mapping[str, int] = field(default_factory=dict)


def export_lines(session: Session) -> Iterator[str]:
    """Yield the conversation as lines of JSON, the session's own line first."""
    head = {"type": "session", "version": FORMAT_VERSION, "id": session.entry.session_id}
    yield write_json(head | {"timestamp": _iso(session.entry.created_at)} | {"entry": entry_values(session.entry)})
    for summary in session.summaries:
        yield write_json({"type": "compaction", "timestamp": _iso(summary.compacted_at)} | summary_values(summary))
    for message in session.messages:
        line = {"type": "message", "id": message.id, "timestamp": _iso(message.timestamp)}
        yield write_json(line | {"message": message_values(message)})


def import_lines(
    lines: Iterable[str], *, session_id: str = "", fallback_id: str = "", kind: SessionKind | None = None
) -> Imported:
    """Return the conversation of a transcript. Raises SessionInputError when it holds no message at all.

    Its id is `session_id`, else the one that the transcript says, else `fallback_id`, else a new one.
    """
    reader = _Reader()
    for line in lines:
        reader.take(line)
    if not reader.messages and not reader.summaries:
        raise SessionInputError(
            "there is no message in it that could be imported",
            hint="import a JSONL transcript of OpenClaw, Claude Code or Codex, or one from `notewell sessions export`",
        )
    name = session_id or reader.said_id() or fallback_id or new_id()
    return Imported(reader.session(checked_id(name), kind), dict(reader.left_out))


class _Reader:
    """Collects a transcript line by line."""

    def __init__(self) -> None:
        self.head: Mapping[str, Any] = {}
        self.messages: list[Message] = []
        self.summaries: list[Summary] = []
        self.left_out: Counter[str] = Counter()
        self.usage_seen: set[str] = set()

    def take(self, line: str) -> None:
        if not line.strip():
            return
        if len(line) > LONGEST_LINE:
            self.left_out["too long"] += 1
            return
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            self.left_out["not JSON"] += 1
            return
        if not isinstance(record, Mapping):
            self.left_out["not a record"] += 1
            return
        try:
            self._take_record(record)
        except SessionInputError:
            self.left_out["not a message"] += 1

    def _take_record(self, record: Mapping[str, Any]) -> None:
        kind = record.get("type")
        inner = record.get("message")
        if kind == "session":
            self.head = record
        elif kind == "compaction":
            self._summary({**record, "content": record.get("content") or record.get("summary")}, record)
        elif taken := next((taken for read in FOREIGN if (taken := read(record))), None):
            self._take_foreign(taken)
        elif kind == "message" and isinstance(inner, Mapping):
            message = message_of(inner)
            own_id, own_time = str(record.get("id") or ""), milliseconds(record.get("timestamp"))
            self.messages.append(replace(message, id=message.id or own_id, timestamp=message.timestamp or own_time))
        elif isinstance(record.get("role"), str):
            self.messages.append(message_of(record))
        else:
            self.left_out[f"type {kind}" if isinstance(kind, str) else "not a message"] += 1

    def _take_foreign(self, taken: Taken) -> None:
        if taken.head:
            self.head = {**taken.head, **self.head}
        if taken.left_out:
            self.left_out[taken.left_out] += 1
        for message in taken.messages:
            again = taken.usage_id in self.usage_seen  # one answer over several lines tells its tokens on each
            self.messages.append(replace(message, usage=None) if again else message)
        if taken.usage_id:
            self.usage_seen.add(taken.usage_id)

    def _summary(self, values: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        kept = {
            key: value for key, value in values.items() if key not in {"type", "id", "parentId", "timestamp", "summary"}
        }
        summary = summary_of(kept)
        if summary and summary.content:
            self.summaries.append(
                replace(summary, compacted_at=summary.compacted_at or milliseconds(record.get("timestamp")))
            )

    def said_id(self) -> str:
        """Return the id that the transcript gives its session, if it can be one here."""
        try:
            return checked_id(self.head.get("id"))
        except SessionInputError:
            return ""

    def session(self, session_id: str, kind: SessionKind | None) -> Session:
        known = self.head.get("entry")
        values = dict(known) if isinstance(known, Mapping) else {}
        values = {
            key: value for key, value in values.items() if key not in {"messageCount", "inputTokens", "outputTokens"}
        }
        first = min((message.timestamp for message in self.messages if message.timestamp), default=0)
        values.setdefault("createdAt", milliseconds(self.head.get("timestamp")) or first)
        chosen: SessionKind = kind or ("group" if values.get("kind") == "group" else "direct")
        entry = entry_of(values, kind=chosen, session_id=session_id, session_file="")
        return Session(entry, tuple(map(numbered, self.messages)), tuple(self.summaries))


def _iso(milliseconds_: int) -> str:
    return datetime.fromtimestamp(milliseconds_ / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
