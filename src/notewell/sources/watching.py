"""Watches folders for changed notes and transcripts, through the file events of the system (`watchfiles`).

Folders are watched, never single files, so that ten thousand notes cost no more than their folders do. The workspace
itself is watched without what lies below it, unless `include` adds notes from all over it: only the folders that hold
notes are watched whole.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from notewell.files.faults import reach
from notewell.sources.note_paths import is_markdown, is_skipped
from notewell.sources.notes import roots_of

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

GROUPED_MS = 100  # events are handed over in groups of so long; waiting for quiet is not done here
STEP_MS = 100  # how often the watching thread looks for events, and whether it shall stop
TRANSCRIPTS = (".jsonl", ".json5", ".json")
MOST_FILES = 200  # beyond it, looking at each costs more than listing all
WAKE_MS = 60_000  # nothing happens then; the call only has to end some time


class EventsUnavailableError(Exception):
    """The system cannot tell of changes: no `watchfiles`, or no watches left."""


@dataclass(frozen=True, slots=True)
class WatchedPlaces:
    """Folders to watch: whole ones with all below, and single ones whose direct entries matter."""

    whole: frozenset[str]
    single: frozenset[str]
    identities: frozenset[tuple[str, int]]  # path and inode, so that a folder put in another's place is noticed


def watched_places(
    workspace: Path, extra_paths: Sequence[Path], also: Sequence[Path] = (), *, include: Sequence[str] | None = None
) -> WatchedPlaces:
    """Return what to watch now. A root that is not there yet is seen coming by the folder that will hold it.

    `also` are folders of transcripts; theirs may be the folder that we write to ourselves, so it is not watched.
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
    """Watches the places, and goes on watching when one of them is replaced by another folder of its name."""

    def __init__(self, places: Callable[[], WatchedPlaces]) -> None:
        self._places = places
        self._now: WatchedPlaces | None = None
        self._changed = threading.Event()
        self._lock = threading.Lock()
        self._files: set[str] | None = set()  # that changed; None when something else did
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def start(self) -> None:
        """Begin to watch; raises EventsUnavailableError when the system cannot."""
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
        """Say whether something changed since the last call."""
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
        """Return which files changed since the last call; None when it was more than some files."""
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
        except Exception as error:  # noqa: BLE001 - kept for who asks next
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
    """Say whether a change of this path could change the memory: a note, or a folder that came or went."""
    for folder in watched:
        if path == folder or path.startswith(folder.rstrip(os.sep) + os.sep):
            parts = path[len(folder) :].strip(os.sep).split(os.sep)  # noqa: PTH206 - below a folder that is no Path
            if not any(part and is_skipped(part) for part in parts):
                known = is_markdown(parts[-1]) or parts[-1].endswith(TRANSCRIPTS)
                return known or not os.path.isfile(path)  # noqa: PTH113
    return False
