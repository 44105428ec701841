"""Imports and exports conversations as JSONL.

Exports look like OpenClaw's transcripts. Those of Claude Code and Codex can be imported as well, with their tool calls,
thoughts and token counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import SessionInputError
from notewell.sessions.model import (
    COUNTED,
    Session,
    SessionEntry,
    SessionKind,
    Summary,
    entry_from_json,
    entry_to_json,
    summary_from_json,
    summary_to_json,
)
from notewell.sessions.session_folder import checked_id, new_id
from notewell.sources.transcripts.formats import Parsed, parse_record
from notewell.sources.transcripts.json5 import write_json
from notewell.sources.transcripts.messages import Json, Message, message_to_json, milliseconds, with_id_and_time
from notewell.sources.transcripts.session_files import FORMAT_VERSION

if TYPE_CHECKING:
    from notewell.sessions.store import ConversationStore

LONGEST_LINE = 64 * 2**20  # characters; a line beyond it is a picture or a mistake, and is left out


@dataclass(frozen=True, slots=True)
class Imported:
    """A conversation read from a transcript, and what of it was left out, by reason."""

    session: Session
    left_out: Mapping[str, int] = field(default_factory=dict)


def export_lines(session: Session) -> Iterator[str]:
    """Yield the conversation as lines of JSON, the session's own line first."""
    head = {"type": "session", "version": FORMAT_VERSION, "id": session.entry.session_id}
    yield write_json(head | {"timestamp": _iso(session.entry.created_at)} | {"entry": entry_to_json(session.entry)})
    for summary in session.summaries:
        yield write_json({"type": "compaction", "timestamp": _iso(summary.compacted_at)} | summary_to_json(summary))
    for message in session.messages:
        line = {"type": "message", "id": message.id, "timestamp": _iso(message.timestamp)}
        yield write_json(line | {"message": message_to_json(message)})


def import_file(
    store: ConversationStore, path: Path, *, session_id: str = "", kind: SessionKind | None = None
) -> tuple[Imported, SessionEntry]:
    """Import a transcript as a new session.

    Its id is the given one, else the one that the transcript says, else the name of the file.
    """
    try:
        name = checked_id(path.stem)
    except SessionInputError:
        name = ""
    with path.expanduser().open(encoding="utf-8", errors="replace", newline="\n") as lines:
        imported = import_lines(lines, session_id=session_id, fallback_id=name, kind=kind)
    return imported, store.restore(imported.session)


def import_lines(
    lines: Iterable[str], *, session_id: str = "", fallback_id: str = "", kind: SessionKind | None = None
) -> Imported:
    """Return the conversation of a transcript. Raises SessionInputError when it holds no message at all.

    Its id is `session_id`, else the one that the transcript says, else `fallback_id`, else a new one.
    """
    reader = _Reader()
    for line in lines:
        if line.strip():
            reader.add(line)
    if not reader.messages and not reader.summaries:
        raise SessionInputError(
            "there is no message in it that could be imported",
            hint="import a JSONL transcript of OpenClaw, Claude Code or Codex, or one from `notewell sessions export`",
        )
    name = session_id or reader.stated_id() or fallback_id or new_id()
    return Imported(reader.session(checked_id(name), kind), dict(reader.left_out))


class _Reader:
    """Collects a transcript line by line."""

    def __init__(self) -> None:
        self.head: Json = {}
        self.messages: list[Message] = []
        self.summaries: list[Summary] = []
        self.left_out: Counter[str] = Counter()
        self._usage_seen: set[str] = set()

    def add(self, line: str) -> None:
        parsed = _parsed(line)
        if parsed.left_out:
            self.left_out[parsed.left_out] += 1
        self.head = {**parsed.head, **self.head}
        if parsed.summary:
            self._add_summary(parsed.summary)
        for message in parsed.messages:
            again = parsed.usage_id in self._usage_seen  # one answer over several lines tells its tokens on each
            self.messages.append(replace(message, usage=None) if again else message)
        if parsed.usage_id:
            self._usage_seen.add(parsed.usage_id)

    def _add_summary(self, record: Json) -> None:
        unknown = {"type", "id", "parentId", "timestamp", "summary"}
        summary = summary_from_json({key: value for key, value in record.items() if key not in unknown})
        if summary and summary.content:
            compacted_at = summary.compacted_at or milliseconds(record.get("timestamp"))
            self.summaries.append(replace(summary, compacted_at=compacted_at))

    def stated_id(self) -> str:
        """Return the id that the transcript gives its session, if it can be one here."""
        try:
            return checked_id(self.head.get("id"))
        except SessionInputError:
            return ""

    def session(self, session_id: str, kind: SessionKind | None) -> Session:
        known = self.head.get("entry")
        values = (
            {key: value for key, value in known.items() if key not in COUNTED} if isinstance(known, Mapping) else {}
        )
        first = min((message.timestamp for message in self.messages if message.timestamp), default=0)
        values.setdefault("createdAt", milliseconds(self.head.get("timestamp")) or first)
        chosen: SessionKind = kind or ("group" if values.get("kind") == "group" else "direct")
        entry = entry_from_json(values, kind=chosen, session_id=session_id, session_file="")
        return Session(entry, tuple(map(with_id_and_time, self.messages)), tuple(self.summaries))


def _parsed(line: str) -> Parsed:
    if len(line) > LONGEST_LINE:
        return Parsed(left_out="too long")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return Parsed(left_out="not JSON")
    return parse_record(record) if isinstance(record, Mapping) else Parsed(left_out="not a record")


def _iso(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
