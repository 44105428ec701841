"""Counts the uses of an embedding cache, and says which entries are too many or too old, for every storage engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from notewell.types import CacheStats, EmbedderIdentity

DAY_S = 86_400  # a use is noted once a day, so that reading hardly ever writes
_ROOM = 64  # a full cache drops a 64th more than it must: finding the oldest takes a scan, 34 ms for 50,000 vectors


@dataclass(slots=True)
class CacheUse:
    """What a process knows of the use of a cache; counts are stored with the next entries."""

    max_entries: int
    max_age_s: float  # since the last use; 0 is any age
    clock: Callable[[], float]
    hits: int = 0
    misses: int = 0
    most_now: int | None = None  # entries there may be, as far as this process knows; None before a count
    prune_at: float = 0.0  # by the clock

    def now(self) -> int:
        return int(self.clock())

    def noted_since(self) -> float:
        """Return since when a use needs not be noted again."""
        return self.clock() - DAY_S

    def uncounted(self) -> list[tuple[str, int]]:
        """Return what was counted since the last time, to be added to what is stored."""
        counts = [("hits", self.hits), ("misses", self.misses)]
        self.hits = self.misses = 0
        return [(name, count) for name, count in counts if count]

    def excess(self, added: int, count: Callable[[], int]) -> int:
        """Return how many entries to drop; counting takes a scan, so it is rare."""
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
        """Return before when a last use is too long ago, as often as once a day."""
        now = self.clock()
        if not self.max_age_s or now < self.prune_at:
            return None
        self.prune_at = now + DAY_S
        return int(now - self.max_age_s)

    def stats(self, *, entries: int, size: int, oldest: int | None, stored: Mapping[str, int]) -> CacheStats:
        """Return the figures of a cache that holds so much."""
        return CacheStats(
            entries=entries,
            bytes=size,
            max_entries=self.max_entries,
            oldest_use=None if oldest is None else datetime.fromtimestamp(oldest, UTC),
            hits=stored.get("hits", 0) + self.hits,
            misses=stored.get("misses", 0) + self.misses,
        )


def space_of(identity: EmbedderIdentity) -> tuple[str, str, str, int]:
    """Return what names the space of a model's vectors."""
    return identity.provider, identity.model, identity.key, identity.dimensions
