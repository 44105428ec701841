"""Counts hits of an embedding cache, and decides what it drops, for every storage engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from notewell.types import CacheStats, EmbedderIdentity

DAY_S = 86_400  # uses are recorded once a day, so that reading hardly ever writes
_ROOM = 64  # a full cache drops a 64th more than necessary, because it takes a scan (34 ms for 50,000 vectors)


@dataclass(slots=True)
class CacheUse:
    """The use of a cache by this process; counts are stored with the next entries."""

    max_entries: int
    max_age_s: float  # since the last use; 0 is any age
    clock: Callable[[], float]
    hits: int = 0
    misses: int = 0
    most_now: int | None = None  # upper estimate of the entries; None: not counted yet
    prune_at: float = 0.0  # by the clock

    def now(self) -> int:
        return int(self.clock())

    def noted_since(self) -> float:
        """Return the time since when a recorded use is recent enough."""
        return self.clock() - DAY_S

    def uncounted(self) -> list[tuple[str, int]]:
        """Return the counts since the last call, which the engine adds to the stored ones."""
        counts = [("hits", self.hits), ("misses", self.misses)]
        self.hits = self.misses = 0
        return [(name, count) for name, count in counts if count]

    def excess(self, added: int, count: Callable[[], int]) -> int:
        """Return how many entries to drop; `count` takes a scan and is rarely called."""
        if self.most_now is not None and self.most_now + added <= self.max_entries:
            self.most_now += added
            return 0
        self.most_now = count()
        if self.most_now <= self.max_entries:
            return 0
        excess = self.most_now - self.max_entries + self.max_entries // _ROOM
        self.most_now -= excess
        return excess

    def too_old(self) -> int | None:
        """Return the time before which a last use is too old; once a day, otherwise None."""
        now = self.clock()
        if not self.max_age_s or now < self.prune_at:
            return None
        self.prune_at = now + DAY_S
        return int(now - self.max_age_s)

    def stats(self, *, entries: int, size: int, oldest: int | None, stored: Mapping[str, int]) -> CacheStats:
        """Return the statistics of a cache of this size."""
        return CacheStats(
            entries=entries,
            bytes=size,
            max_entries=self.max_entries,
            oldest_use=None if oldest is None else datetime.fromtimestamp(oldest, UTC),
            hits=stored.get("hits", 0) + self.hits,
            misses=stored.get("misses", 0) + self.misses,
        )


def space_of(identity: EmbedderIdentity) -> tuple[str, str, str, int]:
    """Return what identifies the vectors of a model."""
    return identity.provider, identity.model, identity.key, identity.dimensions
