"""Vectors as stored rows: float vectors come in, checked float16 bytes and exact cosines go out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from notewell.errors import BadVectorError
from notewell.store.sqlite.connection import Database, as_json, damaged
from notewell.types import SourceName

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.protocols import Matrix, Vector

_UNIT_TOLERANCE = 1e-3  # float16 rows of unit vectors stay within 1e-4; a second pass must not change them
_DAMAGE_TOLERANCE = 0.01  # of the squared length; rounding to float16 moves it by less than a thousandth
_BLOCK_ROWS = 64  # 0.2 MB in double precision at 384 dimensions: fresh memory for all rows costs more than the sums
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


def unpack(path: Path, blobs: Sequence[bytes]) -> Matrix:
    """Return float16 bytes from the file at `path` as unit rows; raises IndexCorruptError if they are none."""
    rows = _halves(path, blobs).astype(np.float32)
    lengths = np.einsum("ij,ij->i", rows, rows)
    if not (np.abs(lengths - 1) < _DAMAGE_TOLERANCE).all():  # also catches NaN
        raise damaged(path, "a vector")
    return rows


def _halves(path: Path, blobs: Sequence[bytes]) -> NDArray[np.float16]:
    try:
        return np.frombuffer(b"".join(blobs), "<f2").reshape(len(blobs), -1) if blobs else np.empty((0, 0), np.float16)
    except (TypeError, ValueError) as error:  # not bytes, or not of one length
        raise damaged(path, "a vector") from error


def read_rows(db: Database, chunk_ids: Collection[int], dimensions: int) -> tuple[NDArray[np.int64], Matrix]:
    """Return those of the chunks that have a vector, by id, and their rows."""
    found = db.rows(
        "SELECT chunk_id, embedding FROM json_each(?) CROSS JOIN vectors ON chunk_id = value",
        (as_json(sorted(chunk_ids)),),
    )
    ids = np.array([chunk_id for chunk_id, _ in found], np.int64)
    rows = _halves(db.path, [blob for _, blob in found]).astype(np.float32)
    if len(rows) and rows.shape[1] != dimensions:
        raise damaged(db.path, "a vector")
    return ids, rows.reshape(len(found), dimensions)


def cosines(rows: Matrix, vector: Vector) -> NDArray[np.float64]:
    """Return the cosine of each unit row with a unit vector; a row gives the same number in whatever company it comes.

    Double precision, then rounded: the order in which a library adds up must not show in the result.
    """
    query = vector.astype(np.float64)
    blocks = [
        rows[start : start + _BLOCK_ROWS].astype(np.float64) @ query for start in range(0, len(rows), _BLOCK_ROWS)
    ]
    exact = np.concatenate([np.empty(0, np.float64), *blocks])
    return np.clip(np.round(exact, _DECIMALS), -1.0, 1.0)


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
            yield (
                source,
                np.array([chunk_id for chunk_id, _ in found], np.int64),
                unpack(db.path, [blob for _, blob in found]),
            )
