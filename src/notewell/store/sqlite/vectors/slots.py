"""Slots of vector segments: chunk ids and unit rows come in, blobs are patched in the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import apsw
import numpy as np

from notewell.store.sqlite.connection import Database, as_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.protocols import Matrix
    from notewell.store.sqlite.vectors.codecs import Codec, Codes

_ID_BYTES = 8
_NO_CHUNK = bytes(_ID_BYTES)  # chunk ids start at 1, so 0 marks a free slot


def take_slots(db: Database, codec: Codec, source: str, chunk_ids: NDArray[np.int64], matrix: Matrix) -> None:
    """Write the codes of new chunks into free slots of their source, adding segments as needed."""
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


def free_slots(db: Database, codec: Codec, chunk_ids: Collection[int]) -> None:
    """Blank the slots of these chunks; a segment with nothing left in it goes altogether."""
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
    """Yield the stretches of neighbouring slots, each of which is one write."""
    edges = [0, *(np.flatnonzero(np.diff(slots) != 1) + 1).tolist(), len(slots)]
    for start, end in pairwise(edges):
        if start < end:
            yield slice(start, end)
