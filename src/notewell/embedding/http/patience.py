"""When a failed call is tried again: a failure comes in, whether and after how many seconds goes out."""

from __future__ import annotations

from dataclasses import dataclass

from notewell.embedding.http.failures import FailureKind, RemoteFailure

PASSING: frozenset[FailureKind] = frozenset({"timeout", "broken_off", "rate_limited", "server", "nonsense"})


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and after which waits a call is made again; the defaults are those of OpenClaw's embedding calls."""

    tries: int = 3
    first_wait_s: float = 0.5  # doubles with every try
    longest_wait_s: float = 8.0
    jitter_s: float = 0.5  # keeps agents that failed together from asking together again
    longest_asked_s: float = 60.0  # limits are counted by the minute; a provider that asks for more gets no second call
    again: frozenset[FailureKind] = PASSING

    def verdict(self, error: BaseException) -> bool | float:
        """Return False for no other try, True for our own next wait, or the seconds that the provider asked for."""
        if not isinstance(error, RemoteFailure) or error.kind not in self.again:
            return False
        if error.wait_s is None:
            return True
        return error.wait_s if error.wait_s <= self.longest_asked_s else False


# Somebody waits: a provider that is slow or confused is not asked twice, and nobody waits for it for long.
HURRIED = Patience(longest_asked_s=8.0, again=frozenset({"broken_off", "rate_limited", "server"}))
