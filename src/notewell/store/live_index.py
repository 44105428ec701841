"""Keeps the current index open, and follows it when a rebuild switches to another file."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notewell.errors import IndexCorruptError
from notewell.store.state_folder import InUse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from notewell.protocols import Store
    from notewell.store.state_folder import StateFolder

OPEN_TRIES = 5  # between reading CURRENT and opening, a rebuild may switch; each try reads CURRENT again


@dataclass(slots=True)
class _Opened:
    path: Path
    identity: tuple[int, int]  # device and inode: a new file may have the name of one that was deleted
    store: Store
    in_use: InUse
    users: int = 0
    retired: bool = False


class LiveIndex:
    """Hands out the current store to any number of threads; one that was replaced closes with its last user."""

    def __init__(self, folder: StateFolder, open_store: Callable[[Path], Store]) -> None:
        self._folder = folder
        self._open_store = open_store
        self._lock = threading.Lock()
        self._opened: _Opened | None = None

    @contextmanager
    def use(self) -> Iterator[Store | None]:
        """Yield the current store, or None when nothing has been indexed yet."""
        opened = self._acquire()
        try:
            yield opened.store if opened else None
        finally:
            if opened:
                self._release(opened)

    def close(self) -> None:
        """Close what is open; users still at work finish first."""
        with self._lock:
            self._retire()

    def _acquire(self) -> _Opened | None:
        with self._lock:
            for _ in range(OPEN_TRIES):
                path = self._folder.current()
                if path is None:
                    self._retire()
                    return None
                try:
                    opened = self._follow(path)
                except FileNotFoundError:
                    continue
                opened.users += 1
                return opened
        raise IndexCorruptError(
            f"{self._folder.path}: the index that CURRENT names vanishes whenever it is opened",
            hint="run `notewell index` to rebuild it",
        )

    def _follow(self, path: Path) -> _Opened:
        """Return the store of `path`, opened unless it is open already; raises FileNotFoundError when it is gone."""
        info = path.stat()
        identity = (info.st_dev, info.st_ino)
        if self._opened is None or (self._opened.path, self._opened.identity) != (path, identity):
            self._retire()
            in_use = InUse(path)
            try:
                self._opened = _Opened(path, identity, self._open_store(path), in_use)
            except BaseException:
                in_use.release()
                raise
        return self._opened

    def _retire(self) -> None:
        opened, self._opened = self._opened, None
        if opened:
            opened.retired = True
            if not opened.users:
                self._end(opened)

    def _release(self, opened: _Opened) -> None:
        with self._lock:
            opened.users -= 1
            if opened.retired and not opened.users:
                self._end(opened)

    def _end(self, opened: _Opened) -> None:
        """Close for good; the last reader of a replaced index deletes it."""
        try:
            opened.store.close()
        finally:
            opened.in_use.release()
        self._folder.remove_if_superseded(opened.path)
