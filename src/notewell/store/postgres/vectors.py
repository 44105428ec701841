"""Finds the chunks nearest to a vector, by the rows of a generation or by compact codes.

Up to `EXACT_LIMIT` vectors the server compares the rows. Above it, codes in segments of a few thousand vectors propose
candidates, and the rows decide. Segments are never patched, because PostgreSQL would rewrite them: the server compares
vectors that are newer than the last segment, and removed ones have no row.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from notewell.errors import IndexCorruptError
from notewell.store.postgres.connection import HalfVector, HalfVectors, half_rows
from notewell.store.postgres.totals import ScopeFilter
from notewell.store.scopes import ALL_SOURCES
from notewell.store.vector_codes import REFIT_GROWTH, Codec, Quantization, codec_of
from notewell.store.vectors import Estimated, RowCache, best_ids, candidates_wanted, checked_matrix, cosines, nearest
from notewell.types import Match

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.protocols import Matrix, Vector
    from notewell.store.postgres.connection import Database
    from notewell.store.postgres.totals import Totals
    from notewell.store.vector_codes import ReadyCodes
    from notewell.types import Scope, SourceName

EXACT_LIMIT = 20_000  # 14 ms of server CPU at 384 dimensions; codes take 10 ms of client and server together
_TAIL = 2_048  # vectors in no segment, about 1 ms of the server; more become a segment
_SPARE = 32  # more candidates than asked for, because the server rounds the query to half precision
_DEAD_SHARE = 4  # fit the codes again once a quarter belongs to removed chunks
_READ_AT_ONCE = 4_096
_CACHE_BYTES = 512 * 2**20  # of codes: some 1.3 million chunks in bytes, ten million in bits
_SOURCES = sorted(ALL_SOURCES)  # by their number in a segment


class VectorTable:
    """The vectors of a generation; all snapshots of a process share its cache."""

    def __init__(self, exact_limit: int = EXACT_LIMIT, tail: int = _TAIL) -> None:
        self._exact_limit = exact_limit
        self._tail = tail
        self._rows = RowCache()
        self._segments = _SegmentCache()

    # --- written, in the caller's transaction ----------------------------------------------------

    def add(self, db: Database, totals: Totals, source: SourceName, chunk_ids: Sequence[int], matrix: Matrix) -> None:
        """Store checked vectors."""
        db.learn_vectors()
        db.rows(
            "INSERT INTO notewell.vectors (tenant, generation, source, chunk, embedding)"
            " SELECT %s, %s, %s, * FROM unnest(%s::int[], %s)",
            (*totals.key, source, list(chunk_ids), HalfVectors(matrix)),
        )
        totals.vectors += len(chunk_ids)
        totals.change_vectors()

    def remove(self, db: Database, totals: Totals, chunk_ids: Collection[int]) -> None:
        """Delete the vectors of chunks; their codes stay, without rows."""
        totals.vectors -= db.count(
            "DELETE FROM notewell.vectors WHERE tenant = %s AND generation = %s AND chunk = ANY(%s)",
            (*totals.key, list(chunk_ids)),
        )
        totals.change_vectors()

    def drop_segments(self, db: Database, totals: Totals) -> None:
        """Delete the codes; the server compares all rows until `tidy` creates new ones."""
        for table in ("vector_codecs", "vector_segments"):
            db.rows(f"DELETE FROM notewell.{table} WHERE tenant = %s AND generation = %s", totals.key)
        totals.change_vectors()

    def tidy(self, db: Database, totals: Totals) -> None:
        """Update the codes; cheap when there is little to do."""
        fitted = _Fitted.stored(db, totals)
        if totals.vectors <= self._exact_limit:
            if fitted is not None:
                self.drop_segments(db, totals)
            return
        coded, newer = _coded(db, totals), _newer(db, totals, fitted)
        removed = coded - (totals.vectors - newer)
        if fitted is None or totals.vectors >= REFIT_GROWTH * fitted.fitted_on or removed * _DEAD_SHARE > coded:
            self.drop_segments(db, totals)
            fitted, newer = _Fitted.fit(db, totals), totals.vectors
        if newer >= self._tail:
            _extend(db, totals, fitted)

    def findings(self, db: Database, totals: Totals) -> list[str]:
        """Return a finding on old vectors that are in no segment."""
        fitted = _Fitted.stored(db, totals)
        if fitted is None:
            leftovers = _coded(db, totals)
            return [f"{leftovers} vector codes belong to no codec"] if leftovers else []
        coded = np.concatenate([np.empty(0, np.int64), *(part.ids for part in self._segments.of(db, totals, fitted))])
        found = db.rows(
            "SELECT chunk FROM notewell.vectors WHERE tenant = %s AND generation = %s AND chunk <= %s",
            (*totals.key, fitted.last_chunk),
        )
        missing = len(np.setdiff1d(np.array([chunk for (chunk,) in found], np.int64), coded))
        return [f"{missing} vectors are missing among the codes"] if missing else []

    # --- read ------------------------------------------------------------------------------------

    def matches(
        self, db: Database, totals: Totals, vector: Vector, *, dimensions: int, limit: int, scope: Scope
    ) -> list[Match]:
        """Return the nearest chunks, highest cosine first, ties by chunk id."""
        query = checked_matrix([vector], dimensions)[0]
        db.learn_vectors()
        fitted = _Fitted.stored(db, totals) if totals.vectors > self._exact_limit else None
        if fitted is None:
            found = _nearest(db, totals, query, limit + _SPARE, scope)
            ids, rows = self._exact(db, totals, found, dimensions)
        else:
            ids, rows = self._by_codes(db, totals, query, fitted, limit=limit, scope=scope)
        return nearest(ids, rows, query, limit)

    def _by_codes(
        self, db: Database, totals: Totals, query: Vector, fitted: _Fitted, *, limit: int, scope: Scope
    ) -> tuple[NDArray[np.int64], Matrix]:
        """Return candidates and their rows; if codes of removed chunks have none, more candidates are read."""
        dimensions = len(query)
        wanted = candidates_wanted(limit, dimensions)
        newer = _nearest(db, totals, query, limit + _SPARE, scope, after=fitted.last_chunk)
        permitted = _permitted(db, totals, scope) if scope.picks_documents else None
        if permitted is not None and len(permitted) <= wanted:
            return self._exact(db, totals, permitted.tolist(), dimensions)
        scan = fitted.codec.scan(query)
        parts = [part.estimated(scan.estimates(part.codes), scope) for part in self._segments.of(db, totals, fitted)]
        if permitted is not None:
            parts = [part.among(permitted) for part in parts]
        while True:
            candidates = best_ids(parts, wanted).tolist()
            ids, rows = self._exact(db, totals, [*newer, *candidates], dimensions)
            missing = len(newer) + len(candidates) - len(ids)
            if not missing or len(candidates) < wanted:
                return ids, rows
            live = len(candidates) - missing
            if live >= candidates_wanted(limit, dimensions):
                return ids, rows
            wanted = 2 * wanted

    def scores(
        self, db: Database, totals: Totals, vector: Vector, chunk_ids: Collection[int], *, dimensions: int
    ) -> Mapping[int, float]:
        """Return the exact cosine of the chunks that have a vector."""
        ids, rows = self._exact(db, totals, chunk_ids, dimensions)
        found = cosines(rows, checked_matrix([vector], dimensions)[0])
        return dict(zip(ids.tolist(), found.tolist(), strict=True))

    def _exact(
        self, db: Database, totals: Totals, chunk_ids: Collection[int], dimensions: int
    ) -> tuple[NDArray[np.int64], Matrix]:
        return self._rows.rows(
            chunk_ids,
            dimensions,
            generation=totals.cache_version,
            read=lambda missing: read_rows(db, totals, missing, dimensions),
        )

    def of_chunks(self, db: Database, totals: Totals, chunk_ids: Collection[int]) -> dict[int, Vector]:
        """Return the stored vectors of chunks."""
        ids, rows = read_rows(db, totals, chunk_ids)
        return dict(zip(ids.tolist(), rows, strict=True))


# --- rows ----------------------------------------------------------------------------------------


def read_rows(
    db: Database, totals: Totals, chunk_ids: Collection[int], dimensions: int = 0
) -> tuple[NDArray[np.int64], Matrix]:
    """Return the chunks that have a vector, and their rows."""
    found = db.rows(
        "SELECT chunk, embedding FROM notewell.vectors WHERE tenant = %s AND generation = %s AND chunk = ANY(%s)",
        (*totals.key, list(chunk_ids)),
    )
    ids = np.array([chunk for chunk, _ in found], np.int64)
    if not found:
        return ids, np.empty((0, dimensions), np.float32)
    try:
        return ids, half_rows([row for _, row in found]).reshape(len(ids), dimensions or -1)
    except ValueError as error:
        raise IndexCorruptError("a vector in the database has the wrong length") from error


def _nearest(
    db: Database, totals: Totals, query: Vector, wanted: int, scope: Scope, *, after: int | None = None
) -> list[int]:
    """Return the chunks that the server finds nearest, perhaps only those after a chunk."""
    joined, condition, values = ScopeFilter.of(scope).on("vectors.chunk")
    # A literal: with a parameter the planner would expect a third of all vectors to be newer, and scan them.
    later = f" AND vectors.chunk > {int(after)}" if after is not None else ""
    found = db.rows(
        f"SELECT vectors.chunk FROM notewell.vectors{joined} WHERE vectors.tenant = %s AND vectors.generation = %s"
        f"{later}{condition} ORDER BY embedding {db.nearness} %s, vectors.chunk LIMIT %s",
        (*totals.key, *values, HalfVector(query), wanted),
    )
    return [chunk_id for (chunk_id,) in found]


def _permitted(db: Database, totals: Totals, scope: Scope) -> NDArray[np.int64]:
    joined, condition, values = ScopeFilter.of(scope).on("vectors.chunk")
    found = db.rows(
        f"SELECT vectors.chunk FROM notewell.vectors{joined} WHERE vectors.tenant = %s AND vectors.generation = %s"
        f"{condition} ORDER BY vectors.chunk",
        (*totals.key, *values),
    )
    return np.array([chunk_id for (chunk_id,) in found], np.int64)


def _batches(db: Database, totals: Totals, after: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8], Matrix]]:
    """Yield ids, sources and rows of all vectors after a chunk, in batches."""
    while found := db.rows(
        "SELECT chunk, source, embedding FROM notewell.vectors WHERE tenant = %s AND generation = %s AND chunk > %s"
        " ORDER BY chunk LIMIT %s",
        (*totals.key, after, _READ_AT_ONCE),
    ):
        after = found[-1][0]
        ids = np.array([chunk for chunk, _, _ in found], np.int64)
        sources = np.array([_SOURCES.index(source) for _, source, _ in found], np.uint8)
        yield ids, sources, half_rows([row for _, _, row in found])


# --- codes ---------------------------------------------------------------------------------------


class _Fitted(NamedTuple):
    """A codec, the number of vectors it was fitted on, and the last chunk in a segment."""

    codec: Codec
    fitted_on: int
    last_chunk: int

    @classmethod
    def stored(cls, db: Database, totals: Totals) -> _Fitted | None:
        found = db.rows(
            "SELECT name, mean, fitted_on, last_chunk FROM notewell.vector_codecs"
            " WHERE tenant = %s AND generation = %s",
            totals.key,
        )
        if not found:
            return None
        name, blob, fitted_on, last_chunk = found[0]
        mean = np.frombuffer(blob, "<f4")
        return cls(codec_of(name, len(mean), mean), fitted_on, last_chunk)

    @classmethod
    def fit(cls, db: Database, totals: Totals) -> _Fitted:
        """Fit a codec on all vectors and store it, without segments."""
        name = cast("Quantization", totals.meta["quantization"])
        total = sum((rows.sum(axis=0, dtype=np.float64) for _, _, rows in _batches(db, totals, 0)), np.float64(0))
        mean = np.asarray(total / totals.vectors).astype("<f4")
        db.rows(
            "INSERT INTO notewell.vector_codecs VALUES (%s, %s, %s, %s, %s, 0)",
            (*totals.key, name, mean.tobytes(), totals.vectors),
        )
        return cls(codec_of(name, len(mean), mean), totals.vectors, 0)


def _coded(db: Database, totals: Totals) -> int:
    count: int = db.value(
        "SELECT coalesce(sum(used), 0)::int FROM notewell.vector_segments WHERE tenant = %s AND generation = %s",
        totals.key,
    )
    return count


def _newer(db: Database, totals: Totals, fitted: _Fitted | None) -> int:
    """Return how many vectors are in no segment."""
    if fitted is None:
        return totals.vectors
    count: int = db.value(
        "SELECT count(*) FROM notewell.vectors WHERE tenant = %s AND generation = %s"
        f" AND chunk > {int(fitted.last_chunk)}",  # see `_nearest`
        totals.key,
    )
    return count


def _extend(db: Database, totals: Totals, fitted: _Fitted) -> None:
    """Put newer vectors into segments; rewrite the last segment with them if it is less than half full."""
    codec, slots = fitted.codec, fitted.codec.slots
    segment, first = 0, fitted.last_chunk
    found = db.rows(
        "SELECT segment, used, ids FROM notewell.vector_segments WHERE tenant = %s AND generation = %s"
        " ORDER BY segment DESC LIMIT 1",
        totals.key,
    )
    if found:
        segment, used, ids = found[0]
        if used * 2 < slots:
            first = int(np.frombuffer(ids, "<i4")[0]) - 1
            db.rows(
                "DELETE FROM notewell.vector_segments WHERE tenant = %s AND generation = %s AND segment = %s",
                (*totals.key, segment),
            )
    totals.change_vectors()
    waiting: list[tuple[NDArray[np.int64], NDArray[np.uint8], Matrix]] = []
    last = fitted.last_chunk

    def write(count: int) -> None:
        nonlocal segment, waiting, last
        ids, sources, rows = (np.concatenate(column) for column in zip(*waiting, strict=True))
        waiting = [(ids[count:], sources[count:], rows[count:])] if count < len(ids) else []
        segment += 1
        last = int(ids[:count][-1])
        codes = codec.encode(rows[:count])
        db.rows(
            "INSERT INTO notewell.vector_segments VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            (*totals.key, segment, totals.vector_generation, len(codes), ids[:count].astype("<i4").tobytes(),
             sources[:count].tobytes(), codes.tobytes()),
        )  # fmt: skip

    for batch in _batches(db, totals, first):
        waiting.append(batch)
        while sum(len(ids) for ids, _, _ in waiting) >= slots:
            write(slots)
    if waiting:
        write(sum(len(ids) for ids, _, _ in waiting))
    db.rows(
        "UPDATE notewell.vector_codecs SET last_chunk = %s WHERE tenant = %s AND generation = %s", (last, *totals.key)
    )


@dataclass(frozen=True, slots=True)
class _Segment:
    """One version of one segment, ready to be scanned."""

    ids: NDArray[np.int64]
    sources: NDArray[np.uint8]
    codes: ReadyCodes
    bytes: int

    def estimated(self, estimates: NDArray[np.float32], scope: Scope) -> Estimated:
        """Return the estimates of chunks of the right sources."""
        if scope.sources is None or scope.picks_documents:
            return Estimated(self.ids, estimates)
        kept = np.isin(self.sources, [_SOURCES.index(source) for source in scope.sources])
        return Estimated(self.ids[kept], estimates[kept])


class _SegmentCache:
    """An LRU cache of decoded segments by (generation, segment, version), whose content never changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[int, int, int], _Segment] = OrderedDict()

    def of(self, db: Database, totals: Totals, fitted: _Fitted) -> list[_Segment]:
        """Return the segments in the snapshot of `db`."""
        listed = db.rows(
            "SELECT segment, version FROM notewell.vector_segments WHERE tenant = %s AND generation = %s"
            " ORDER BY segment",
            totals.key,
        )
        keys = [(totals.generation, segment, version) for segment, version in listed]
        found: dict[tuple[int, int, int], _Segment] = {}
        with self._lock:
            for key in keys:
                known = self._known.get(key)
                if known is not None:
                    self._known.move_to_end(key)
                    found[key] = known
        for key in keys:
            if key not in found:
                found[key] = self._read(db, totals, fitted.codec, key)
        return [found[key] for key in keys]

    def _read(self, db: Database, totals: Totals, codec: Codec, key: tuple[int, int, int]) -> _Segment:
        ids, sources, codes = db.rows(
            "SELECT ids, sources, codes FROM notewell.vector_segments"
            " WHERE tenant = %s AND generation = %s AND segment = %s",
            (*totals.key, key[1]),
        )[0]
        segment = _Segment(
            np.frombuffer(ids, "<i4").astype(np.int64),
            np.frombuffer(sources, np.uint8),
            codec.ready(np.frombuffer(codes, np.uint8).reshape(-1, codec.code_bytes)),
            len(codes) + 9 * len(ids) // 4,
        )
        with self._lock:
            self._known[key] = segment
            while sum(each.bytes for each in self._known.values()) > _CACHE_BYTES and len(self._known) > 1:
                self._known.popitem(last=False)
        return segment
