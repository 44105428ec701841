"""Counts what must not exist among the rows of a generation."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from notewell.store.postings import POSTING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notewell.store.postgres.connection import Database
    from notewell.store.postgres.posting_blocks import Unmerged
    from notewell.store.postgres.totals import Totals

_HERE = "tenant = %(tenant)s AND generation = %(generation)s"
_OWN_TOTALS = f"""
SELECT (g.documents <> d.rows)::int + (g.chunks <> c.rows)::int + (g.vectors <> v.rows)::int
  + (g.skipped <> c.skipped)::int + (g.terms <> c.terms)::int
FROM (SELECT * FROM notewell.generations WHERE {_HERE}) g,
  (SELECT count(*) AS rows FROM notewell.documents WHERE {_HERE}) d,
  (SELECT count(*) AS rows, coalesce(sum(terms), 0) AS terms, count(*) FILTER (WHERE has_vector = 2) AS skipped
   FROM notewell.chunks WHERE {_HERE}) c,
  (SELECT count(*) AS rows FROM notewell.vectors WHERE {_HERE}) v
"""
_NO_DOCUMENT = f"""
SELECT count(*) FROM notewell.chunks
WHERE {_HERE} AND document NOT IN (SELECT id FROM notewell.documents WHERE {_HERE})
"""
_NO_VECTOR = f"""
SELECT count(*) FROM notewell.chunks
WHERE {_HERE} AND has_vector = 1 AND id NOT IN (SELECT chunk FROM notewell.vectors WHERE {_HERE})
"""
_NO_CHUNK = f"""
SELECT count(*) FROM notewell.vectors
WHERE {_HERE} AND chunk NOT IN (SELECT id FROM notewell.chunks WHERE {_HERE} AND has_vector = 1)
"""
# Each query counts what must not exist.
_FAULTS: tuple[tuple[str, str], ...] = (
    ("{} chunks belong to no document", _NO_DOCUMENT),
    ("{} chunks are marked embedded and have no vector", _NO_VECTOR),
    ("{} vectors belong to no chunk that is marked embedded", _NO_CHUNK),
    ("{} of the stored totals are wrong", _OWN_TOTALS),
)
_READ_AT_ONCE = 5_000


def find_faults(db: Database, totals: Totals, unmerged: Unmerged) -> Iterator[str]:
    """Yield which rows are out of step."""
    key = {"tenant": totals.tenant, "generation": totals.generation}
    for sentence, query in _FAULTS:
        count = db.value(query, key)
        if count:
            yield sentence.format(count)
    yield from _posting_faults(db, totals, unmerged)


def _posting_faults(db: Database, totals: Totals, unmerged: Unmerged) -> Iterator[str]:
    """Compare the lengths of chunks with those in their postings, and the terms that each has."""
    chunks = db.rows("SELECT id, terms FROM notewell.chunks WHERE tenant = %s AND generation = %s", totals.key)
    lengths = np.zeros(totals.last_chunk + 1, np.int64)
    held = np.zeros(totals.last_chunk + 1, np.int64)
    for chunk_id, terms in chunks:
        lengths[chunk_id] = min(terms, 0xFFFF)
    wrong = unsorted = 0
    for _, block, count, data in chain(_stored_blocks(db, totals), _recent_blocks(unmerged)):
        rows = np.frombuffer(data, POSTING)
        ids = rows["id"].astype(np.int64)
        unsorted += len(rows) != count or bool((np.diff(ids) <= 0).any()) or bool((ids < block).any())
        known = ids <= totals.last_chunk
        held[ids[known]] = rows["length"][known]
        wrong += int((~known).sum())
    gone = unmerged.dead
    held[gone[gone <= totals.last_chunk]] = 0
    if wrong := wrong + int(((lengths == 0) & (held > 0)).sum()):
        yield f"{wrong} keyword entries belong to no chunk"
    if missing := int(((lengths > 0) & (held == 0)).sum()):
        yield f"{missing} chunks have no keyword entry"
    if differing := int(((lengths > 0) & (held > 0) & (lengths != held)).sum()):
        yield f"{differing} chunks have keyword entries of another length"
    if unsorted:
        yield f"{unsorted} posting blocks are out of order"


def _stored_blocks(db: Database, totals: Totals) -> Iterator[tuple[Any, ...]]:
    after = ("", -1)
    while found := db.rows(
        "SELECT term, block, count, data FROM notewell.postings WHERE tenant = %s AND generation = %s"
        " AND (term, block) > (%s, %s) ORDER BY term, block LIMIT %s",
        (*totals.key, *after, _READ_AT_ONCE),
    ):
        after = found[-1][:2]
        yield from found


def _recent_blocks(unmerged: Unmerged) -> Iterator[tuple[Any, ...]]:
    for bundle in unmerged.recent:
        for term, block, count, data, _ in bundle.blocks():
            yield term, block, count, data
