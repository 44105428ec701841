"""Holds the counters of a generation and the joins and conditions that its statements share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from notewell.store import scopes
from notewell.store.scopes import Dialect
from notewell.types import Scope

POSTGRES = Dialect(mark="%s", listed="= ANY(%s)", as_list=list)
TO_DOCUMENTS = (
    " JOIN notewell.documents ON documents.tenant = chunks.tenant AND documents.generation = chunks.generation"
    " AND documents.id = chunks.document"
)
# The document of each of a few chunks. The limit keeps the planner from starting with all documents of the tenant, of
# which it may have no statistics.
TO_DOCUMENT = (
    " CROSS JOIN LATERAL (SELECT id, source, path, dated, private FROM notewell.documents WHERE tenant = chunks.tenant"
    " AND generation = chunks.generation AND id = chunks.document LIMIT 1) documents"
)
TOTALS = (
    "tenant, generation, documents, chunks, vectors, skipped, terms, last_document, last_chunk, vector_generation,"
    " postings_generation, dead, coalesce((SELECT json_object_agg(key, value) FROM notewell.meta m"
    " WHERE m.tenant = generations.tenant AND m.generation = generations.generation), '{}') AS meta"
)


@dataclass(slots=True)
class Totals:
    """The counters of a generation within a transaction, in the order of `TOTALS`."""

    tenant: int
    generation: int
    documents: int
    chunks: int
    vectors: int
    skipped: int
    terms: int
    last_document: int
    last_chunk: int
    vector_generation: int
    postings_generation: int
    dead: int
    meta: dict[str, str] = field(compare=False)  # notes about the index

    @property
    def key(self) -> tuple[int, int]:
        return self.tenant, self.generation

    @property
    def changeable(self) -> tuple[int, ...]:
        return (
            *(self.documents, self.chunks, self.vectors, self.skipped, self.terms, self.last_document),
            *(self.last_chunk, self.vector_generation, self.postings_generation, self.dead),
        )

    @property
    def cache_version(self) -> int:
        """A number that grows with every change of vectors, also across generations."""
        return (self.generation << 64) + self.vector_generation

    def change_vectors(self) -> None:
        """Invalidate cached vectors."""
        self.vector_generation = _after(self.vector_generation)

    def change_postings(self) -> None:
        """Invalidate cached terms and removed chunks."""
        self.postings_generation = _after(self.postings_generation)


def _after(version: int) -> int:
    """Return a higher number that was never used, also by transactions that a standby missed."""
    return max(version + 1, time.time_ns() // 1_000)


class ScopeFilter(NamedTuple):
    """A scope as SQL."""

    condition: str
    values: list[Any]

    @classmethod
    def of(cls, scope: Scope) -> ScopeFilter:
        return cls(*scopes.scope_condition(scope, POSTGRES))

    def on(self, chunk: str) -> tuple[str, str, list[Any]]:
        """Return joins, condition and values for a query with chunk ids in this column."""
        if not self.condition:
            return "", "", []
        table = chunk.partition(".")[0]
        joined = (
            f" JOIN notewell.chunks ON chunks.tenant = {table}.tenant AND chunks.generation = {table}.generation"
            f" AND chunks.id = {chunk}{TO_DOCUMENTS}"
        )
        return joined, f" AND {self.condition}", self.values
