"""Sessions in, the JSON documents and the lines for people that every surface shows out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from notewell.sessions import Flushed, Imported, Message, Session, SessionEntry

Json = dict[str, Any]
LONGEST_TITLE = 48  # characters in a list: an id, a time and a count stand on the same line


def entry_document(entry: SessionEntry) -> Json:
    """Return a session's entry."""
    from notewell.sessions.model import RUNNING, camel, entry_to_json

    running = {camel(name): getattr(entry, name) for name in RUNNING if getattr(entry, name) is not None}
    document = {"sessionId": entry.session_id, "sessionFile": entry.session_file, **entry_to_json(entry), **running}
    return document | ({"damage": entry.damage} if entry.damage else {})


def session_document(session: Session, *, last: int | None = None) -> Json:
    """Return a conversation, or its last messages."""
    from notewell.sessions.model import summary_to_json
    from notewell.sources.transcripts.messages import message_to_json

    return entry_document(session.entry) | {
        "compactedHistory": [summary_to_json(summary) for summary in session.summaries],
        "messages": [message_to_json(message) for message in _last(session.messages, last)],
    }


def flushed_document(done: Flushed) -> Json:
    """Return what a flush did."""
    return {"path": done.path or None, "messages": done.messages, "byModel": done.by_model, "note": done.note}


def imported_document(path: str, done: Imported, entry: SessionEntry) -> Json:
    """Return what an import did."""
    return {
        "file": path,
        "sessionId": entry.session_id,
        "kind": entry.kind,
        "messages": entry.message_count,
        "leftOut": dict(done.left_out),
    }


def list_lines(entries: Sequence[SessionEntry]) -> Iterator[str]:
    """Yield a line a session."""
    if not entries:
        yield "no sessions"
    for entry in entries:
        what = "cannot be read" if entry.damage else f"{entry.message_count:,} messages"
        title = (entry.title or entry.channel or "")[:LONGEST_TITLE]
        yield f"{entry.session_id}  {entry.kind:6}  {_time(entry.updated_at)}  {what}  {title}".rstrip()


def session_lines(session: Session, *, last: int | None = None) -> Iterator[str]:
    """Yield a conversation for reading: who said what when, tool calls as one line each."""
    entry = session.entry
    yield f"{entry.session_id}  {entry.kind}  {entry.message_count:,} messages  {entry.title or ''}".rstrip()
    for summary in session.summaries:
        yield ""
        yield f"[{summary.original_message_count} messages compacted {_time(summary.compacted_at)}]"
        yield from summary.content.split("\n")
    for message in _last(session.messages, last):
        yield ""
        yield f"{message.role}  {_time(message.timestamp)}" + (f"  {message.name}" if message.name else "")
        if message.text:
            yield from (f"  {line}".rstrip() for line in message.text.split("\n"))
        yield from (f"  -> {call.name}" for call in message.tool_calls)


def _last(messages: Sequence[Message], count: int | None) -> Sequence[Message]:
    return messages if count is None else messages[max(0, len(messages) - count) :]


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime("%Y-%m-%d %H:%M") if milliseconds else "-"
