"""Watches notes and transcripts, and syncs the index once they have been quiet, and at every interval.

`watchfiles` delivers the system's file events; without it, the files are listed again and again. Folders are watched
rather than files, so that ten thousand notes cost no more than their folders. The workspace itself is watched without
its subfolders, unless `include` selects notes from all of it.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, Self

from notewell.files.faults import reach
from notewell.indexing.background_sync import MOST_DELAYS
from notewell.sources.notes import roots_of
from notewell.sources.walk import is_markdown, is_skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from watchfiles._rust_notify import RustNotify

    from notewell.indexing.background_sync import BackgroundSync, Outcome
    from notewell.protocols import Source
    from notewell.settings import Settings
    from notewell.types import FileStamp

STEP_S = 0.1  # how often events are checked
POLL_EVERY_S = 2.0  # without events
POLL_SHARE = 50  # listing may take a 50th of the time: large trees are listed less often
RECHECK_EVERY_S = 60.0  # with events: some file systems (network, other containers) send none
GROUPED_MS = 100  # events of this time are delivered together
STEP_MS = 100  # how often the watching thread checks for events and whether to stop
TRANSCRIPTS = (".jsonl", ".json5", ".json")
MOST_FILES = 200  # if more changed, listing all files is cheaper
WAKE_MS = 60_000  # a call without events ends after this, to no effect


class Watching:
    """A thread that keeps the index up to date until `stop`, or the end of its `with` block."""

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
        """Start watching."""
        self._thread.start()
        self._ready.wait()
        return self

    def stop(self) -> None:
        """Stop watching; a sync in progress continues."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        self._unlisten()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is stopped; return False on timeout."""
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
                    files = events.files()  # taken in any case, so that each is reported once
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
        except EventsUnavailableError as error:  # the system ran out of watches
            self.mode, self.reason = "polling", str(error)
            return True

    def _listed(self) -> tuple[tuple[FileStamp, ...], ...] | None:
        try:
            return tuple(source.list().files for source in self._sources)
        except Exception:  # noqa: BLE001 - the sync lists the files, too, and reports the problem
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
    """Return the watcher of a workspace, not started yet."""
    also = (transcripts, *settings.sessions.paths) if "sessions" in settings.sources else ()
    return Watching(
        partial(watched_places, workspace, settings.extra_paths, also, include=settings.include),
        sources,
        sync,
        quiet_s=settings.sync.watch_debounce_ms / 1000,
        interval_s=settings.sync.interval_minutes * 60.0,
        on_sync=on_sync,
    )


# --- events of the system ------------------------------------------------------------------------


class EventsUnavailableError(Exception):
    """The system reports no changes: `watchfiles` is missing, or no watches are left."""


@dataclass(frozen=True, slots=True)
class WatchedPlaces:
    """Folders to watch: `whole` ones with their subfolders, `single` ones without."""

    whole: frozenset[str]
    single: frozenset[str]
    identities: frozenset[tuple[str, int]]  # path and inode, which shows that a folder was replaced


def watched_places(
    workspace: Path, extra_paths: Sequence[Path], also: Sequence[Path] = (), *, include: Sequence[str] | None = None
) -> WatchedPlaces:
    """Return what to watch now; the parent of a missing root is watched, so that its creation is noticed.

    `also` are folders of transcripts. Their parents are not watched: one may be the folder that we write to.
    """
    whole: set[str] = set()
    single = {os.path.realpath(workspace)}
    roots = [root.real_path for root in roots_of(workspace, extra_paths)[0]]
    for path in (*roots, *(os.path.realpath(folder) for folder in also)):
        if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
            whole.add(path)
    if include:
        whole.add(os.path.realpath(workspace))
    for path in roots:
        parent = os.path.dirname(path)  # noqa: PTH120
        if os.path.isdir(parent):  # noqa: PTH112
            single.add(parent)
    identities = set()
    for path in whole | single:
        try:
            identities.add((path, os.stat(path).st_ino))  # noqa: PTH116 - strings, as everything here
        except OSError:
            continue
    return WatchedPlaces(frozenset(whole), frozenset(single), frozenset(identities))


