"""Scopes as SQL: a scope comes in, a condition on `documents` with its bound values goes out."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import get_args

from notewell.store.sqlite.connection import Database
from notewell.types import Scope, SourceName

ALL_SOURCES: frozenset[str] = frozenset(get_args(SourceName))


def without_idle_filters(db: Database, scope: Scope) -> Scope:
    """Drop filters that exclude nothing, because checking them costs more than the search itself."""
    if scope.public_only and not db.rows("SELECT 1 FROM documents WHERE private = 1 OR source = 'sessions' LIMIT 1"):
        scope = replace(scope, public_only=False)
    if scope.undated and (scope.since or scope.until) and not _any_outside(db, scope):
        scope = replace(scope, since=None, until=None)
    if scope.sources is None:
        return scope
    excluded = sorted(ALL_SOURCES - scope.sources)
    marks = ", ".join("?" * len(excluded))
    if db.rows(f"SELECT 1 FROM documents WHERE source IN ({marks}) LIMIT 1", excluded):  # noqa: S608
        return scope
    return replace(scope, sources=None)


def _any_outside(db: Database, scope: Scope) -> bool:
    """Say whether a document is dated before or after the days of the scope."""
    first = (scope.since or date.min).toordinal()
    last = (scope.until or date.max).toordinal()
    return bool(db.rows("SELECT 1 FROM documents WHERE dated < ? OR dated > ? LIMIT 1", (first, last)))


def document_condition(scope: Scope) -> tuple[str, list[str | int]]:
    """Return the condition a document must meet, and its values; an empty condition when every document does."""
    conditions: list[str] = []
    values: list[str | int] = []
    if scope.sources is not None:
        conditions.append(f"documents.source IN ({', '.join('?' * len(scope.sources))})")
        values.extend(sorted(scope.sources))
    evergreen = "documents.dated IS NULL OR " if scope.undated else ""
    if scope.since is not None:
        conditions.append(f"({evergreen}documents.dated >= ?)")
        values.append(scope.since.toordinal())
    if scope.until is not None:
        conditions.append(f"({evergreen}documents.dated <= ?)")
        values.append(scope.until.toordinal())
    if scope.public_only:
        own = sorted(scope.own_transcripts)
        marks = ", ".join("?" * len(own))
        listed = f" OR (documents.source = 'sessions' AND documents.path IN ({marks}))" if own else ""
        conditions.append(f"((documents.private = 0 AND documents.source <> 'sessions'){listed})")
        values.extend(own)
    return " AND ".join(conditions), values


def chunk_ids_in(db: Database, scope: Scope) -> list[int]:
    """Return the ids of every chunk the scope lets through, ascending."""
    condition, values = document_condition(scope)
    found = db.rows(
        "SELECT chunks.id FROM documents JOIN chunks ON chunks.document_id = documents.id"  # noqa: S608
        + (f" WHERE {condition}" if condition else "")
        + " ORDER BY chunks.id",
        values,
    )
    return [chunk_id for (chunk_id,) in found]
