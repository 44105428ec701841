"""Work that goes on behind its caller: requests come in, one run at a time is done in a thread, outcomes are kept."""

from __future__ import annotations

import os
import threading
import time
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING

from notewell.indexing.deadline import Deadline
from notewell.types import IndexReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from notewell.indexing.update import IndexUpdate

    Outcome = IndexReport | Exception

BEGIN_AFTER_S = 0.1  # a command that ends right after its answer never begins what it could not finish
RETRY_AFTER_S = 30.0  # searches do not ask for another run so soon after one that failed
LAST_WAIT_S = 10.0  # at the end of the process, for the batch in flight


class BackgroundSync:
    """Runs `work` in a thread when asked. Asked while a run is under way, it does one more after it, never two at once.

    The thread ends when there is nothing to do; `stop` ends it after the piece of work in flight.
    """

    def __init__(self, work: Callable[[Deadline, frozenset[str] | None], IndexReport]) -> None:
        self._work = work
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._wanted = False
        self._files: frozenset[str] | None = None  # what the wanted run is about; None is everything
        self._current: frozenset[str] | None = None  # what the run under way is about
        self._since: float | None = None  # when the run under way began
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._outcome: Outcome | None = None
        self._ended_at = 0.0
        self._listeners: tuple[Callable[[Outcome], None], ...] = ()
        self.runs = 0

    def _here(self) -> threading.Condition:
        if self._pid != os.getpid():
            self._begin()  # a forked child has no such thread, and perhaps a lock that nobody will release
        return self._changed

    @property
    def running(self) -> bool:
        """Whether a run is under way or wanted."""
        with self._here():
            return self._thread is not None

    @property
    def failure(self) -> Exception | None:
        """Why the last run failed; None when it did not."""
        with self._here():
            return self._outcome if isinstance(self._outcome, Exception) else None

    def listen(self, listener: Callable[[Outcome], None]) -> Callable[[], None]:
        """Call `listener` with the outcome of every run, in the thread of the run; returns how to end that."""
        with self._here():
            self._listeners = (*self._listeners, listener)

        def end() -> None:
            with self._here():
                self._listeners = tuple(other for other in self._listeners if other is not listener)

        return end

    def request(self, files: frozenset[str] | None = None, *, at_once: bool = True) -> None:
        """Ask for a run, over some `files` or everything.

        With `at_once=False` it may begin a moment later, and not soon after one that failed.
        """
        with self._here():
            failed = isinstance(self._outcome, Exception) or (self._outcome and not self._outcome.complete)
            if not at_once and failed and time.monotonic() - self._ended_at < RETRY_AFTER_S:
                return
            if failed:  # what it was about is still to be done
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
        """Wait until nothing is under way or wanted; False when that took too long."""
        with self._here() as _:
            return self._changed.wait_for(lambda: self._thread is None, timeout_s)

    def join_young(self, age_s: float) -> bool:
        """Wait for a run that began less than `age_s` ago until it is so old; say whether nothing is under way now."""
        with self._here():
            if self._thread is None:
                return True
            left = (self._since or time.monotonic()) + age_s - time.monotonic()
            return self._changed.wait_for(lambda: self._thread is None, max(0.0, left))

    def stop(self) -> None:
        """End after the piece of work in flight, and wait for that; a later request begins anew."""
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
            except Exception as error:  # noqa: BLE001 - there is no caller: it is kept for the next one who asks
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
            listener(outcome)


def _end(stop: threading.Event, thread: threading.Thread) -> None:
    stop.set()
    if thread.is_alive() and thread is not threading.current_thread():
        thread.join(LAST_WAIT_S)


def sync_before_search(update: IndexUpdate, behind: BackgroundSync, budget_s: float) -> IndexReport:
    """Index what is new for `budget_s` at most; what is left over goes on behind. Never waits for a long run."""
    if update.is_up_to_date():
        return IndexReport()
    started = time.monotonic()
    if not behind.join_young(budget_s):
        return IndexReport(
            complete=False, notes=("indexing goes on in the background: the newest changes may be missing",)
        )
    report = update.run_within(max(0.0, budget_s - (time.monotonic() - started)))
    if report.complete or not update.folder.writable():
        return report
    behind.request(at_once=False)
    failure = behind.failure
    told = (f"indexing in the background failed: {failure}",) if failure else ()
    return replace(report, notes=(*report.notes, *told))
