"""The counters of a generation, and a scope as an SQL condition: what writing, reading and searching share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from notewell.store import scopes
from notewell.store.scopes import Dialect
from notewell.types import Scope

POSTGRES = Dialect(mark="%s", listed="= ANY(%s)", as_list=list)
TO_DOCUMENTS = (
    " JOIN notewell.documents ON documents.tenant = chunks.tenant AND documents.generation = chunks.generation"
    " AND documents.id = chunks.document"
)
TOTALS = (
    "tenant, generation, documents, chunks, vectors, skipped, terms, last_document, last_chunk, vector_generation,"
    " dead_generation, dead"
)


@dataclass(slots=True)
class Totals:
    """The counters of a generation, as a transaction sees or leaves them; in the order of `TOTALS`."""

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
    dead_generation: int
    dead: int

    @property
    def key(self) -> tuple[int, int]:
        return self.tenant, self.generation

    @property
    def changeable(self) -> tuple[int, ...]:
        return (
            *(self.documents, self.chunks, self.vectors, self.skipped, self.terms, self.last_document),
            *(self.last_chunk, self.vector_generation, self.dead_generation, self.dead),
        )

    @property
    def cache_version(self) -> int:
        """A number that grows with every change of vectors, also across generations."""
        return (self.generation << 40) + self.vector_generation


class ScopeFilter(NamedTuple):
    """A scope as SQL."""

    condition: str
    values: list[Any]

    @classmethod
    def of(cls, scope: Scope) -> ScopeFilter:
        return cls(*scopes.scope_condition(scope, POSTGRES))

    def on(self, chunk: str) -> tuple[str, str, list[Any]]:
        """Return the joins, the condition and its values for a query that has chunk ids in this column."""
        if not self.condition:
            return "", "", []
        table = chunk.partition(".")[0]
        joined = (
            f" JOIN notewell.chunks ON chunks.tenant = {table}.tenant AND chunks.generation = {table}.generation"
            f" AND chunks.id = {chunk}{TO_DOCUMENTS}"
        )
        return joined, f" AND {self.condition}", self.values
