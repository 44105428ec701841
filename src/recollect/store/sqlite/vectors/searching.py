"""Nearest neighbours for a snapshot: a query vector comes in, matches with exact cosines go out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from recollect.store.sqlite.connection import Database, as_json
from recollect.store.sqlite.vectors import VectorIndex
from recollect.store.sqlite.vectors.rows import checked_matrix, scored, unpack
from recollect.types import Match, Scope

if TYPE_CHECKING:
    from recollect.protocols import Vector


def vector_matches(
    db: Database, index: VectorIndex, vector: Vector, *, dimensions: int, limit: int, scope: Scope
) -> list[Match]:
    """Return the nearest chunks, highest cosine first, ties by chunk id."""
    query = checked_matrix([vector], dimensions)[0]
    ids, cosines = scored(db, query, index.candidates(db, query, limit=limit, scope=scope).tolist())
    best = np.lexsort((ids, -cosines))[:limit]
    return [Match(*pair) for pair in zip(ids[best].tolist(), cosines[best].tolist(), strict=True)]


def vector_scores(db: Database, vector: Vector, chunk_ids: Collection[int], *, dimensions: int) -> Mapping[int, float]:
    """Return the exact cosine of those of the given chunks that have a vector."""
    ids, cosines = scored(db, checked_matrix([vector], dimensions)[0], chunk_ids)
    return dict(zip(ids.tolist(), cosines.tolist(), strict=True))


def known_vectors(db: Database, embedded_hashes: Collection[str]) -> dict[str, Vector]:
    """Return the stored vectors of chunks with these embedded hashes."""
    found = db.rows(
        "SELECT embedded_hash, embedding FROM chunks JOIN vectors ON vectors.chunk_id = chunks.id"
        " WHERE embedded_hash IN (SELECT unhex(value) FROM json_each(?)) GROUP BY embedded_hash",
        (as_json(embedded_hashes),),
    )
    matrix = unpack(db.path, [blob for _, blob in found])
    return {digest.hex(): row for (digest, _), row in zip(found, matrix, strict=True)}
