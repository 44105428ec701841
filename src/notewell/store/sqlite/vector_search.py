"""Finds the chunks nearest to a vector: a vector index proposes candidates, the stored rows decide."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from notewell.store.sqlite.connection import Database, as_json
from notewell.store.vectors import RowCache, checked_matrix, cosines, nearest, unpack
from notewell.types import Match, Scope, SourceName

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.protocols import Matrix, Vector


class VectorIndex(Protocol):
    """Proposes the chunks that may be nearest to a vector; the float16 rows decide, so that all drivers agree.

    It is derived from the `vectors` table and updated in the same transaction.
    """

    def add(self, db: Database, source: SourceName, chunk_ids: Sequence[int], matrix: Matrix) -> None:
        """Index vectors whose float16 rows were just written."""
        ...

    def remove(self, db: Database, chunk_ids: Collection[int]) -> None:
        """Remove every trace of chunks, some of which may not be indexed."""
        ...

    def rebuild(self, db: Database) -> None:
        """Rebuild the index from the float16 rows."""
        ...

    def clear(self, db: Database) -> None:
        """Delete everything that this driver stores."""
        ...

    def tidy(self, db: Database) -> None:
        """Adapt to growth; cheap when there is nothing to do."""
        ...

    def candidates(self, db: Database, vector: Vector, *, limit: int, scope: Scope) -> NDArray[np.int64]:
        """Return ids in the scope that include, with very few misses, the best `limit`."""
        ...

    def findings(self, db: Database) -> list[str]:
        """Return inconsistencies with the float16 rows."""
        ...


class VectorSearch:
    """Searches by a vector index and exact rows; shared by all snapshots of a process."""

    def __init__(self, index: VectorIndex) -> None:
        self.index = index
        self._cache = RowCache()

    def matches(self, db: Database, vector: Vector, *, dimensions: int, limit: int, scope: Scope) -> list[Match]:
        """Return the nearest chunks, highest cosine first, ties by chunk id."""
        query = checked_matrix([vector], dimensions)[0]
        candidates = self.index.candidates(db, query, limit=limit, scope=scope).tolist()
        return nearest(*self._rows(db, candidates, dimensions), query, limit)

    def scores(
        self, db: Database, vector: Vector, chunk_ids: Collection[int], *, dimensions: int
    ) -> Mapping[int, float]:
        """Return the exact cosine of the chunks that have a vector."""
        ids, rows = self._rows(db, chunk_ids, dimensions)
        scores = cosines(rows, checked_matrix([vector], dimensions)[0])
        return dict(zip(ids.tolist(), scores.tolist(), strict=True))

    def _rows(self, db: Database, chunk_ids: Collection[int], dimensions: int) -> tuple[NDArray[np.int64], Matrix]:
        generation: int = db.value("SELECT vector_generation FROM totals")
        return self._cache.rows(
            chunk_ids, dimensions, generation=generation, read=lambda missing: read_rows(db, missing, dimensions)
        )


def read_rows(db: Database, chunk_ids: Collection[int], dimensions: int) -> tuple[NDArray[np.int64], Matrix]:
    """Return the chunks that have a vector, by id, and their rows."""
    found = db.rows(
        "SELECT chunk_id, embedding FROM json_each(?) CROSS JOIN vectors ON chunk_id = value",
        (as_json(sorted(chunk_ids)),),
    )
    ids = np.array([chunk_id for chunk_id, _ in found], np.int64)
    return ids, unpack(db.path, [blob for _, blob in found], dimensions=dimensions, units=False)


def every_vector(db: Database, *, batch: int = 4096) -> Iterator[tuple[SourceName, NDArray[np.int64], Matrix]]:
    """Yield all vectors as (source, ids, rows), in batches, because they may not fit into memory."""
    sources = [source for (source,) in db.rows("SELECT DISTINCT source FROM documents ORDER BY source")]
    for source in sources:
        last = 0
        while found := db.rows(
            "SELECT vectors.chunk_id, vectors.embedding FROM vectors"
            " JOIN chunks ON chunks.id = vectors.chunk_id JOIN documents ON documents.id = chunks.document_id"
            " WHERE documents.source = ? AND vectors.chunk_id > ? ORDER BY vectors.chunk_id LIMIT ?",
            (source, last, batch),
        ):
            last = found[-1][0]
            ids = np.array([chunk_id for chunk_id, _ in found], np.int64)
            yield source, ids, unpack(db.path, [blob for _, blob in found])


def known_vectors(db: Database, embedded_hashes: Collection[str]) -> dict[str, Vector]:
    """Return the vectors of chunks with these embedded hashes."""
    found = db.rows(
        "SELECT embedded_hash, embedding FROM chunks JOIN vectors ON vectors.chunk_id = chunks.id"
        " WHERE embedded_hash IN (SELECT unhex(value) FROM json_each(?)) GROUP BY embedded_hash",
        (as_json(embedded_hashes),),
    )
    matrix = unpack(db.path, [blob for _, blob in found])
    return {digest.hex(): row for (digest, _), row in zip(found, matrix, strict=True)}
