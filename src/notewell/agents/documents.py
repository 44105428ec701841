"""Builds the JSON that the command, the tools and the MCP server return; its keys are part of the public interface."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notewell.errors import NotewellError
    from notewell.reports import Listed, MemoryList, Remembered, Status
    from notewell.sessions import Flushed, Imported, Message, Session, SessionEntry
    from notewell.types import Fallback, Hit, IndexReport, NoteText, SearchAnswer

Json = dict[str, Any]


def search_document(answer: SearchAnswer) -> Json:
    """Return a search answer."""
    return {
        "query": answer.query,
        "mode": answer.mode,
        "hits": [hit_document(hit) for hit in answer.hits],
        "index": document_of(answer.index),
        "notes": list(answer.notes),
        "backend": answer.backend,
        "fallback": fallback_document(answer.fallback),
        "provider": answer.provider,
        "model": answer.model,
    }


def timeline_document(answer: SearchAnswer) -> Json:
    """Return a search answer by date; each hit has its date."""
    dates = (hit.dated.isoformat() if hit.dated else None for hit in answer.hits)
    document = search_document(answer)
    return document | {"hits": [{"date": day} | hit for day, hit in zip(dates, document["hits"], strict=True)]}


def fallback_document(fallback: Fallback | None) -> Json | None:
    """Return what could not be used and why; None if nothing fell back."""
    return {"from": fallback.instead_of, "reason": fallback.reason} if fallback else None


def hit_document(hit: Hit) -> Json:
    """Return one hit; `explanation` only when requested."""
    document = {
        "path": hit.path,
        "startLine": hit.first_line,
        "endLine": hit.last_line,
        "score": hit.score,
        "snippet": hit.snippet,
        "source": hit.source,
        "citation": hit.citation,
        "vectorScore": hit.vector_score,
        "textScore": hit.text_score,
        "foundBy": hit.found_by,
    }
    if hit.relevance is not None:
        document["relevance"] = hit.relevance
    if hit.entry is not None:
        document |= {"entry": hit.entry, "category": hit.category, "importance": hit.importance}
    if hit.replaces:
        document["replaces"] = document_of(hit.replaces)
    if hit.replaced_by:
        document["replacedBy"] = document_of(hit.replaced_by)
    return document if hit.explanation is None else document | {"explanation": dict(hit.explanation)}


def note_document(note: NoteText) -> Json:
    """Return a piece of a note."""
    return {
        "path": note.path,
        "text": note.text,
        "from": note.first_line,
        "lines": note.line_count,
        "truncated": note.truncated,
        "nextFrom": note.next_first_line,
    }


def listed_document(item: Listed) -> Json:
    """Return an entry, a note or a conversation of a list; fields of entries are only in entries."""
    document = document_of(item)
    names = document.keys() - {"chat"} if item.kind == "entry" else _OF_EVERY_ITEM
    return {name: value for name, value in document.items() if name in names}


_OF_EVERY_ITEM = {"kind", "path", "citation", "text", "when", "source"}


def list_document(found: MemoryList) -> Json:
    """Return a list."""
    return {
        "items": [listed_document(item) for item in found.items],
        "total": found.total,
        "problems": document_of(found.problems),
    }


def remembered_document(done: Remembered) -> Json:
    """Return where a text was written, or where it is already known."""
    return {**document_of(done), "entry": done.entry or None}


def report_document(report: IndexReport) -> Json:
    """Return what an indexing run did."""
    return {**document_of(report), "seconds": round(report.seconds, 3)}


def status_document(status: Status) -> Json:
    """Return the status; `dirty` and `workspaceDir` are OpenClaw's names for `stale` and `workspace`."""
    openclaw = {"dirty": status.stale, "workspaceDir": status.workspace}
    return {**document_of(status), **openclaw, "fallback": fallback_document(status.fallback)}


def error_document(error: NotewellError) -> Json:
    """Return an error: a stable kind for programs, what happened and what to do next."""
    return {"error": {"kind": error.kind, "message": error.message, "hint": error.hint}}


def entry_document(entry: SessionEntry) -> Json:
    """Return a session without its messages."""
    from notewell.sessions.model import RUNNING, camel, entry_to_json

    running = {camel(name): getattr(entry, name) for name in RUNNING if getattr(entry, name) is not None}
    document = {"sessionId": entry.session_id, "sessionFile": entry.session_file, **entry_to_json(entry), **running}
    return document | ({"damage": entry.damage} if entry.damage else {})


def session_document(session: Session, *, last: int | None = None) -> Json:
    """Return a conversation, with all messages or the last ones."""
    from notewell.sessions.model import summary_to_json
    from notewell.sources.transcripts.messages import message_to_json

    return entry_document(session.entry) | {
        "compactedHistory": [summary_to_json(summary) for summary in session.summaries],
        "messages": [message_to_json(message) for message in last_messages(session, last)],
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
        "added": done.added,
        "leftOut": dict(done.left_out),
    }


def last_messages(session: Session, count: int | None) -> Sequence[Message]:
    """Return the last messages, or all without a count."""
    return session.messages if count is None else session.messages[max(0, len(session.messages) - count) :]


def document_of(value: Any) -> Any:
    """Return any report as plain data: dataclasses as objects with camelCase keys, times in ISO 8601."""
    if is_dataclass(value):
        names = (each.name for each in fields(value))
        return {_OPENCLAW_NAMES.get(name) or _camel(name): document_of(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        return [document_of(each) for each in value]
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_OPENCLAW_NAMES = {"first_line": "startLine", "last_line": "endLine"}
