"""The `sqlite-vec` driver: finds nearest neighbours with a vec0 table beside the float16 rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from notewell.store.sqlite.connection import Database, as_json
from notewell.store.sqlite.documents import chunk_ids_in
from notewell.store.sqlite.vector_search import every_vector
from notewell.types import Scope, SourceName

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.protocols import Matrix, Vector

_MOST_NEIGHBOURS = 4096  # a fixed limit of vec0
_SPARE = 64  # vec0 adds up in single precision: close calls at the edge are left to the exact rows


class SqliteVecIndex:
    """Implements `VectorIndex` with a vec0 table, exact but linear in SQL."""

    def add(self, db: Database, source: SourceName, chunk_ids: Sequence[int], matrix: Matrix) -> None:
        if not _exists(db):
            dimensions = matrix.shape[1]
            db.rows(
                "CREATE VIRTUAL TABLE vector_knn USING vec0(chunk_id INTEGER PRIMARY KEY, source TEXT PARTITION KEY,"
                f" embedding FLOAT[{dimensions}] distance_metric=cosine)"
            )
        # What is compared is what is stored: the float16 values.
        rounded = matrix.astype(np.float16).astype(np.float32)
        db.run_many(
            "INSERT INTO vector_knn (chunk_id, source, embedding) VALUES (?, ?, ?)",
            ((chunk_id, source, row.tobytes()) for chunk_id, row in zip(chunk_ids, rounded, strict=True)),
        )

    def remove(self, db: Database, chunk_ids: Collection[int]) -> None:
        if _exists(db):
            db.run_many("DELETE FROM vector_knn WHERE chunk_id = ?", ((chunk_id,) for chunk_id in chunk_ids))

    def rebuild(self, db: Database) -> None:
        self.clear(db)
        for source, ids, matrix in every_vector(db):
            self.add(db, source, ids.tolist(), matrix)

    def clear(self, db: Database) -> None:
        db.rows("DROP TABLE IF EXISTS vector_knn")

    def tidy(self, db: Database) -> None:
        """Nothing drifts: vec0 keeps the vectors themselves."""

    def candidates(self, db: Database, vector: Vector, *, limit: int, scope: Scope) -> NDArray[np.int64]:
        if not _exists(db):
            return np.empty(0, np.int64)
        neighbours = min(limit + _SPARE, _MOST_NEIGHBOURS)
        filters: list[tuple[str, list[str]]] = [("", [])]
        if scope.picks_documents:
            permitted = as_json(chunk_ids_in(db, scope))
            filters = [(" AND chunk_id IN (SELECT value FROM json_each(?))", [permitted])]
        elif scope.sources is not None:
            filters = [(" AND source = ?", [source]) for source in sorted(scope.sources)]
        query = vector.astype(np.float32).tobytes()
        found = [
            chunk_id
            for sql, values in filters
            for (chunk_id,) in db.rows(
                f"SELECT chunk_id FROM vector_knn WHERE embedding MATCH ? AND k = ?{sql}",  # noqa: S608
                (query, neighbours, *values),
            )
        ]
        return np.array(found, np.int64)

    def findings(self, db: Database) -> list[str]:
        stored = {chunk_id for (chunk_id,) in db.rows("SELECT chunk_id FROM vectors")}
        indexed: set[int] = set()
        if _exists(db):
            indexed = {chunk_id for (chunk_id,) in db.rows("SELECT chunk_id FROM vector_knn")}
        if stored == indexed:
            return []
        return [f"{len(stored ^ indexed)} vectors differ between their rows and the sqlite-vec table"]


def _exists(db: Database) -> bool:
    return bool(db.rows("SELECT 1 FROM sqlite_schema WHERE name = 'vector_knn'"))
