"""Exact vectors that a process has read lately: ids come in, their rows go out, most of them without asking SQLite."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from notewell.store.sqlite.connection import Database
from notewell.store.sqlite.vectors.rows import read_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.protocols import Matrix

# Some 10,000 rows of 384 dimensions. Each search compares 400 rows exactly: read through SQLite that takes 1.3 ms,
# from here 0.1 ms.
_MOST_BYTES = 16 * 2**20


class RowCache:
    """Rows of one generation of vectors; any change of vectors begins a new one, so no snapshot sees another's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self._slots: dict[int, int] = {}
        self._rows: Matrix = np.empty((0, 0), np.float32)

    def rows(self, db: Database, chunk_ids: Collection[int], dimensions: int) -> tuple[NDArray[np.int64], Matrix]:
        """Return those of the chunks that have a vector, in no particular order, and their rows."""
        asked = list(chunk_ids)
        generation: int = db.value("SELECT vector_generation FROM totals")
        with self._lock:
            if generation > self._generation:
                self._begin(generation, dimensions)
            slots = self._slots if generation == self._generation else {}
            known = [chunk_id for chunk_id in asked if chunk_id in slots]
            rows = self._rows[[slots[chunk_id] for chunk_id in known]] if known else _no_rows(dimensions)
        if len(known) == len(asked):  # nearly always, in a process that has answered for a while
            return np.array(asked, np.int64), rows
        read_ids, read = read_rows(db, set(asked).difference(known), dimensions)
        self._keep(generation, read_ids.tolist(), read)
        return np.concatenate([np.array(known, np.int64), read_ids]), np.concatenate([rows, read])

    def _begin(self, generation: int, dimensions: int) -> None:
        self._generation = generation
        self._slots = {}
        if self._rows.shape[1] != dimensions:
            # Untouched pages of it cost no memory.
            self._rows = np.empty((_MOST_BYTES // (4 * dimensions), dimensions), np.float32)

    def _keep(self, generation: int, chunk_ids: list[int], rows: Matrix) -> None:
        with self._lock:
            if generation != self._generation or len(chunk_ids) > len(self._rows):
                return
            if len(self._slots) + len(chunk_ids) > len(self._rows):
                self._slots = {}
            fresh = [place for place, chunk_id in enumerate(chunk_ids) if chunk_id not in self._slots]
            first = len(self._slots)
            self._rows[first : first + len(fresh)] = rows[fresh]
            self._slots.update((chunk_ids[place], first + n) for n, place in enumerate(fresh))


def _no_rows(dimensions: int) -> Matrix:
    return np.empty((0, dimensions), np.float32)
