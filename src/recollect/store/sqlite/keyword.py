"""The keyword side: terms and a scope come in, chunk ids with their BM25 go out (sign put right: higher is better)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from recollect.store.sqlite.connection import Database, as_json
from recollect.store.sqlite.scopes import document_condition
from recollect.types import Match, Scope, Term

CONTEXT_WEIGHT = 0.5  # a word of the heading trail or path counts half of one in the text
_BM25 = f"-bm25(terms, 1.0, {CONTEXT_WEIGHT})"  # FTS5 gives better matches smaller numbers


def match_expression(terms: Sequence[Term]) -> str | None:
    """Return the FTS5 query that finds any of the terms, or None when nothing is left to look for.

    Everything is quoted, so that no input can be query syntax.
    """
    return " OR ".join(phrase for term in terms if (phrase := _phrase(term))) or None


def _phrase(term: Term) -> str:
    # FTS5 stops reading a query at NUL, and SQLite cannot hold half of a surrogate pair.
    cleaned = " ".join(term.tokens).replace("\0", " ").encode("utf-8", "replace").decode()
    if not cleaned.split():
        return ""
    words = cleaned.replace('"', '""')
    return f'"{words}" *' if term.prefix else f'"{words}"'


def keyword_matches(db: Database, terms: Sequence[Term], *, limit: int, scope: Scope) -> list[Match]:
    """Return the chunks that hold any of the terms, best first, ties by chunk id."""
    expression = match_expression(terms)
    if expression is None or limit < 1:
        return []
    joined, bindings = "", []
    condition, values = document_condition(scope)
    if condition:
        joined = "JOIN chunks ON chunks.id = terms.rowid JOIN documents ON documents.id = chunks.document_id"
        bindings = values
        condition = f"AND {condition}"
    found = db.rows(
        f"SELECT terms.rowid, {_BM25} AS bm25 FROM terms {joined} WHERE terms MATCH ? {condition}"  # noqa: S608
        " ORDER BY bm25 DESC, terms.rowid LIMIT ?",
        (expression, *bindings, limit),
    )
    return [Match(chunk_id, bm25) for chunk_id, bm25 in found]


def keyword_scores(db: Database, terms: Sequence[Term], chunk_ids: Collection[int]) -> dict[int, float]:
    """Return the BM25 of those of the given chunks that hold any of the terms."""
    expression = match_expression(terms)
    if expression is None or not chunk_ids:
        return {}
    # The plus keeps SQLite from asking FTS5 once for each id, which is 70 times slower with 200 ids.
    found = db.rows(
        f"SELECT rowid, {_BM25} FROM terms WHERE terms MATCH ? AND +rowid IN (SELECT value FROM json_each(?))",  # noqa: S608
        (expression, as_json(chunk_ids)),
    )
    return dict(found)


def document_frequencies(db: Database, terms: Sequence[Term], *, at_most: int) -> list[int]:
    """Return in how many chunks each term occurs; counting stops at `at_most`."""
    return [_frequency(db, match_expression([term]), at_most) for term in terms]


def _frequency(db: Database, expression: str | None, at_most: int) -> int:
    if expression is None:
        return 0
    count: int = db.value(
        "SELECT count(*) FROM (SELECT 1 FROM terms WHERE terms MATCH ? LIMIT ?)", (expression, max(at_most, 0))
    )
    return count
