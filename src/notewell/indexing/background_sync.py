"""Runs syncs in background threads: on request, and after transcripts have grown."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

from notewell.indexing.plan import Deadline
from notewell.types import IndexReport

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Outcome = IndexReport | Exception

BEGIN_AFTER_S = 0.1  # a command that ends right after its answer does not start a sync
RETRY_AFTER_S = 30.0  # between a failed run and the next that a search requests
LAST_WAIT_S = 10.0  # for the batch in progress at the end of the process
MOST_DELAYS = 4  # quiet periods: files that keep changing are indexed after this many

_log = logging.getLogger("notewell.sync")


class BackgroundSync:
    """Runs `work` in a thread on request; requests during a run lead to one more run after it.

    The thread ends when there is nothing left to do, or with `stop` after the piece of work in progress.
    """

    def __init__(self, work: Callable[[Deadline, frozenset[str] | None], IndexReport]) -> None:
        self._work = work
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._wanted = False
        self._files: frozenset[str] | None = None  # of the requested run; None: everything
        self._current: frozenset[str] | None = None  # of the current run
        self._since: float | None = None  # when the current run began
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._outcome: Outcome | None = None
        self._ended_at = 0.0
        self._listeners: tuple[Callable[[Outcome], None], ...] = ()
        self.runs = 0

    def _here(self) -> threading.Condition:
        if self._pid != os.getpid():
            self._begin()  # a forked child lacks the thread, and the lock may never be released
        return self._changed

    @property
    def failure(self) -> Exception | None:
        """Why the last run failed; None when it did not."""
        with self._here():
            return self._outcome if isinstance(self._outcome, Exception) else None

    def listen(self, listener: Callable[[Outcome], None]) -> Callable[[], None]:
        """Call `listener` with the outcome of every run, in its thread; return a function that unsubscribes it."""
        with self._here():
            self._listeners = (*self._listeners, listener)

        def end() -> None:
            with self._here():
                self._listeners = tuple(other for other in self._listeners if other is not listener)

        return end

    def request(self, files: frozenset[str] | None = None, *, at_once: bool = True) -> None:
        """Request a run over some `files` or everything.

        With `at_once=False` it starts a moment later, and not soon after a failed one.
        """
        with self._here():
            failed = isinstance(self._outcome, Exception) or (self._outcome and not self._outcome.complete)
            if not at_once and failed and time.monotonic() - self._ended_at < RETRY_AFTER_S:
                return
            if failed:  # its files still have to be indexed
                files = None
            if self._wanted:
                files = None if files is None or self._files is None else self._files | files
            self._wanted, self._files = True, files
            if self._thread is None:
                self._stop.clear()
                delay = 0.0 if at_once else BEGIN_AFTER_S
                self._thread = threading.Thread(
                    target=self._run, args=(self._stop, delay), name="notewell-sync", daemon=True
                )
                weakref.finalize(self, _end, self._stop, self._thread)
                self._thread.start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is in progress or requested; return False on timeout."""
        with self._here() as _:
            return self._changed.wait_for(lambda: self._thread is None, timeout_s)

    def join_recent(self, age_s: float) -> bool:
        """Wait for a run in progress until it is `age_s` old; return whether none is left."""
        with self._here():
            if self._thread is None:
                return True
            left = (self._since or time.monotonic()) + age_s - time.monotonic()
            return self._changed.wait_for(lambda: self._thread is None, max(0.0, left))

    def stop(self) -> None:
        """Stop after the piece of work in progress; a later request starts again."""
        with self._here():
            thread = self._thread
            self._wanted = False
            self._stop.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self, stop: threading.Event, delay_s: float) -> None:
        stop.wait(delay_s)
        while self._begins(stop):
            outcome: Outcome
            try:
                outcome = self._work(Deadline(stop=stop), self._current)
            except Exception as error:  # noqa: BLE001 - nobody can catch it: the next search reports it
                outcome = error
            if not stop.is_set():
                self._ends(outcome)

    def _begins(self, stop: threading.Event) -> bool:
        with self._changed:
            if stop.is_set() or not self._wanted:
                self._thread = self._since = None
                self._changed.notify_all()
                return False
            self._wanted, self._current, self._since = False, self._files, time.monotonic()
            return True

    def _ends(self, outcome: Outcome) -> None:
        with self._changed:
            self._outcome, self._ended_at = outcome, time.monotonic()
            self.runs += 1
            listeners = self._listeners
        for listener in listeners:
            try:
                listener(outcome)
            except Exception:  # noqa: BLE001 - a listener must not stop the syncs
                _log.exception("a listener failed after a sync")


def _end(stop: threading.Event, thread: threading.Thread) -> None:
    stop.set()
    if thread.is_alive() and thread is not threading.current_thread():
        thread.join(LAST_WAIT_S)


class Follower:
    """Indexes growing transcripts once they have been quiet for a while."""

    def __init__(self, index: Callable[[Collection[str]], object], quiet_s: float) -> None:
        self._index = index
        self._quiet_s = quiet_s
        self._changed = threading.Condition()
        self._waiting: dict[str, None] = {}
        self._first_at = self._last_at = 0.0
        self._thread: threading.Thread | None = None  # only while paths wait
        self._closing = False
        self.problem = ""  # why the latest attempt failed; empty when it did not

    def announce(self, path: str) -> None:
        """Report that a transcript has grown."""
        with self._changed:
            if self._closing:
                return
            self._last_at = time.monotonic()
            if not self._waiting:
                self._first_at = self._last_at
            self._waiting[path] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="notewell-follower", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self) -> None:
        """Finish the run in progress and leave the rest to the next sync; a later announcement starts again."""
        with self._changed:
            thread = self._thread
            if thread is None or thread is threading.current_thread():
                return
            self._closing = True
            self._changed.notify_all()
        thread.join()
        with self._changed:
            self._closing = False
            self._waiting = {}

    def _run(self) -> None:
        while paths := self._next():
            try:
                self._index(paths)
                self.problem = ""
            except Exception as error:  # noqa: BLE001 - nobody can catch it: the next search reports it
                self.problem = f"a conversation could not be indexed: {error}"

    def _next(self) -> list[str]:
        """Wait until the paths have been quiet and return them; nothing when there are none left."""
        with self._changed:
            while self._waiting and not self._closing:
                due = min(self._last_at + self._quiet_s, self._first_at + MOST_DELAYS * self._quiet_s)
                left = due - time.monotonic()
                if left <= 0:
                    paths, self._waiting = list(self._waiting), {}
                    return paths
                self._changed.wait(left)
            self._thread = None
            return []
