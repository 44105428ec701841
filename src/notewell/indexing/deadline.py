"""How long a run may take: seconds in, whether they have passed out."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment after which no new piece of work is begun."""

    at: float | None = None  # time.monotonic(); None is never
    stop: threading.Event | None = None  # set when whoever waits for the work goes away

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    @property
    def passed(self) -> bool:
        stopped = self.stop is not None and self.stop.is_set()
        return stopped or (self.at is not None and time.monotonic() >= self.at)


NEVER = Deadline()
