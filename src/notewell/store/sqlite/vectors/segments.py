"""The default `VectorIndex`: codes in segment blobs; unit rows and queries come in, candidate ids go out.

Up to `EXACT_LIMIT` vectors there are no codes at all: the float16 rows are kept in memory and compared one by one.
Above it, each source has segments of a few thousand slots. A slot is overwritten in place when its chunk goes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from notewell.store.sqlite.connection import Database
from notewell.store.sqlite.scopes import chunk_ids_in
from notewell.store.sqlite.vectors import Quantization
from notewell.store.sqlite.vectors.codecs import Codec, codec_of
from notewell.store.sqlite.vectors.rows import every_vector
from notewell.store.sqlite.vectors.scanning import ExactRows, Segment, SegmentCache, best_ids
from notewell.store.sqlite.vectors.slots import free_slots, take_slots
from notewell.types import Scope, SourceName

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.protocols import Matrix, Vector

EXACT_LIMIT = 2048  # 3 MB in memory and 0.2 ms a query at 384 dimensions: codes would save nothing
CANDIDATES_PER_RESULT = 2  # 400 for 200: recall@24 is 1.0 among 100,000, and of each more the exact row must be read
_FEWEST_CANDIDATES = 400  # the same candidates for every limit up to 200, so that the best k begin the best k + n
_USUAL_DIMENSIONS = 384  # of the measurement above; the bits of shorter vectors say less, so more rows are read
_EXACT_SPARE = 32  # without codes only the rounding of close calls is left to the exact rows
_REFIT_GROWTH = 4  # the mean of a quarter of the vectors is still close to that of all


class SegmentIndex:
    """Implements `VectorIndex`; what a process has read stays in memory and is shared by all of its snapshots."""

    def __init__(self) -> None:
        self._cache = SegmentCache()

    def add(self, db: Database, source: SourceName, chunk_ids: Sequence[int], matrix: Matrix) -> None:
        codec = _stored_codec(db)
        if codec is None:
            if _count(db) > EXACT_LIMIT:
                self.rebuild(db)
            return
        take_slots(db, codec, source, np.array(chunk_ids, np.int64), matrix)

    def remove(self, db: Database, chunk_ids: Collection[int]) -> None:
        codec = _stored_codec(db)
        if codec is not None:
            free_slots(db, codec, chunk_ids)

    def rebuild(self, db: Database) -> None:
        self.clear(db)
        db.rows("UPDATE totals SET vector_generation = vector_generation + 1")  # no old code under a new version
        count = _count(db)
        if count <= EXACT_LIMIT:
            return
        name: Quantization = db.value("SELECT value FROM meta WHERE key = 'quantization'")
        mean = _mean(db, count)
        db.rows(
            "INSERT INTO vector_codec (id, name, mean, fitted_on) VALUES (1, ?, ?, ?)", (name, mean.tobytes(), count)
        )
        codec = codec_of(name, len(mean), mean)
        for source, ids, matrix in every_vector(db):
            take_slots(db, codec, source, ids, matrix)

    def clear(self, db: Database) -> None:
        for table in ("vector_codec", "vector_segments", "segment_blobs", "segment_slots"):
            db.rows(f"DELETE FROM {table}")  # noqa: S608

    def tidy(self, db: Database) -> None:
        fitted_on = db.value("SELECT fitted_on FROM vector_codec")
        if fitted_on is not None and _count(db) >= _REFIT_GROWTH * fitted_on:
            self.rebuild(db)

    def candidates(self, db: Database, vector: Vector, *, limit: int, scope: Scope) -> NDArray[np.int64]:
        codec = _stored_codec(db)
        exact = codec is None or _count(db) <= EXACT_LIMIT
        wanted = limit + _EXACT_SPARE
        if not exact:
            scarcity = max(1.0, _USUAL_DIMENSIONS / len(vector))
            wanted = round(scarcity * max(limit * CANDIDATES_PER_RESULT, _FEWEST_CANDIDATES))
        permitted = None
        if scope.picks_documents or (exact and scope.sources is not None):
            permitted = np.array(chunk_ids_in(db, scope), np.int64)
            if len(permitted) <= wanted:
                return permitted
        if codec is None or exact:
            parts = [self._exact_rows(db).estimated(vector)]
        else:
            scan = codec.scan(vector)
            parts = [segment.estimated(scan) for segment in self._segments(db, codec, scope.sources)]
        if permitted is not None:
            parts = [part.among(permitted) for part in parts]
        return best_ids(parts, wanted)

    def findings(self, db: Database) -> list[str]:
        if _stored_codec(db) is None:
            leftovers = db.value("SELECT count(*) FROM segment_slots") + db.value(
                "SELECT count(*) FROM vector_segments"
            )
            return [f"{leftovers} rows of vector segments belong to no codec"] if leftovers else []
        found = []
        placed: dict[int, tuple[int, int]] = {}
        for segment_id, used, freed, blob in db.rows(
            "SELECT id, used, freed, ids FROM vector_segments LEFT JOIN segment_blobs ON segment_id = id"
        ):
            ids = np.frombuffer(blob or b"", "<i8")[:used]
            live = np.flatnonzero(ids)
            if used - len(live) != freed:
                found.append(f"segment {segment_id} counts {freed} free slots and has {used - len(live)}")
            placed.update((int(ids[slot]), (segment_id, int(slot))) for slot in live)
        recorded = {row[0]: (row[1], row[2]) for row in db.rows("SELECT chunk_id, segment_id, slot FROM segment_slots")}
        if recorded != placed:
            found.append(f"{len(recorded.items() ^ placed.items())} vector slots are recorded wrongly")
        stored = {chunk_id for (chunk_id,) in db.rows("SELECT chunk_id FROM vectors")}
        if stored != placed.keys():
            found.append(f"{len(stored ^ placed.keys())} vectors differ between their rows and the segments")
        return found

    def _exact_rows(self, db: Database) -> ExactRows:
        generation: int = db.value("SELECT vector_generation FROM totals")
        return self._cache.exact_rows(db, generation)

    def _segments(self, db: Database, codec: Codec, sources: Collection[SourceName] | None) -> list[Segment]:
        listed = db.rows("SELECT id, version, used, source FROM vector_segments ORDER BY id")
        self._cache.keep_only({(segment_id, version) for segment_id, version, _, _ in listed})
        return [
            self._cache.segment(db, codec, segment_id, version, used)
            for segment_id, version, used, source in listed
            if sources is None or source in sources
        ]


def _stored_codec(db: Database) -> Codec | None:
    found = db.rows("SELECT name, mean FROM vector_codec")
    if not found:
        return None
    name, blob = found[0]
    mean = np.frombuffer(blob, "<f4")
    return codec_of(name, len(mean), mean)


def _count(db: Database) -> int:
    count: int = db.value("SELECT vectors FROM totals")
    return count


def _mean(db: Database, count: int) -> Vector:
    total = sum((matrix.sum(axis=0, dtype=np.float64) for _, _, matrix in every_vector(db)), start=np.float64(0))
    mean: Vector = np.asarray(total / count).astype("<f4")
    return mean