class FileEvents:
    """Watches folders, also when one is replaced by another of the same name."""

    def __init__(self, places: Callable[[], WatchedPlaces]) -> None:
        self._places = places
        self._now: WatchedPlaces | None = None
        self._changed = threading.Event()
        self._lock = threading.Lock()
        self._files: set[str] | None = set()  # that changed; None: something else changed, or too many
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def start(self) -> None:
        """Start watching; raise EventsUnavailableError when the system cannot."""
        try:
            from watchfiles._rust_notify import RustNotify  # the documented way to use its Rust half directly
        except ImportError as error:
            raise EventsUnavailableError("watchfiles is not installed: pip install 'notewell[watch]'") from error
        self._now = self._places()
        self._stop, self._failure = threading.Event(), None
        try:
            for paths, whole in ((sorted(self._now.whole), True), (sorted(self._now.single), False)):
                if paths:
                    reach("watch.start")
                    notifier = RustNotify(paths, False, False, 0, whole, True)
                    self._follow(notifier, paths)
        except Exception as error:  # watchfiles raises whatever its Rust half meets
            self._end()
            raise EventsUnavailableError(f"the system sends no file events: {error}") from error

    def _follow(self, notifier: RustNotify, paths: list[str]) -> None:
        thread = threading.Thread(
            target=self._watch, args=(notifier, paths, self._stop), name="notewell-events", daemon=True
        )
        thread.start()
        self._threads.append(thread)

    def changed(self) -> bool:
        """Return whether something changed since the last call."""
        self._raise_failure()
        if not self._changed.is_set():
            return False
        self._changed.clear()
        if self._now is None or self._places().identities != self._now.identities:
            self._end()
            self.start()
            with self._lock:
                self._files = None
        return True

    def files(self) -> frozenset[str] | None:
        """Return the files that changed since the last call; None if anything may have changed."""
        with self._lock:
            files, self._files = self._files, set()
        return None if files is None else frozenset(files)

    def _note(self, paths: Sequence[str]) -> None:
        named = [path for path in paths if _is_named_like_a_file(path)]
        with self._lock:
            if self._files is not None:
                self._files |= set(named)
                if len(named) < len(paths) or len(self._files) > MOST_FILES:
                    self._files = None
        self._changed.set()

    def _watch(self, notifier: RustNotify, paths: list[str], stop: threading.Event) -> None:
        try:
            with notifier:
                while True:
                    told = notifier.watch(GROUPED_MS, STEP_MS, WAKE_MS, stop)
                    if told in {"stop", "signal"}:
                        return
                    if isinstance(told, set) and (matter := [path for _, path in told if _matters(path, paths)]):
                        self._note(matter)
        except Exception as error:  # noqa: BLE001 - raised by the next call
            self._failure = error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure = self._failure
            self._end()
            raise EventsUnavailableError(f"the system sends no file events: {failure}") from failure

    def _end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()


def _is_named_like_a_file(path: str) -> bool:
    return (is_markdown(path) or path.endswith(TRANSCRIPTS)) and not os.path.isdir(path)  # noqa: PTH112


def _matters(path: str, watched: Sequence[str]) -> bool:
    """Return whether a change of this path could matter: it is a note, a transcript, or a folder."""
    for folder in watched:
        if path == folder or path.startswith(folder.rstrip(os.sep) + os.sep):
            parts = path[len(folder) :].strip(os.sep).split(os.sep)  # noqa: PTH206 - below a folder that is no Path
            if not any(part and is_skipped(part) for part in parts):
                known = is_markdown(parts[-1]) or parts[-1].endswith(TRANSCRIPTS)
                return known or not os.path.isfile(path)  # noqa: PTH113
    return False
