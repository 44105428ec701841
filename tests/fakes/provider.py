"""What all fake providers share: a server, a key, recorded requests, faults on demand and poisoned texts."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from tests.fakes.faults import (
    BATCH_FAULTS,
    INDEX_FAULTS,
    STATUS_FAULTS,
    VECTOR_FAULTS,
    WIRE_FAULTS,
    Fault,
    Faults,
    spoil_vectors,
    spoil_wire,
)
from tests.fakes.loopback import LoopbackServer, Reply, Request, json_reply
from tests.fakes.vectors import vector_of


class ApiFailure(Exception):
    """An answer with an error status, in the provider's own words."""

    def __init__(self, status: int, body: Any, **headers: str) -> None:
        super().__init__(status)
        self.reply = json_reply(body, status=status, **headers)


class FakeProvider:
    """One provider on 127.0.0.1, from `with` to the end of its block.

    `base_url` is what a user would set, `key` the only one accepted, `requests` what came in so far.
    `latency` is the pause before every answer, in seconds; `dimensions` the length of vectors when none is asked for.
    """

    name = ""
    prefix = "/v1"  # of every path; part of `base_url`
    default_dimensions = 0
    key_prefix = ""
    numbered = True  # the answer numbers its vectors
    has_batches = True

    def __init__(self, *, latency: float = 0.0, dimensions: int | None = None) -> None:
        self.key = self.key_prefix + secrets.token_hex(16)
        self.latency = latency
        self.dimensions = dimensions or self.default_dimensions
        self.polls_until_done = 1  # looks at a batch job that still find it at work
        self.hold_jobs = False  # no batch job ends while this is set
        self.on_request: Callable[[str, str], None] = _nothing  # called with "before" or "after", and the route
        self.peak = 0  # the most concurrent requests so far
        self._pending = 0
        self._requests: list[Request] = []
        self._faults = Faults()
        self._poisons: list[str] = []
        self._lock = threading.RLock()
        self._server = LoopbackServer(self._answer)

    # --- for tests -------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def base_url(self) -> str:
        return self.root_url + self.prefix

    @property
    def requests(self) -> list[Request]:
        with self._lock:
            return list(self._requests)

    def requests_to(self, route: str) -> list[Request]:
        """Return the requests of one route: embed, upload, create, poll, list, download, ..."""
        return [request for request in self.requests if request.route == route]

    @property
    def connections(self) -> int:
        """How many connections clients have opened so far."""
        return self._server.connections

    @property
    def faults(self) -> tuple[str, ...]:
        """The names that `inject` takes here."""
        return (
            *STATUS_FAULTS,
            *WIRE_FAULTS,
            *VECTOR_FAULTS,
            *(INDEX_FAULTS if self.numbered else ()),
            *(BATCH_FAULTS if self.has_batches else ()),
        )

    def inject(
        self, fault: str, times: int | None = 1, *, route: str = "embed", retry_after: str | None = None
    ) -> None:
        """Show `fault` in the next `times` answers of `route` (None: in all), in the order of the calls.

        The `batch_` faults are fates of jobs: they befall the next `times` jobs that are created.
        """
        if fault not in self.faults:
            raise ValueError(f"{self.name} cannot show {fault!r}")
        where = "create" if fault in BATCH_FAULTS else route
        self._faults.add(Fault(fault, where, retry_after), times)

    def clear_faults(self) -> None:
        """Behave from now on."""
        self._faults.clear()
        with self._lock:
            self._poisons.clear()

    def poison(self, text: str) -> None:
        """Answer 400 to every request that has an input with `text` in it."""
        with self._lock:
            self._poisons.append(text)

    # --- for the providers -----------------------------------------------------------------------

    def route_of(self, request: Request) -> str:
        raise NotImplementedError

    def respond(self, request: Request) -> Reply:
        raise NotImplementedError

    def check_key(self, request: Request) -> None:
        """Raise the provider's failure unless the request has the key."""
        if request.headers.get("authorization") != f"Bearer {self.key}":
            raise self.refusal(request.headers.get("authorization"))

    def refusal(self, given: str | None) -> ApiFailure:
        raise NotImplementedError

    def failure(self, fault: str, retry_after: str | None) -> ApiFailure:
        """Return the provider's own answer to a status fault."""
        raise NotImplementedError

    def poisoned(self, texts: Sequence[str]) -> bool:
        with self._lock:
            return any(poison in text for poison in self._poisons for text in texts)

    def vectors(
        self, texts: Sequence[str], dimensions: int, *, side: str = "", model: str = "", in_job: bool = False
    ) -> list[np.ndarray]:
        """Return the vectors of an embed request, spoiled when a fault says so; jobs have fates of their own."""
        honest = [vector_of(text, dimensions, side=side, model=model) for text in texts]
        fault = None if in_job else self._faults.take("embed", VECTOR_FAULTS)
        return spoil_vectors(fault.name, honest) if fault else honest

    def take_fault(self, route: str, names: Sequence[str]) -> str:
        fault = self._faults.take(route, names)
        return fault.name if fault else ""

    def _answer(self, request: Request) -> Reply:
        route = self.route_of(request)
        with self._lock:
            self._requests.append(replace(request, route=route))
            self._pending += 1
            self.peak = max(self.peak, self._pending)
        try:
            return self._reply(request, route)
        finally:
            with self._lock:
                self._pending -= 1

    def _reply(self, request: Request, route: str) -> Reply:
        if self.latency:
            self._server.closing.wait(self.latency)
        self.on_request("before", route)
        try:
            self.check_key(request)
            fault = self._faults.take(route, tuple(STATUS_FAULTS))
            if fault:
                raise self.failure(fault.name, fault.retry_after)
            reply = self.respond(request)
        except ApiFailure as failure:
            return failure.reply
        self.on_request("after", route)  # done here, not told there yet
        fault = self._faults.take(route, WIRE_FAULTS)
        return spoil_wire(fault.name, reply) if fault else reply


def _nothing(moment: str, route: str) -> None:
    """Let a request pass."""


def retry_header(retry_after: str | None) -> dict[str, str]:
    """Return the header that asks a client to wait, if it is to be asked."""
    return {} if retry_after is None else {"Retry_After": retry_after}
