"""The vector side of the store and its inner seam, `VectorIndex`; everything below imports NumPy, so import it late."""

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
Quantization = Literal["bits", "int8"]
VECTOR_DRIVERS: tuple[str, ...] = get_args(VectorDriver)


class VectorIndex(Protocol):
    """Proposes the chunks that may be nearest to a vector; the float16 rows then decide, so all drivers agree.

    The index is derived from the `vectors` table and changes in the same transaction as the table does.
    """

    def add(self, db: Database, source: SourceName, chunk_ids: Sequence[int], matrix: Matrix) -> None:
        """Take in vectors whose float16 rows were just written."""
        ...

    def remove(self, db: Database, chunk_ids: Collection[int]) -> None:
        """Leave no trace of these chunks; ids that are not indexed are ignored."""
        ...

    def rebuild(self, db: Database) -> None:
        """Make the index anew from the float16 rows."""
        ...

    def clear(self, db: Database) -> None:
        """Drop everything this driver keeps."""
        ...

    def tidy(self, db: Database) -> None:
        """Mend what has drifted with growth; cheap when nothing has."""
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
        from notewell.store.sqlite.vectors.segments import SegmentIndex

        return SegmentIndex()
    if driver == "sqlite-vec":
        from notewell.store.sqlite.vectors.sqlite_vec import SqliteVecIndex

        return SqliteVecIndex()
    raise StoreError(f"unknown vector driver {driver!r}", hint=f"choose one of {', '.join(VECTOR_DRIVERS)}")
