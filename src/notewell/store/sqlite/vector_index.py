"""Defines `VectorIndex`, the seam between the store and the drivers that find nearest neighbours.

The drivers import NumPy; this module does not, so opening an index for keyword search stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, get_args

from notewell.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from notewell.protocols import Matrix, Vector
    from notewell.store.sqlite.connection import Database
    from notewell.types import Scope, SourceName

VectorDriver = Literal["segments", "sqlite-vec"]
VECTOR_DRIVERS: tuple[str, ...] = get_args(VectorDriver)


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


def load_sqlite_vec(db: Database, library: str = "") -> None:
    """Load the sqlite-vec extension into this connection, from the library at a path or the installed package."""
    if library:
        db.load_extension(library)
        return
    try:
        import sqlite_vec
    except ImportError as error:
        raise StoreError(
            f"{db.path} keeps its vectors with sqlite-vec, which is not installed",
            hint='install it with `pip install "notewell[sqlite-vec]"`, or rebuild the index',
        ) from error
    db.load_extension(sqlite_vec.loadable_path())
