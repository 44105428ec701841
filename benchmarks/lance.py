"""The notes in, answers out of LanceDB: one table of notewell's chunks with a full-text index, merged as elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lancedb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from benchmarks.contestant import CANDIDATES, Ground, Place, merged
from notewell.indexing.preparation import Preparation
from notewell.sources.notes import NotesSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from notewell.protocols import Vector
    from notewell.types import FileStamp

ROWS_A_WRITE = 4_096  # chunks; every write makes files of its own, so one a note would be unfair
INDEX_FROM = 256_000  # rows; below some hundred thousand its manual calls an exact scan fast enough
_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("first_line", pa.int32()),
        ("last_line", pa.int32()),
        ("context", pa.string()),
        ("text", pa.string()),
        ("vector", pa.list_(pa.float32(), 384)),
    ]
)


class LanceDb:
    """Implements `Contestant`. Cutting notes into chunks is notewell's own, so that both keep the same rows."""

    name = "lancedb"

    def __init__(self, ground: Ground) -> None:
        self.embedder = ground.embedder()
        self._folder = ground.state(self.name)
        self._notes = NotesSource(ground.workspace, ())
        self._workspace = ground.workspace
        self._is_untidy = False
        self._table = lancedb.connect(str(self._folder)).create_table("chunks", schema=_SCHEMA, exist_ok=True)

    def build(self) -> None:
        waiting: list[tuple[str, int, int, str, str]] = []
        for stamp in self._notes.list().files:
            waiting += self._rows(stamp)
            if len(waiting) >= ROWS_A_WRITE:
                self._add(waiting)
                waiting = []
        if waiting:
            self._add(waiting)
        self._table.create_fts_index("text", replace=True)
        if self._table.count_rows() >= INDEX_FROM:
            self._table.create_index(metric="cosine")
        self._table.optimize()

    def sync(self) -> bool:
        return False

    def update(self, path: Path) -> None:
        """Replace the rows of the note; searches also scan what the full-text index does not hold yet.

        The notes are listed, as any program must to see what changed, but compared with nothing: the note is named.
        """
        stored = path.relative_to(self._workspace).as_posix()
        stamp = next(stamp for stamp in self._notes.list().files if stamp.path == stored)
        self._table.delete(f"path = '{stored}'")
        self._add(self._rows(stamp))
        self._is_untidy = True

    def _rows(self, stamp: FileStamp) -> list[tuple[str, int, int, str, str]]:
        document = self._notes.read(stamp)
        chunks = [prepared.chunk for prepared in Preparation().prepare(document)]
        return [(stamp.path, chunk.first_line, chunk.last_line, chunk.context, chunk.text) for chunk in chunks]

    def _add(self, rows: list[tuple[str, int, int, str, str]]) -> None:
        texts = [f"{context}\n{text}" if context else text for _, _, _, context, text in rows]
        parts = [self.embedder.embed_documents(texts[start : start + 64]) for start in range(0, len(texts), 64)]
        columns = [
            pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _SCHEMA, strict=False)
        ]
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.concatenate(parts).ravel(), pa.float32()), 384)
        self._table.add(pa.Table.from_arrays([*columns, vectors], schema=_SCHEMA))

    def hybrid(self, query: str, vector: Vector) -> list[Place]:
        by_keyword = self._by_keyword(query)
        best = max((score for _, score in by_keyword), default=1.0)
        return merged(self._by_vector(vector), [(place, score / best) for place, score in by_keyword])

    def keyword_leg(self, query: str) -> list[Place]:
        return [place for place, _ in self._by_keyword(query)]

    def vector_leg(self, vector: Vector) -> list[Place]:
        return [place for place, _ in self._by_vector(vector)]

    def _by_vector(self, vector: Vector) -> list[tuple[Place, float]]:
        search: Any = self._table.search(vector)
        found = search.distance_type("cosine").limit(CANDIDATES)
        return _places(found.select(["path", "first_line", "last_line", "text", "_distance"]).to_arrow(), "_distance")

    def _by_keyword(self, query: str) -> list[tuple[Place, float]]:
        found = self._table.search(query, query_type="fts").limit(CANDIDATES)
        return _places(found.select(["path", "first_line", "last_line", "text", "_score"]).to_arrow(), "_score")

    def chunks(self) -> Iterator[tuple[Place, str]]:
        table = self._table.to_arrow().select(["path", "first_line", "last_line", "context", "text"])
        for row in table.to_pylist():
            text = f"{row['context']}\n{row['text']}" if row["context"] else row["text"]
            yield (row["path"], row["first_line"], row["last_line"]), text

    def disk_bytes(self) -> tuple[int, int]:
        """Return the folder's size, which includes older versions of the table; there is no cache."""
        size = sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())
        return size, size

    def close(self) -> None:
        """Tidy up after a series of changes, as its manual advises; tables need no closing."""
        if self._is_untidy:
            self._table.optimize()


def _places(found: pa.Table, column: str) -> list[tuple[Place, float]]:
    rows = zip(*(found[name].to_pylist() for name in ("path", "first_line", "last_line", column)), strict=True)
    sign = -1 if column == "_distance" else 1
    return [((path, first, last), (1 if sign < 0 else 0) + sign * value) for path, first, last, value in rows]
