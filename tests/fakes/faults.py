"""The faults a fake provider can be told to show, and what each makes of an honest answer."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.fakes.loopback import HTML_ERROR, Reply

# Answers with an error status; each provider writes its own body.
STATUS_FAULTS = {"rate_limited": 429, "quota": 429, "unauthorized": 401, "bad_request": 400, "500": 500, "503": 503}
# What goes wrong between a good answer and the client.
WIRE_FAULTS = ("hang", "hang_mid_body", "reset", "truncated_json", "html_200")
# Vectors that must never be stored.
VECTOR_FAULTS = ("nan", "inf", "zero", "empty", "empty_vector", "wrong_dimensions", "wrong_count")
# Only where the answer numbers its vectors.
INDEX_FAULTS = ("shuffled", "duplicate_index")
# What becomes of a batch job.
BATCH_FAULTS = (
    "batch_unknown_state",  # a state nobody has heard of, for ever
    "batch_stuck",  # in progress for ever
    "batch_partial",  # every other line fails
    "batch_expired",
    "batch_cancelled",
    "batch_failed",
    "batch_output_missing",  # done, but the output file is not there
    "batch_output_garbled",  # done, but the output is no JSON
    "batch_missing_lines",  # done, but half of the lines are not in the output
    "batch_strange_ids",  # done, with lines nobody asked for and one line twice
    "batch_bad_vectors",  # done, every other vector is NaN
    "batch_wrong_dimensions",
)


@dataclass(frozen=True)
class Fault:
    """One fault and where it shows."""

    name: str
    route: str  # embed, upload, create, poll, list, download; "any"
    retry_after: str | None = None


class Faults:
    """The faults still to be shown, first come, first served."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Fault, int | None]] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault, times: int | None) -> None:
        with self._lock:
            self._waiting.append((fault, times))

    def clear(self) -> None:
        with self._lock:
            self._waiting.clear()

    def take(self, route: str, names: Sequence[str]) -> Fault | None:
        """Return the first fault of these names that waits for `route`, and count it as shown."""
        with self._lock:
            for at, (fault, times) in enumerate(self._waiting):
                if fault.name in names and fault.route in {route, "any"}:
                    if times is not None:
                        self._waiting[at : at + 1] = [(fault, times - 1)] if times > 1 else []
                    return fault
        return None


def spoil_vectors(name: str, vectors: list[np.ndarray]) -> list[np.ndarray]:
    """Return the vectors as the fault would have them; the first one is the one that suffers."""
    spoiled = [vector.copy() for vector in vectors]
    if name == "nan":
        spoiled[0][1] = np.nan
    elif name == "inf":
        spoiled[0][1] = np.inf
    elif name == "zero":
        spoiled[0][:] = 0
    elif name == "empty":
        return []
    elif name == "empty_vector":
        spoiled[0] = spoiled[0][:0]
    elif name == "wrong_dimensions":
        return [vector[:-1] for vector in spoiled]
    elif name == "wrong_count":
        return spoiled[:-1]
    return spoiled


def spoil_order(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return numbered rows in another order (with their right numbers), or with one number twice."""
    if name == "shuffled":
        return rows[::-1]
    if name == "duplicate_index":
        return [*rows[:-1], {**rows[-1], "index": 0}] if len(rows) > 1 else [*rows, *rows]
    return rows


def spoil_wire(name: str, reply: Reply) -> Reply:
    """Return the reply as the fault lets it through."""
    if name == "truncated_json":
        return replace(reply, body=reply.body[: len(reply.body) * 2 // 3])
    if name == "html_200":
        return Reply(200, HTML_ERROR, content_type="text/html; charset=utf-8")
    return replace(reply, manner=name)  # type: ignore[arg-type]
