"""Nearest neighbours for a snapshot: a query vector comes in, matches with exact cosines go out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from notewell.store.sqlite.connection import Database, as_json
from notewell.store.sqlite.vectors import VectorIndex
from notewell.store.sqlite.vectors.row_cache import RowCache
from notewell.store.sqlite.vectors.rows import checked_matrix, cosines, unpack
from notewell.types import Match, Scope

if TYPE_CHECKING:
    from notewell.protocols import Vector


class VectorSearch:
    """Asks a vector index for candidates and lets the exact rows decide; shared by all snapshots of a process."""

    def __init__(self, index: VectorIndex) -> None:
        self._index = index
        self._cache = RowCache()

    def matches(self, db: Database, vector: Vector, *, dimensions: int, limit: int, scope: Scope) -> list[Match]:
        """Return the nearest chunks, highest cosine first, ties by chunk id."""
        query = checked_matrix([vector], dimensions)[0]
        candidates = self._index.candidates(db, query, limit=limit, scope=scope).tolist()
        ids, rows = self._cache.rows(db, candidates, dimensions)
        scores = cosines(rows, query)
        best = np.lexsort((ids, -scores))[:limit]
        return list(map(Match, ids[best].tolist(), scores[best].tolist()))

    def scores(
        self, db: Database, vector: Vector, chunk_ids: Collection[int], *, dimensions: int
    ) -> Mapping[int, float]:
        """Return the exact cosine of those of the given chunks that have a vector."""
        ids, rows = self._cache.rows(db, chunk_ids, dimensions)
        scores = cosines(rows, checked_matrix([vector], dimensions)[0])
        return dict(zip(ids.tolist(), scores.tolist(), strict=True))


def known_vectors(db: Database, embedded_hashes: Collection[str]) -> dict[str, Vector]:
    """Return the stored vectors of chunks with these embedded hashes."""
    found = db.rows(
        "SELECT embedded_hash, embedding FROM chunks JOIN vectors ON vectors.chunk_id = chunks.id"
        " WHERE embedded_hash IN (SELECT unhex(value) FROM json_each(?)) GROUP BY embedded_hash",
        (as_json(embedded_hashes),),
    )
    matrix = unpack(db.path, [blob for _, blob in found])
    return {digest.hex(): row for (digest, _), row in zip(found, matrix, strict=True)}
