"""Watches files for changes and has the index synced once they have been quiet, and at every interval."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Literal, Self

from notewell.sources.watching import EventsUnavailableError, FileEvents, watched_places

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from notewell.indexing.background_sync import BackgroundSync, Outcome
    from notewell.protocols import Source
    from notewell.settings import Settings
    from notewell.sources.watching import WatchedPlaces
    from notewell.types import FileStamp

MOST_DELAYS = 4  # times the quiet period: files that never rest are indexed all the same
STEP_S = 0.1  # how often events are looked at; a tenth of the shortest wait that people notice
POLL_EVERY_S = 2.0  # without events; a change is then seen within this and the quiet period
POLL_SHARE = 50  # a listing may take a 50th of the time: large trees are listed less often
RECHECK_EVERY_S = 60.0  # with events: some file systems (network, other containers) send none


class Watching:
    """A thread that keeps the index fresh until `stop`, or the end of its `with` block."""

    def __init__(
        self,
        places: Callable[[], WatchedPlaces],
        sources: Sequence[Source],
        sync: BackgroundSync,
        *,
        quiet_s: float,
        interval_s: float,
        on_sync: Callable[[Outcome], None] | None = None,
    ) -> None:
        self._places = places
        self._sources = sources
        self._sync = sync
        self._quiet_s = quiet_s
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._unlisten = sync.listen(on_sync) if on_sync else lambda: None
        self._thread = threading.Thread(target=self._run, name="notewell-watch", daemon=True)
        self.mode: Literal["events", "polling"] = "polling"
        self.reason = ""  # why it polls

    def start(self) -> Self:
        """Start; what changes from now on is seen."""
        self._thread.start()
        self._ready.wait()
        return self

    def stop(self) -> None:
        """End, and wait for the thread; a sync in progress continues."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        self._unlisten()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is stopped; False when that took longer."""
        return self._stop.wait(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        with FileEvents(self._places) as events:
            self._begin(events)
            seen = self._listed()
            self._ready.set()
            self._sync.request()  # what changed before it started
            changed_at = first_change = None
            listing_changed = False
            next_look, next_run = self._after_listing(0.0), self._next_run()
            while not self._stop.wait(STEP_S):
                now = time.monotonic()
                changed = self.mode == "events" and self._events(events)
                if now >= next_look:
                    listed = self._listed()
                    next_look = self._after_listing(time.monotonic() - now)
                    listing_changed = listing_changed or listed != seen
                    changed, seen = changed or listed != seen, listed
                if changed:
                    changed_at, first_change = now, first_change or now
                quiet = changed_at is not None and now - changed_at >= self._quiet_s
                late = first_change is not None and now - first_change >= MOST_DELAYS * self._quiet_s
                if quiet or late or now >= next_run:
                    files = events.files()  # in any case, so that they are named once only
                    self._sync.request(None if listing_changed or now >= next_run else files)
                    changed_at = first_change = None
                    listing_changed = False
                    next_run = self._next_run()

    def _begin(self, events: FileEvents) -> None:
        try:
            events.start()
            self.mode, self.reason = "events", ""
        except EventsUnavailableError as error:
            self.mode, self.reason = "polling", str(error)

    def _events(self, events: FileEvents) -> bool:
        try:
            return events.changed()
        except EventsUnavailableError as error:  # the system ran out of watches meanwhile
            self.mode, self.reason = "polling", str(error)
            return True

    def _listed(self) -> tuple[tuple[FileStamp, ...], ...] | None:
        try:
            return tuple(source.list().files for source in self._sources)
        except Exception:  # noqa: BLE001 - the sync lists, too, and reports what is wrong
            return None

    def _after_listing(self, took_s: float) -> float:
        pause = RECHECK_EVERY_S if self.mode == "events" else POLL_EVERY_S
        return time.monotonic() + max(pause, took_s * POLL_SHARE)

    def _next_run(self) -> float:
        return time.monotonic() + self._interval_s if self._interval_s else float("inf")


def watch_workspace(
    workspace: Path,
    settings: Settings,
    sources: Sequence[Source],
    sync: BackgroundSync,
    *,
    transcripts: Path,
    on_sync: Callable[[Outcome], None] | None,
) -> Watching:
    """Return a watcher of a workspace as the settings want it, not started yet."""
    also = (transcripts, *settings.sessions.paths) if "sessions" in settings.sources else ()
    return Watching(
        partial(watched_places, workspace, settings.extra_paths, also, include=settings.include),
        sources,
        sync,
        quiet_s=settings.sync.watch_debounce_ms / 1000,
        interval_s=settings.sync.interval_minutes * 60.0,
        on_sync=on_sync,
    )
