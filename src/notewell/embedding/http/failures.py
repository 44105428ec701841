"""How a call to a provider can fail, as one exception that says what kind of failure it was and never quotes a key."""

from __future__ import annotations

from typing import Literal

FailureKind = Literal[
    "unreachable",  # nobody answers at that address
    "timeout",
    "broken_off",  # the connection ended before the answer did
    "rate_limited",  # too many requests for now
    "quota",  # the account may ask no more
    "key",  # the key was refused
    "refused",  # the request itself was refused
    "missing",  # the address or the model does not exist there
    "server",  # the provider failed
    "nonsense",  # the answer is not what was asked for
    "misfit",  # the answer is in order, but of another size than it should be
]

EXTRA_HINT = 'run `pip install "notewell[remote]"`'


class RemoteFailure(Exception):  # noqa: N818 - never shown as it is: each caller turns it into an error of its own
    """One failed call; `detail` is what the provider said about it, without keys, and may quote what was sent."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        wait_s: float | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.wait_s = wait_s  # how long the provider asks us to wait
        self.detail = detail
