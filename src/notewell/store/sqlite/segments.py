"""The default vector driver: scans compact codes in segment blobs.

Up to `EXACT_LIMIT` vectors there are no codes: the float16 rows are cached in memory and compared. Above it, each
source has segments of a few thousand slots, which are patched in place.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import apsw
import numpy as np

from notewell.store.sqlite.connection import Database, as_json
from notewell.store.sqlite.documents import chunk_ids_in
from notewell.store.sqlite.vector_search import every_vector
from notewell.store.vector_codes import REFIT_GROWTH, Codec, Quantization, codec_of
from notewell.store.vectors import Estimated, best_ids, candidates_wanted, unpack
from notewell.types import Scope, SourceName

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.protocols import Matrix, Vector
    from notewell.store.vector_codes import Codes, ReadyCodes

EXACT_LIMIT = 2048  # 3 MB of memory and 0.2 ms per query at 384 dimensions: codes would save nothing
_EXACT_SPARE = 32  # without codes, the exact rows decide close calls only
_ID_BYTES = 8
_NO_CHUNK = bytes(_ID_BYTES)  # chunk ids start at 1, so 0 marks a free slot


class SegmentIndex:
    """Implements `VectorIndex`; all snapshots of a process share its cache."""

    def __init__(self) -> None:
        self._cache = _SegmentCache()

    def add(self, db: Database, source: SourceName, chunk_ids: Sequence[int], matrix: Matrix) -> None:
        codec = _stored_codec(db)
        if codec is None:
            if _count(db) > EXACT_LIMIT:
                self.rebuild(db)
            return
        _take_slots(db, codec, source, np.array(chunk_ids, np.int64), matrix)

    def remove(self, db: Database, chunk_ids: Collection[int]) -> None:
        codec = _stored_codec(db)
        if codec is not None:
            _free_slots(db, codec, chunk_ids)

    def rebuild(self, db: Database) -> None:
        self.clear(db)
        db.rows("UPDATE totals SET vector_generation = vector_generation + 1")  # which invalidates cached segments
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
            _take_slots(db, codec, source, ids, matrix)

    def clear(self, db: Database) -> None:
        for table in ("vector_codec", "vector_segments", "segment_blobs", "segment_slots"):
            db.rows(f"DELETE FROM {table}")  # noqa: S608

    def tidy(self, db: Database) -> None:
        fitted_on = db.value("SELECT fitted_on FROM vector_codec")
        if fitted_on is not None and _count(db) >= REFIT_GROWTH * fitted_on:
            self.rebuild(db)

    def candidates(self, db: Database, vector: Vector, *, limit: int, scope: Scope) -> NDArray[np.int64]:
        codec = _stored_codec(db)
        exact = codec is None or _count(db) <= EXACT_LIMIT
        wanted = limit + _EXACT_SPARE
        if not exact:
            wanted = candidates_wanted(limit, len(vector))
        permitted = None
        if scope.picks_documents or (exact and scope.sources is not None):
            permitted = np.array(chunk_ids_in(db, scope), np.int64)
            if len(permitted) <= wanted:
                return permitted
        if codec is None or exact:
            rows = self._cache.exact_rows(db)
            parts = [Estimated(rows.ids, rows.matrix @ vector if len(rows.ids) else np.empty(0, np.float32))]
        else:
            scan = codec.scan(vector)
            segments = self._cache.segments(db, codec, scope.sources)
            parts = [Estimated(segment.ids, scan.estimates(segment.codes)) for segment in segments]
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
            found.append(f"{len(recorded.items() ^ placed.items())} vector slots are recorded incorrectly")
        stored = {chunk_id for (chunk_id,) in db.rows("SELECT chunk_id FROM vectors")}
        if stored != placed.keys():
            found.append(f"{len(stored ^ placed.keys())} vectors differ between their rows and the segments")
        return found


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


# --- in memory -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Segment:
    """The live slots of one version of one segment."""

    ids: NDArray[np.int64]
    codes: ReadyCodes


@dataclass(frozen=True, slots=True)
class _ExactRows:
    """All vectors of a small index."""

    generation: int
    ids: NDArray[np.int64]
    matrix: Matrix


class _SegmentCache:
    """Decoded segments by (segment, version); the content of a version never changes, so each snapshot finds its own.

    Versions come from a counter in the database, of which readers see committed values only.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._segments: dict[tuple[int, int], _Segment] = {}
        self._exact: _ExactRows | None = None

    def segments(self, db: Database, codec: Codec, sources: Collection[SourceName] | None) -> list[_Segment]:
        """Return the segments of these or all sources in the snapshot of `db`."""
        listed = db.rows("SELECT id, version, used, source FROM vector_segments ORDER BY id")
        current = {(segment_id, version) for segment_id, version, _, _ in listed}
        with self._lock:  # an older snapshot reads a dropped version again
            if self._segments.keys() - current:
                self._segments = {key: segment for key, segment in self._segments.items() if key in current}
        return [
            self._segment(db, codec, segment_id, version, used)
            for segment_id, version, used, source in listed
            if sources is None or source in sources
        ]

    def _segment(self, db: Database, codec: Codec, segment_id: int, version: int, used: int) -> _Segment:
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
        loaded = _Segment(ids, codec.ready(codes))
        with self._lock:
            self._segments[(segment_id, version)] = loaded
        return loaded

    def exact_rows(self, db: Database) -> _ExactRows:
        """Return every vector in the snapshot of `db`."""
        generation: int = db.value("SELECT vector_generation FROM totals")
        with self._lock:
            known = self._exact
        if known is not None and known.generation == generation:
            return known
        found = db.rows("SELECT chunk_id, embedding FROM vectors ORDER BY chunk_id")
        ids = np.array([chunk_id for chunk_id, _ in found], np.int64)
        rows = _ExactRows(generation, ids, unpack(db.path, [blob for _, blob in found]))
        with self._lock:
            self._exact = rows
        return rows


