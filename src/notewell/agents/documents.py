"""Answers in, the JSON documents every surface gives out; the names are part of the public interface."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from notewell.errors import NotewellError
    from notewell.types import (
        Check,
        ForgetReport,
        Hit,
        IndexPreview,
        IndexReport,
        NoteText,
        Remembered,
        SearchAnswer,
        Status,
        Verification,
    )

Json = dict[str, Any]


def search_document(answer: SearchAnswer) -> Json:
    """Return the answer to a search."""
    return {
        "query": answer.query,
        "mode": answer.mode,
        "hits": [hit_document(hit) for hit in answer.hits],
        "index": asdict(answer.index),
        "notes": list(answer.notes),
    }


def hit_document(hit: Hit) -> Json:
    """Return one hit; `explanation` only when it was asked for."""
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


def remembered_document(done: Remembered) -> Json:
    """Return what became of a text that was to be remembered."""
    return {
        "written": done.written,
        "path": done.path,
        "startLine": done.first_line,
        "endLine": done.last_line,
        "citation": done.citation,
        "known": [asdict(known) for known in done.known],
        "redacted": list(done.redacted),
        "notes": list(done.notes),
    }


def report_document(report: IndexReport) -> Json:
    """Return what an indexing run did."""
    return camel_case(asdict(report)) | {"seconds": round(report.seconds, 3)}


def preview_document(preview: IndexPreview) -> Json:
    """Return what an indexing run would do."""
    return camel_case(asdict(preview)) | {"cost": camel_case(asdict(preview.cost)) if preview.cost else None}


def status_document(status: Status) -> Json:
    """Return the state of the memory."""
    return camel_case(asdict(status))


def checks_document(checks: Iterable[Check]) -> Json:
    """Return the findings of `doctor`."""
    listed = [asdict(check) for check in checks]
    return {"ok": all(check["ok"] for check in listed), "checks": listed}


def verification_document(found: Verification) -> Json:
    """Return whether index and files agree, and how they differ."""
    return {"equal": found.equal, **camel_case(asdict(found))}


def forget_document(report: ForgetReport) -> Json:
    """Return what was forgotten, or would be."""
    return camel_case(asdict(report))


def error_document(error: NotewellError) -> Json:
    """Return an error: what happened, what to do next, and a stable name for programs."""
    return {"error": {"kind": error.kind, "message": error.message, "hint": error.hint}}


def camel_case(document: Json) -> Json:
    """Return the document with `camelCase` keys."""
    return {_camel(key): value for key, value in document.items()}


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)
