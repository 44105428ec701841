"""Limits how long a caller waits for a model in this process, which cannot be interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from notewell.errors import EmbedderError

# OpenClaw's limits for local models; an ordinary call takes milliseconds, loading a large model up to a minute.
QUERY_LIMIT_S = 300.0
BATCH_LIMIT_S = 600.0

_SIGNAL_CHECK_S = 0.5  # a long wait cannot be interrupted with Ctrl-C on Windows

Result = TypeVar("Result")


class TimeLimit:
    """Runs calls of one model in threads of their own; after one that took too long, the next waits for its end."""

    def __init__(self) -> None:
        self._overdue: threading.Thread | None = None

    @property
    def is_overdue(self) -> bool:
        """Whether a call that nobody waits for is still running."""
        return self._overdue is not None and self._overdue.is_alive()

    def run(self, work: Callable[[], Result], limit_s: float) -> Result:
        """Return what `work` returns, or raise what it raises; raises EmbedderError when it takes too long."""
        begun = time.monotonic()
        overdue = self._overdue
        if overdue is not None:
            overdue.join(limit_s)
            if overdue.is_alive():
                raise _took_too_long(limit_s)
            self._overdue = None
        outcome: list[tuple[Result | None, BaseException | None]] = []
        thread = threading.Thread(target=_run, args=(work, outcome), name="notewell-embedding", daemon=True)
        thread.start()
        try:
            while thread.is_alive() and time.monotonic() - begun < limit_s:
                thread.join(min(_SIGNAL_CHECK_S, limit_s))
        finally:
            if not outcome:
                self._overdue = thread
        if not outcome:
            raise _took_too_long(limit_s)
        result, error = outcome[0]
        if error is not None:
            raise error
        return result  # type: ignore[return-value]


def _run(work: Callable[[], Result], outcome: list[tuple[Result | None, BaseException | None]]) -> None:
    try:
        outcome.append((work(), None))
    except BaseException as error:  # noqa: BLE001 - raised in the thread of the caller
        outcome.append((None, error))


def _took_too_long(limit_s: float) -> EmbedderError:
    return EmbedderError(
        f"the local model did not finish within {limit_s:g} seconds",
        hint="run `notewell index` again; a smaller model is faster",
    )
