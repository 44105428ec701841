"""What a process keeps in memory to scan vectors: rows read from a snapshot come in, estimated cosines go out."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from notewell.store.sqlite.connection import Database
from notewell.store.sqlite.vectors.rows import unpack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.protocols import Matrix, Vector
    from notewell.store.sqlite.vectors.codecs import Codec, Estimates, ReadyCodes, Scan

_SAMPLE_STEP = 16
_NEAR_TIE = np.float32(1e-5)  # single precision may rank equal vectors apart by 1e-7: never cut between them


@dataclass(frozen=True, slots=True)
class Estimated:
    """Chunks with about their cosine."""

    ids: NDArray[np.int64]
    estimates: Estimates

    def among(self, permitted: NDArray[np.int64]) -> Estimated:
        """Return those whose id is permitted."""
        kept = np.isin(self.ids, permitted, kind="table")
        return Estimated(self.ids[kept], self.estimates[kept])


@dataclass(frozen=True, slots=True)
class Segment:
    """The live slots of one version of one segment."""

    ids: NDArray[np.int64]
    codes: ReadyCodes

    def estimated(self, scan: Scan) -> Estimated:
        return Estimated(self.ids, scan.estimates(self.codes))


@dataclass(frozen=True, slots=True)
class ExactRows:
    """All vectors of a small index."""

    ids: NDArray[np.int64]
    matrix: Matrix

    def estimated(self, vector: Vector) -> Estimated:
        return Estimated(self.ids, self.matrix @ vector if len(self.ids) else np.empty(0, np.float32))


class SegmentCache:
    """Decoded segments by (segment, version): a version names one content for good, so every snapshot gets its own.

    Versions come from a counter that only committed transactions advance, and readers see committed rows only.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._segments: dict[tuple[int, int], Segment] = {}
        self._exact: tuple[int, ExactRows] | None = None

    def segment(self, db: Database, codec: Codec, segment_id: int, version: int, used: int) -> Segment:
        """Return one segment as the snapshot of `db` sees it."""
        with self._lock:
            known = self._segments.get((segment_id, version))
        if known is not None:
            return known
        blobs = db.rows("SELECT ids, codes FROM segment_blobs WHERE segment_id = ?", (segment_id,))
        ids = np.frombuffer(blobs[0][0], "<i8")[:used].astype(np.int64)
        codes = np.frombuffer(blobs[0][1], np.uint8).reshape(-1, codec.code_bytes)[:used]
        live = ids != 0
        if not live.all():
            ids, codes = ids[live], codes[live]
        loaded = Segment(ids, codec.ready(codes))
        with self._lock:
            self._segments[(segment_id, version)] = loaded
        return loaded

    def keep_only(self, current: Collection[tuple[int, int]]) -> None:
        """Forget versions that are gone; an older snapshot that still needs one reads it again."""
        with self._lock:
            if self._segments.keys() - current:
                self._segments = {key: segment for key, segment in self._segments.items() if key in current}

    def exact_rows(self, db: Database, generation: int) -> ExactRows:
        """Return every vector as the snapshot of `db` sees it."""
        with self._lock:
            known = self._exact
        if known is not None and known[0] == generation:
            return known[1]
        found = db.rows("SELECT chunk_id, embedding FROM vectors ORDER BY chunk_id")
        rows = ExactRows(
            np.array([chunk_id for chunk_id, _ in found], np.int64), unpack(db.path, [blob for _, blob in found])
        )
        with self._lock:
            self._exact = (generation, rows)
        return rows


def best_ids(parts: Sequence[Estimated], wanted: int) -> NDArray[np.int64]:
    """Return the ids with the highest estimates: `wanted`, and those that tie with the last of them."""
    estimates = np.concatenate([np.empty(0, np.float32), *(part.estimates for part in parts)])
    if len(estimates) > wanted:
        cut = _nth_highest(estimates, wanted) - _NEAR_TIE
        parts = [Estimated(part.ids[kept], part.estimates) for part in parts if (kept := part.estimates >= cut).any()]
    return np.concatenate([np.empty(0, np.int64), *(part.ids for part in parts)])


def _nth_highest(estimates: Estimates, nth: int) -> np.float32:
    sample = estimates[::_SAMPLE_STEP]
    expected = 2 * nth // _SAMPLE_STEP  # twice as many as needed, so that a lopsided sample hardly ever has too few
    if 0 < expected < len(sample):
        # Partitioning 100,000 numbers takes 0.9 ms; looking only at those above a sampled threshold, 0.1 ms.
        threshold = np.partition(sample, len(sample) - expected)[len(sample) - expected]
        above = estimates[estimates >= threshold]
        if len(above) >= nth:
            estimates = above
    highest: np.float32 = np.partition(estimates, len(estimates) - nth)[len(estimates) - nth]
    return highest
