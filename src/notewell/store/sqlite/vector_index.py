"""Defines `VectorIndex`, the seam between the store and the drivers that find nearest neighbours.

The drivers import NumPy; this module does not, so opening an index for keyword search stays cheap.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, get_args
from uuid import uuid4

from notewell.errors import StoreError
from notewell.store.sqlite.connection import Database, connect_in_memory

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from notewell.protocols import Matrix, Vector
    from notewell.types import Scope, SourceName

VectorDriver = Literal["segments", "sqlite-vec"]
VECTOR_DRIVERS: tuple[str, ...] = get_args(VectorDriver)
LOAD_LIMIT_S = 30.0  # OpenClaw's limit; a local file loads in milliseconds


class VectorIndex(Protocol):
    """Proposes the chunks that may be nearest to a vector; the float16 rows then decide, so all drivers agree.

    The index is derived from the `vectors` table and changes in the same transaction as the table does.
    """

    def add(self, db: Database, source: SourceName, chunk_ids: Sequence[int], matrix: Matrix) -> None:
        """Index vectors whose float16 rows were just written."""
        ...

    def remove(self, db: Database, chunk_ids: Collection[int]) -> None:
        """Leave no trace of these chunks; ids that are not indexed are ignored."""
        ...

    def rebuild(self, db: Database) -> None:
        """Rebuild the index from the float16 rows."""
        ...

    def clear(self, db: Database) -> None:
        """Drop everything this driver keeps."""
        ...

    def tidy(self, db: Database) -> None:
        """Correct what has drifted with growth; cheap when nothing has."""
        ...

    def candidates(self, db: Database, vector: Vector, *, limit: int, scope: Scope) -> NDArray[np.int64]:
        """Return ids that hold, with very few misses, the best `limit` chunks of the scope, and none outside of it."""
        ...

    def findings(self, db: Database) -> list[str]:
        """Return what is out of step with the float16 rows."""
        ...


def open_vector_index(driver: VectorDriver) -> VectorIndex:
    """Return the driver by its name; this is where NumPy is first imported."""
    if driver == "segments":
        from notewell.store.sqlite.segments import SegmentIndex

        return SegmentIndex()
    from notewell.store.sqlite.sqlite_vec import SqliteVecIndex

    return SqliteVecIndex()


def load_sqlite_vec(db: Database, library: str = "") -> str:
    """Load sqlite-vec into this connection, from the library at a path or the installed package.

    Return why it cannot be used, or nothing. A library that takes longer than `LOAD_LIMIT_S` is given up.
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
    """Load the library into a connection of its own, which stays open: then it loads at once into any other.

    A thread that hangs in there cannot be stopped; it is left alone, and while it hangs nobody waits a second time.
    """
    thread, outcome = _trials.get(library, (None, []))
    if outcome and not isinstance(outcome[0], StoreError):
        return
    if thread is None or not thread.is_alive():  # the first time, after a failure, or in a forked child
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
    # A disk that hangs is met here: inside the loader it would hold the lock that every later import needs.
    with suppress(OSError):
        Path(library).read_bytes()
    try:
        db = connect_in_memory(f"loading-{uuid4().hex}")
        db.load_extension(library)
        found = db.rows("SELECT 1 FROM pragma_module_list WHERE name = 'vec0'")
        outcome.append(db if found else StoreError(f"{library} is not sqlite-vec"))
    except StoreError as error:
        outcome.append(error)
