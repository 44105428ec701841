"""Finds and scores chunks by their terms, with FTS5 and BM25 (higher is better)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from notewell.store.bm25 import CONTEXT_WEIGHT, storable
from notewell.store.sqlite.connection import Database, Row, as_json
from notewell.store.sqlite.documents import scope_condition
from notewell.types import EVERYTHING, Match, Scope, Term

_BM25 = f"-bm25(terms, 1.0, {CONTEXT_WEIGHT})"  # FTS5 gives better matches smaller numbers

_LISTED = "SELECT value FROM json_each(?)"
_TO_DOCUMENTS = "JOIN chunks ON chunks.id = terms.rowid JOIN documents ON documents.id = chunks.document_id"


def match_expression(terms: Sequence[Term]) -> str | None:
    """Return the FTS5 query that finds any of the terms, or None when nothing is left to look for.

    Everything is quoted, so that no input can be query syntax.
    """
    return " OR ".join(phrase for term in terms if (phrase := _phrase(term))) or None


def _phrase(term: Term) -> str:
    cleaned = storable(" ".join(term.tokens))
    if not cleaned.split():
        return ""
    words = cleaned.replace('"', '""')
    return f'"{words}" *' if term.prefix else f'"{words}"'


def keyword_matches(
    db: Database,
    terms: Sequence[Term],
    *,
    limit: int,
    scope: Scope,
    led_by: Sequence[Term] | None = None,
    also: Collection[int] = (),
) -> list[Match]:
    """Return the best chunks that hold any of the terms, and those of `also` that do, best first, ties by chunk id."""
    expression = match_expression(terms)
    leading = expression if led_by is None else match_expression(led_by)
    if expression is None or leading is None or limit < 1:
        return []
    joined, among = "", ""
    condition, values = scope_condition(scope)
    if condition:
        joined = _TO_DOCUMENTS
        condition = f"AND {condition}"
    if leading != expression:
        # Finding a row is cheap, scoring it is not. The plus keeps FTS5 from looking up each row by itself.
        among = f"AND +terms.rowid IN (SELECT rowid FROM terms WHERE terms MATCH ? UNION ALL {_LISTED})"  # noqa: S608
    ids = as_json(also)
    # Materialised, so that FTS5 goes through its lists once for both halves.
    found = db.rows(
        f"WITH found AS MATERIALIZED (SELECT terms.rowid AS id, {_BM25} AS bm25 FROM terms {joined}"  # noqa: S608
        f" WHERE terms MATCH ? {condition} {among})"
        " SELECT id, bm25 FROM (SELECT id, bm25 FROM found ORDER BY bm25 DESC, id LIMIT ?)"
        f" UNION SELECT id, bm25 FROM found WHERE id IN ({_LISTED}) ORDER BY bm25 DESC, id",
        (expression, *values, *((leading, ids) if among else ()), limit, ids),
    )
    return [Match(chunk_id, bm25) for chunk_id, bm25 in _possible(db, found)]


def keyword_scores(db: Database, terms: Sequence[Term], chunk_ids: Collection[int]) -> dict[int, float]:
    """Return the BM25 of those of the chunks that hold any of the terms."""
    expression = match_expression(terms)
    if expression is None or not chunk_ids:
        return {}
    found = db.rows(
        f"SELECT rowid, {_BM25} FROM terms WHERE terms MATCH ? AND +rowid IN ({_LISTED})",  # noqa: S608
        (expression, as_json(chunk_ids)),
    )
    return dict(_possible(db, found))


def _possible(db: Database, found: list[Row]) -> list[Row]:
    """Return the scores; raises for one that no text can have: FTS5 does not check the lengths it has stored."""
    if all(bm25 is not None and 0 <= bm25 < math.inf for _, bm25 in found):
        return found
    raise db.corrupt("the length of a text")


def terms_beginning(db: Database, prefix: str, *, lengths: range, limit: int) -> list[str]:
    """Return indexed terms that begin with `prefix`, in order, whose length is in `lengths`."""
    if not prefix or not lengths or limit < 1:
        return []
    # Terms compare by their bytes in UTF-8, which U+10FFFF ends: no character sorts behind it.
    found = db.rows(
        "SELECT term FROM vocabulary WHERE term >= ?1 AND term < ?1 || char(0x10FFFF)"
        " AND length(term) BETWEEN ?2 AND ?3 LIMIT ?4",
        (storable(prefix), lengths.start, lengths.stop - 1, limit),
    )
    return [term for (term,) in found]


def document_frequencies(db: Database, terms: Sequence[Term], *, at_most: int, scope: Scope = EVERYTHING) -> list[int]:
    """Return in how many chunks of the scope each term occurs; counting stops at `at_most`."""
    expressions = [match_expression([term]) for term in terms]
    condition, values = scope_condition(scope)
    joined = f" {_TO_DOCUMENTS}" if condition else ""
    condition = f" AND {condition}" if condition else ""
    counted = db.rows(
        "SELECT (SELECT count(*) FROM"  # noqa: S608
        f" (SELECT 1 FROM terms{joined} WHERE terms MATCH json_each.value{condition} LIMIT ?)) FROM json_each(?)",
        (*values, max(at_most, 0), as_json([each for each in expressions if each])),
    )
    frequencies = iter(counted)
    return [next(frequencies)[0] if each else 0 for each in expressions]