# --- on disk, in the caller's transaction --------------------------------------------------------


def _take_slots(db: Database, codec: Codec, source: str, chunk_ids: NDArray[np.int64], matrix: Matrix) -> None:
    """Write codes into free slots of the source, adding segments as needed."""
    codes = codec.encode(matrix)
    written = 0
    while written < len(chunk_ids):
        segment_id, used, freed = _roomy_segment(db, codec, source)
        slots = _open_slots(db, codec, segment_id, used, freed)[: len(chunk_ids) - written]
        part = slice(written, written + len(slots))
        _write(db, segment_id, slots, chunk_ids[part], codes[part])
        appended = int((slots >= used).sum())
        db.rows(
            "UPDATE vector_segments SET used = used + ?, freed = freed - ?, version ="
            " (SELECT vector_generation FROM totals) WHERE id = ?",
            (appended, len(slots) - appended, segment_id),
        )
        written += len(slots)


def _free_slots(db: Database, codec: Codec, chunk_ids: Collection[int]) -> None:
    """Overwrite the slots of chunks with zeros, and delete empty segments."""
    by_segment: defaultdict[int, list[int]] = defaultdict(list)
    for segment_id, slot in db.rows(
        "SELECT segment_id, slot FROM segment_slots WHERE chunk_id IN (SELECT value FROM json_each(?))",
        (as_json(chunk_ids),),
    ):
        by_segment[segment_id].append(slot)
    for segment_id, slots in by_segment.items():
        blank = bytes(codec.code_bytes)
        db.patch_blob("segment_blobs", "ids", segment_id, ((slot * _ID_BYTES, _NO_CHUNK) for slot in slots))
        db.patch_blob("segment_blobs", "codes", segment_id, ((slot * codec.code_bytes, blank) for slot in slots))
        db.rows(
            "UPDATE vector_segments SET freed = freed + ?, version ="
            " (SELECT vector_generation FROM totals) WHERE id = ?",
            (len(slots), segment_id),
        )
        if db.rows("DELETE FROM vector_segments WHERE id = ? AND freed = used RETURNING id", (segment_id,)):
            db.rows("DELETE FROM segment_blobs WHERE segment_id = ?", (segment_id,))
    db.rows("DELETE FROM segment_slots WHERE chunk_id IN (SELECT value FROM json_each(?))", (as_json(chunk_ids),))


def _roomy_segment(db: Database, codec: Codec, source: str) -> tuple[int, int, int]:
    found = db.rows(
        "SELECT id, used, freed FROM vector_segments WHERE source = ? AND (freed > 0 OR used < ?) ORDER BY id LIMIT 1",
        (source, codec.slots),
    )
    if found:
        segment_id, used, freed = found[0]
        return segment_id, used, freed
    segment_id = db.insert(
        "INSERT INTO vector_segments (source, version, used, freed) SELECT ?, vector_generation, 0, 0 FROM totals",
        (source,),
    )
    db.rows(
        "INSERT INTO segment_blobs (segment_id, ids, codes) VALUES (?, ?, ?)",
        (segment_id, apsw.zeroblob(codec.slots * _ID_BYTES), apsw.zeroblob(codec.slots * codec.code_bytes)),
    )
    return segment_id, 0, 0


def _open_slots(db: Database, codec: Codec, segment_id: int, used: int, freed: int) -> NDArray[np.int64]:
    """Return the slots that may be written, freed ones first."""
    fresh = np.arange(used, codec.slots, dtype=np.int64)
    if not freed:
        return fresh
    ids = np.frombuffer(db.value("SELECT ids FROM segment_blobs WHERE segment_id = ?", (segment_id,)), "<i8")
    return np.concatenate([np.flatnonzero(ids[:used] == 0), fresh])


def _write(db: Database, segment_id: int, slots: NDArray[np.int64], chunk_ids: NDArray[np.int64], codes: Codes) -> None:
    code_bytes = codes.shape[1]
    keys = chunk_ids.astype("<i8")
    runs = list(_runs(slots))
    db.patch_blob(
        "segment_blobs", "ids", segment_id, ((int(slots[run.start]) * _ID_BYTES, keys[run].tobytes()) for run in runs)
    )
    db.patch_blob(
        "segment_blobs",
        "codes",
        segment_id,
        ((int(slots[run.start]) * code_bytes, codes[run].tobytes()) for run in runs),
    )
    db.run_many(
        "INSERT INTO segment_slots (chunk_id, segment_id, slot) VALUES (?, ?, ?)",
        ((chunk_id, segment_id, slot) for chunk_id, slot in zip(chunk_ids.tolist(), slots.tolist(), strict=True)),
    )


def _runs(slots: NDArray[np.int64]) -> Iterator[slice]:
    """Yield runs of neighbouring slots, which are written at once."""
    edges = [0, *(np.flatnonzero(np.diff(slots) != 1) + 1).tolist(), len(slots)]
    for start, end in pairwise(edges):
        if start < end:
            yield slice(start, end)
