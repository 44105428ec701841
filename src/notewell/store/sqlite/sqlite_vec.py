"""Loads the extension sqlite-vec, and finds nearest neighbours with its vec0 table.

NumPy is imported only when there are vectors, so that opening an index for keyword search stays cheap.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from notewell.errors import StoreError
from notewell.store.sqlite.connection import Database, as_json, connect_in_memory
from notewell.store.sqlite.documents import chunk_ids_in

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from notewell.protocols import Matrix, Vector
    from notewell.types import Scope, SourceName

_MOST_NEIGHBOURS = 4096  # a fixed limit of vec0
LOAD_LIMIT_S = 30.0  # OpenClaw's limit; a local file loads in milliseconds
_SPARE = 64  # vec0 computes in single precision: close calls are left to the exact rows


class SqliteVecIndex:
    """Implements `VectorIndex` with a vec0 table, exact but linear in SQL."""

    def add(self, db: Database, source: SourceName, chunk_ids: Sequence[int], matrix: Matrix) -> None:
        if not _exists(db):
            dimensions = matrix.shape[1]
            db.rows(
                "CREATE VIRTUAL TABLE vector_knn USING vec0(chunk_id INTEGER PRIMARY KEY, source TEXT PARTITION KEY,"
                f" embedding FLOAT[{dimensions}] distance_metric=cosine)"
            )
        # As stored, in half precision.
        rounded = matrix.astype("<f2").astype("<f4")
        db.run_many(
            "INSERT INTO vector_knn (chunk_id, source, embedding) VALUES (?, ?, ?)",
            ((chunk_id, source, row.tobytes()) for chunk_id, row in zip(chunk_ids, rounded, strict=True)),
        )

    def remove(self, db: Database, chunk_ids: Collection[int]) -> None:
        if _exists(db):
            db.run_many("DELETE FROM vector_knn WHERE chunk_id = ?", ((chunk_id,) for chunk_id in chunk_ids))

    def rebuild(self, db: Database) -> None:
        from notewell.store.sqlite.vector_search import every_vector

        self.clear(db)
        for source, ids, matrix in every_vector(db):
            self.add(db, source, ids.tolist(), matrix)

    def clear(self, db: Database) -> None:
        db.rows("DROP TABLE IF EXISTS vector_knn")

    def tidy(self, db: Database) -> None:
        """Do nothing: vec0 stores the vectors themselves."""

    def candidates(self, db: Database, vector: Vector, *, limit: int, scope: Scope) -> NDArray[np.int64]:
        import numpy as np

        if not _exists(db):
            return np.empty(0, np.int64)
        neighbours = min(limit + _SPARE, _MOST_NEIGHBOURS)
        filters: list[tuple[str, list[str]]] = [("", [])]
        if scope.picks_documents:
            permitted = as_json(chunk_ids_in(db, scope))
            filters = [(" AND chunk_id IN (SELECT value FROM json_each(?))", [permitted])]
        elif scope.sources is not None:
            filters = [(" AND source = ?", [source]) for source in sorted(scope.sources)]
        query = vector.astype("<f4").tobytes()
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


# --- loading -------------------------------------------------------------------------------------


def load_sqlite_vec(db: Database, library: str = "") -> str:
    """Load sqlite-vec into a connection, from a library or the installed package; return the problem, if any.

    A library that takes longer than `LOAD_LIMIT_S` is given up.
    """
    if not library:
        try:
            import sqlite_vec
        except ImportError:
            return 'it is not installed; run `pip install "notewell[sqlite-vec]"`'
        library = sqlite_vec.loadable_path()
    try:
        _try_loading(library)
        db.load_extension(library)
    except (StoreError, TimeoutError) as error:
        return str(error)
    return ""


_trials: dict[str, tuple[threading.Thread, list[Database | StoreError]]] = {}


def _try_loading(library: str) -> None:
    """Load the library into a connection of its own, which stays open: then any other loads it at once.

    A thread that hangs cannot be stopped; while it does, nobody waits for the library again.
    """
    thread, outcome = _trials.get(library, (None, []))
    if outcome and not isinstance(outcome[0], StoreError):
        return
    if thread is None or not thread.is_alive():  # first, after a failure, or in a forked child
        outcome = []
        thread = threading.Thread(target=_load_alone, args=(library, outcome), daemon=True)
        _trials[library] = (thread, outcome)
        thread.start()
        thread.join(LOAD_LIMIT_S)
    if not outcome:
        raise TimeoutError(f"{library} did not load within {LOAD_LIMIT_S:g} seconds")
    if isinstance(outcome[0], StoreError):
        raise outcome[0]


def _load_alone(library: str, outcome: list[Database | StoreError]) -> None:
    # On a disk that hangs, hang here: the loader would hold a lock that every import needs.
    with suppress(OSError):
        Path(library).read_bytes()
    try:
        db = connect_in_memory(f"loading-{uuid4().hex}")
        db.load_extension(library)
        found = db.rows("SELECT 1 FROM pragma_module_list WHERE name = 'vec0'")
        outcome.append(db if found else StoreError(f"{library} is not sqlite-vec"))
    except StoreError as error:
        outcome.append(error)
