"""Turns scopes into SQL conditions on documents and chunks, for every storage engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, get_args

from notewell.types import Scope, SourceName

ALL_SOURCES: frozenset[str] = frozenset(get_args(SourceName))


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine binds values."""

    mark: str  # one value
    listed: str  # condition after a column that must be in a list, which is bound as one value
    as_list: Callable[[Collection[str]], Any]  # makes that value


def scope_condition(scope: Scope, sql: Dialect) -> tuple[str, list[Any]]:
    """Return the SQL condition on a chunk and its document, and its values; empty when every chunk meets it."""
    conditions: list[str] = []
    values: list[Any] = []
    if scope.sources is not None:
        conditions.append(_one_of("documents.source", scope.sources, sql))
        values.extend(sorted(scope.sources))
    evergreen = "documents.dated IS NULL OR " if scope.undated else ""
    if scope.since is not None:
        conditions.append(f"({evergreen}documents.dated >= {sql.mark})")
        values.append(scope.since.toordinal())
    if scope.until is not None:
        conditions.append(f"({evergreen}documents.dated <= {sql.mark})")
        values.append(scope.until.toordinal())
    if scope.public_only:
        own = sorted(scope.own_transcripts)
        listed = f" OR (documents.source = 'sessions' AND {_one_of('documents.path', own, sql)})" if own else ""
        conditions.append(f"((documents.private = 0 AND documents.source <> 'sessions'){listed})")
        values.extend(own)
        if scope.without:
            conditions.append(f"NOT (documents.source = 'memory' AND documents.path {sql.listed})")
            values.append(sql.as_list(scope.without))
    if scope.category is not None:
        conditions.append(f"chunks.category = {sql.mark}")
        values.append(scope.category)
    return " AND ".join(conditions), values


def _one_of(column: str, values: Collection[str], sql: Dialect) -> str:
    return f"{column} IN ({', '.join([sql.mark] * len(values))})" if values else "1 = 0"


def without_hidden(scope: Scope, within: Scope) -> Scope:
    """Return the scope without the documents that `within` hides from a group."""
    if not within.public_only:
        return scope
    own = within.own_transcripts & scope.own_transcripts if scope.public_only else within.own_transcripts
    return replace(scope, public_only=True, own_transcripts=own, without=within.without)


def without_idle_filters(scope: Scope, sql: Dialect, any_document: Callable[[str, Sequence[Any]], bool]) -> Scope:
    """Drop filters that exclude nothing, because checking them costs more than the search itself.

    `any_document` returns whether any document meets a condition.
    """
    if (
        scope.public_only
        and not scope.without
        and not any_document("documents.private = 1 OR documents.source = 'sessions'", ())
    ):
        scope = replace(scope, public_only=False)
    if scope.undated and (scope.since or scope.until):
        days = ((scope.since or date.min).toordinal(), (scope.until or date.max).toordinal())
        if not any_document(f"documents.dated < {sql.mark} OR documents.dated > {sql.mark}", days):
            scope = replace(scope, since=None, until=None)
    if scope.sources is None:
        return scope
    excluded = sorted(ALL_SOURCES - scope.sources)
    if excluded and any_document(_one_of("documents.source", excluded, sql), excluded):
        return scope
    return replace(scope, sources=None)
