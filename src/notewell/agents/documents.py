"""JSON documents of everything the surfaces show; their keys are part of the public interface."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from notewell.errors import NotewellError
    from notewell.reports import (
        ForgetReport,
        IndexPreview,
        Listed,
        MemoryList,
        Migration,
        Remembered,
        SessionContext,
        Status,
        Trashed,
        UndoReport,
        Verification,
    )
    from notewell.sessions import Flushed, Imported, Message, Session, SessionEntry
    from notewell.types import Check, Fallback, Hit, IndexReport, NoteText, SearchAnswer

Json = dict[str, Any]


def search_document(answer: SearchAnswer) -> Json:
    """Return a search answer."""
    return {
        "query": answer.query,
        "mode": answer.mode,
        "hits": [hit_document(hit) for hit in answer.hits],
        "index": asdict(answer.index),
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
    """Return what was to be used and why it was not; None when nothing fell back."""
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
        document["replaces"] = [asdict(place) for place in hit.replaces]
    if hit.replaced_by:
        document["replacedBy"] = asdict(hit.replaced_by)
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
    """Return an entry, a note or a conversation of a list; what only entries have is left out of the others."""
    document = {
        "kind": item.kind,
        "path": item.path,
        "citation": item.citation,
        "text": item.text,
        "when": item.when.isoformat(timespec="seconds"),
        "source": item.source,
    }
    if item.kind != "entry":
        return document
    return document | {
        "startLine": item.first_line,
        "endLine": item.last_line,
        "entry": item.entry,
        "author": item.author,
        "origin": item.origin,
        "category": item.category,
        "importance": item.importance,
        "replaces": list(item.replaces),
        "replacedBy": item.replaced_by,
        "replacedAt": item.replaced_at.isoformat(timespec="seconds") if item.replaced_at else None,
    }


def list_document(found: MemoryList) -> Json:
    """Return what a memory holds."""
    return {
        "items": [listed_document(item) for item in found.items],
        "total": found.total,
        "problems": [asdict(problem) for problem in found.problems],
    }


def context_files(context: SessionContext) -> list[Json]:
    """Return the files of a session's context, without where the workspace is."""
    return [camel_case(asdict(file)) | {"truncated": file.truncated} for file in context.files]


def remembered_document(done: Remembered) -> Json:
    """Return where a text was written, or where it is already known."""
    return {
        "written": done.written,
        "path": done.path,
        "startLine": done.first_line,
        "endLine": done.last_line,
        "citation": done.citation,
        "entry": done.entry or None,
        "replaced": asdict(done.replaced) if done.replaced else None,
        "known": [asdict(known) for known in done.known],
        "redacted": list(done.redacted),
        "kept": list(done.kept),
        "notes": list(done.notes),
    }


def report_document(report: IndexReport) -> Json:
    """Return what an indexing run did."""
    return camel_case(asdict(report)) | {"seconds": round(report.seconds, 3)}


def preview_document(preview: IndexPreview) -> Json:
    """Return what an indexing run would do."""
    return camel_case(asdict(preview)) | {"cost": camel_case(asdict(preview.cost)) if preview.cost else None}


def status_document(status: Status) -> Json:
    """Return the state of the memory; `dirty` and `workspaceDir` are OpenClaw's names of `stale` and `workspace`."""
    document = camel_case(asdict(status))
    parts = {name: camel_case(document[name]) for name in ("cache", "fts", "vector", "batch")}
    openclaw = {"dirty": status.stale, "workspaceDir": status.workspace}
    return document | parts | openclaw | {"fallback": fallback_document(status.fallback)}


def checks_document(checks: Iterable[Check]) -> Json:
    """Return the checks of `doctor`."""
    listed = [asdict(check) for check in checks]
    return {"ok": all(check["ok"] for check in listed), "checks": listed}


def verification_document(found: Verification) -> Json:
    """Return whether the index matches the files, and how they differ."""
    return {"equal": found.equal, **camel_case(asdict(found))}


def migration_document(found: Migration) -> Json:
    """Return what was copied into another storage engine."""
    return camel_case(asdict(found))


def forget_document(report: ForgetReport) -> Json:
    """Return what was forgotten, or would be."""
    return camel_case(asdict(report)) | {"forgotten": [camel_case(asdict(each)) for each in report.forgotten]}


def trashed_document(batch: Trashed) -> Json:
    """Return what one call of `forget` moved to the trash."""
    return {
        "id": batch.id,
        "forgottenAt": batch.forgotten_at.isoformat(timespec="seconds"),
        "keptUntil": batch.kept_until.isoformat(timespec="seconds"),
        "forgotten": [camel_case(asdict(each)) for each in batch.forgotten],
    }


def undo_document(report: UndoReport) -> Json:
    """Return what was restored from the trash."""
    return camel_case(asdict(report)) | {"restored": [camel_case(asdict(each)) for each in report.restored]}


def error_document(error: NotewellError) -> Json:
    """Return an error: a stable kind for programs, what happened and what to do next."""
    return {"error": {"kind": error.kind, "message": error.message, "hint": error.hint}}


def entry_document(entry: SessionEntry) -> Json:
    """Return what is known of a session besides its messages."""
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


def camel_case(document: Json) -> Json:
    """Return the document with `camelCase` keys."""
    return {_camel(key): value for key, value in document.items()}


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)
