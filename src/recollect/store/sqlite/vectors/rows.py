"""Vectors as stored rows: float vectors come in, checked float16 bytes and exact cosines go out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recollect.errors import BadVectorError
from recollect.store.sqlite.connection import Database, as_json
from recollect.types import SourceName

if TYPE_CHECKING:
    from recollect.protocols import Matrix, Vector

_UNIT_TOLERANCE = 1e-3  # float16 rows of unit vectors stay within 1e-4; a second pass must not change them
_DECIMALS = 6  # float16 rows carry three; rounding makes equal vectors equal on every machine


def checked_matrix(vectors: Iterable[Vector], dimensions: int) -> Matrix:
    """Return the vectors as unit rows; raises BadVectorError for the wrong length, NaN, infinity or zero."""
    rows = [np.asarray(vector, dtype=np.float32) for vector in vectors]
    for row in rows:
        if row.shape != (dimensions,):
            raise BadVectorError(
                f"a vector has the shape {row.shape}, the index holds {dimensions} dimensions",
                hint="check the embedder's model; nothing was stored",
            )
    matrix = np.array(rows, dtype=np.float32).reshape(len(rows), dimensions)
    norms: NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    if not (np.isfinite(norms).all() and (norms > 0).all()):
        raise BadVectorError(
            "a vector holds NaN or infinity, or is zero", hint="check the embedder's model; nothing was stored"
        )
    off = np.abs(norms - 1) > _UNIT_TOLERANCE
    if off.any():
        matrix[off] = matrix[off] / norms[off, None]
    return matrix


def pack(matrix: Matrix) -> list[bytes]:
    """Return each row as float16 bytes."""
    halves = matrix.astype("<f2")
    return [row.tobytes() for row in halves]


def unpack(blobs: Sequence[bytes]) -> Matrix:
    """Return float16 bytes as the rows they were."""
    if not blobs:
        return np.empty((0, 0), np.float32)
    halves = np.frombuffer(b"".join(blobs), "<f2").reshape(len(blobs), -1)
    return halves.astype(np.float32)


def fetch(db: Database, chunk_ids: Collection[int]) -> tuple[NDArray[np.int64], Matrix]:
    """Return the stored vectors of these chunks, ascending by id; chunks without one are left out."""
    found = db.rows(
        "SELECT chunk_id, embedding FROM vectors WHERE chunk_id IN (SELECT value FROM json_each(?)) ORDER BY chunk_id",
        (as_json(chunk_ids),),
    )
    return np.array([chunk_id for chunk_id, _ in found], np.int64), unpack([blob for _, blob in found])


def cosines(matrix: Matrix, vector: Vector) -> NDArray[np.float64]:
    """Return the cosine of each row; one row gives the same number in whatever company it comes."""
    if not len(matrix):
        return np.empty(0, np.float64)
    # Double precision, then rounded: the order in which a library adds up must not show in the result.
    exact = matrix.astype(np.float64) @ vector.astype(np.float64)
    rounded: NDArray[np.float64] = np.clip(np.round(exact, _DECIMALS), -1.0, 1.0)
    return rounded


def exact_scores(db: Database, vector: Vector, chunk_ids: Collection[int]) -> Mapping[int, float]:
    """Return the cosine of those of the given chunks that have a vector."""
    ids, matrix = fetch(db, chunk_ids)
    return dict(zip(ids.tolist(), cosines(matrix, vector).tolist(), strict=True))


def every_vector(db: Database, *, batch: int = 4096) -> Iterable[tuple[SourceName, NDArray[np.int64], Matrix]]:
    """Yield all stored vectors as (source, ids, rows), in batches, so that a large index never sits in memory whole."""
    sources = [source for (source,) in db.rows("SELECT DISTINCT source FROM documents ORDER BY source")]
    for source in sources:
        last = 0
        while True:
            found = db.rows(
                "SELECT vectors.chunk_id, vectors.embedding FROM vectors"
                " JOIN chunks ON chunks.id = vectors.chunk_id JOIN documents ON documents.id = chunks.document_id"
                " WHERE documents.source = ? AND vectors.chunk_id > ? ORDER BY vectors.chunk_id LIMIT ?",
                (source, last, batch),
            )
            if not found:
                break
            last = found[-1][0]
            yield source, np.array([chunk_id for chunk_id, _ in found], np.int64), unpack([blob for _, blob in found])
