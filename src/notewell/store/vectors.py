"""Checks, packs and compares vectors with NumPy, for every storage engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from notewell.errors import BadVectorError, IndexCorruptError
from notewell.types import Match

if TYPE_CHECKING:
    from numpy.typing import NDArray  # costs 10 ms, and only annotations use it

    from notewell.protocols import Matrix, Vector

    IdsAndRows = tuple[NDArray[np.int64], Matrix]

_UNIT_TOLERANCE = 1e-3  # float16 rows of unit vectors stay within 1e-4; a second pass must not change them
_CORRUPT_TOLERANCE = 0.01  # of the squared length; rounding to float16 moves it by less than a thousandth
_BLOCK_ROWS = 64  # 0.2 MB in double precision at 384 dimensions: allocating more costs more than the sums
_DECIMALS = 6  # float16 has three; rounding makes equal vectors score equally on every machine
_SAMPLE_STEP = 16
_NEAR_TIE = np.float32(1e-5)  # single precision may score equal vectors apart by 1e-7: never cut between them
CANDIDATES_PER_RESULT = 2  # 400 for 200: recall@24 is 1.0 among 100,000; each one more is another row to read
_FEWEST_CANDIDATES = 400  # the same candidates for every limit up to 200, so that a higher limit only appends results
_USUAL_DIMENSIONS = 384  # of the measurement above; codes of shorter vectors are less exact, so more rows are read
# Some 10,000 rows of 384 dimensions. A search compares 400 rows exactly: from SQLite in 1.3 ms, from memory in 0.1 ms.
_CACHE_BYTES = 16 * 2**20


# --- as stored -----------------------------------------------------------------------------------


def checked_matrix(vectors: Iterable[Vector], dimensions: int) -> Matrix:
    """Return the vectors as unit rows; raise BadVectorError for the wrong length, NaN, infinity or zero."""
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
    return [row.tobytes() for row in matrix.astype("<f2")]


def unpack(path: Path, blobs: Sequence[bytes], *, dimensions: int | None = None, units: bool = True) -> Matrix:
    """Return float16 bytes from the database at `path` as rows; raise IndexCorruptError if they are invalid.

    `units` checks the length of every row, which takes longer than unpacking it.
    """
    try:
        halves = np.frombuffer(b"".join(blobs), "<f2").reshape(len(blobs), -1) if blobs else np.empty((0, 0), "<f2")
    except (TypeError, ValueError) as error:  # not bytes, or not of one length
        raise _corrupt(path) from error
    rows: Matrix = halves.astype(np.float32)
    if units and not (np.abs(np.einsum("ij,ij->i", rows, rows) - 1) < _CORRUPT_TOLERANCE).all():  # also catches NaN
        raise _corrupt(path)
    if dimensions is None:
        return rows
    if len(rows) and rows.shape[1] != dimensions:
        raise _corrupt(path)
    return rows.reshape(len(blobs), dimensions)


def _corrupt(path: Path) -> IndexCorruptError:
    return IndexCorruptError(f"{path}: a vector in it is corrupt", path=path)


class RowCache:
    """Caches exact rows of one generation; any change of vectors empties it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self._slots: dict[int, int] = {}
        self._rows: Matrix = np.empty((0, 0), np.float32)

    def rows(
        self,
        chunk_ids: Collection[int],
        dimensions: int,
        *,
        generation: int,
        read: Callable[[Collection[int]], IdsAndRows],
    ) -> IdsAndRows:
        """Return the chunks that have a vector, in no particular order, and their rows.

        `generation` is that of the caller's snapshot, from which `read` reads the rows that are not cached.
        """
        asked = list(chunk_ids)
        with self._lock:
            if generation > self._generation:
                self._begin(generation, dimensions)
            slots = self._slots if generation == self._generation else {}
            known = [chunk_id for chunk_id in asked if chunk_id in slots]
            cached = [slots[chunk_id] for chunk_id in known]
            rows = self._rows[cached] if known else np.empty((0, dimensions), np.float32)
        if len(known) == len(asked):  # nearly always, in a warm process
            return np.array(asked, np.int64), rows
        read_ids, read_rows = read(set(asked).difference(known))
        self._keep(generation, read_ids.tolist(), read_rows)
        return np.concatenate([np.array(known, np.int64), read_ids]), np.concatenate([rows, read_rows])

    def _begin(self, generation: int, dimensions: int) -> None:
        self._generation = generation
        self._slots = {}
        if self._rows.shape[1] != dimensions:
            # Untouched pages cost no memory.
            self._rows = np.empty((_CACHE_BYTES // (4 * dimensions), dimensions), np.float32)

    def _keep(self, generation: int, chunk_ids: list[int], rows: Matrix) -> None:
        with self._lock:
            if generation != self._generation or len(chunk_ids) > len(self._rows):
                return
            if len(self._slots) + len(chunk_ids) > len(self._rows):
                self._slots = {}
            fresh = [place for place, chunk_id in enumerate(chunk_ids) if chunk_id not in self._slots]
            first = len(self._slots)
            self._rows[first : first + len(fresh)] = rows[fresh]
            self._slots.update((chunk_ids[place], first + n) for n, place in enumerate(fresh))


# --- compared ------------------------------------------------------------------------------------


def cosines(rows: Matrix, vector: Vector) -> NDArray[np.float64]:
    """Return the cosine of each unit row with a unit vector, independent of the other rows.

    Computed in double precision and rounded, so that the order of summation does not show.
    """
    query = vector.astype(np.float64)
    blocks = [
        rows[start : start + _BLOCK_ROWS].astype(np.float64) @ query for start in range(0, len(rows), _BLOCK_ROWS)
    ]
    exact = np.concatenate([np.empty(0, np.float64), *blocks])
    return np.clip(np.round(exact, _DECIMALS), -1.0, 1.0)


def nearest(ids: NDArray[np.int64], rows: Matrix, vector: Vector, limit: int) -> list[Match]:
    """Return the chunks nearest to a unit vector, highest cosine first, ties by chunk id."""
    scores = cosines(rows, vector)
    best = np.lexsort((ids, -scores))[:limit]
    return list(map(Match, ids[best].tolist(), scores[best].tolist()))


@dataclass(frozen=True, slots=True)
class Estimated:
    """Chunks with estimates of their cosine."""

    ids: NDArray[np.int64]
    estimates: NDArray[np.float32]

    def among(self, permitted: NDArray[np.int64]) -> Estimated:
        """Return those whose id is permitted."""
        kept = np.isin(self.ids, permitted, kind="table")
        return Estimated(self.ids[kept], self.estimates[kept])


def candidates_wanted(limit: int, dimensions: int) -> int:
    """Return how many candidates by codes include, with very few misses, the best `limit` by rows."""
    scarcity = max(1.0, _USUAL_DIMENSIONS / dimensions)
    return round(scarcity * max(limit * CANDIDATES_PER_RESULT, _FEWEST_CANDIDATES))


def best_ids(parts: Sequence[Estimated], wanted: int) -> NDArray[np.int64]:
    """Return the `wanted` ids with the highest estimates, and those that tie with the last."""
    estimates = np.concatenate([np.empty(0, np.float32), *(part.estimates for part in parts)])
    if len(estimates) > wanted:
        cut = _nth_highest(estimates, wanted) - _NEAR_TIE
        parts = [Estimated(part.ids[kept], part.estimates) for part in parts if (kept := part.estimates >= cut).any()]
    return np.concatenate([np.empty(0, np.int64), *(part.ids for part in parts)])


def _nth_highest(estimates: NDArray[np.float32], nth: int) -> np.float32:
    sample = estimates[::_SAMPLE_STEP]
    expected = 2 * nth // _SAMPLE_STEP  # twice as many as needed, in case the sample is skewed
    if 0 < expected < len(sample):
        # Partitioning 100,000 numbers takes 0.9 ms; looking only at those above a sampled threshold, 0.1 ms.
        threshold = np.partition(sample, len(sample) - expected)[len(sample) - expected]
        above = estimates[estimates >= threshold]
        if len(above) >= nth:
            estimates = above
    highest: np.float32 = np.partition(estimates, len(estimates) - nth)[len(estimates) - nth]
    return highest
