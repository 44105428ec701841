"""Lends the index that answers to any number of threads, also while a rebuild replaces it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from notewell.errors import IndexCorruptError
from notewell.store.state_folder import InUse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from notewell.errors import IndexReadOnlyError
    from notewell.protocols import ReadableStore, Store
    from notewell.store.state_folder import StateFolder
    from notewell.types import Check

OPEN_TRIES = 5  # between reading CURRENT and opening, a rebuild may switch; each try reads CURRENT again


class ReadAccess(Protocol):
    """Lends the store in use for reading, to any number of threads."""

    def use(self) -> AbstractContextManager[ReadableStore | None]:
        """Lend the store; None before the first index."""
        ...

    def close(self) -> None:
        """Close the store once its users are done; the next use opens it again."""
        ...


class StoreAccess(ReadAccess, Protocol):
    """Lends the store in use, and switches when a rebuild replaces it."""

    def use(self) -> AbstractContextManager[Store | None]: ...


class Generations(Protocol):
    """The indexes of one agent: one answers while a rebuild fills the next. Each is named by a path."""

    @property
    def shown(self) -> str:
        """Where they are, for messages."""
        ...

    @property
    def leftovers(self) -> str:
        """Where bytes of a forgotten text may stay until an administrator acts; empty: nowhere."""
        ...

    def writable(self) -> bool:
        """Return whether this machine may write."""
        ...

    def read_only_error(self) -> IndexReadOnlyError:
        """Return the error that says why not."""
        ...

    def ensure(self) -> None:
        """Create the storage; raise when it belongs to another workspace."""
        ...

    def write_lock(
        self, timeout_s: float, *, give_up: Callable[[], bool] = lambda: False
    ) -> AbstractContextManager[None]:
        """Be the only writer, waiting as long as another one makes progress; raise IndexBusyError otherwise."""
        ...

    def current(self) -> Path | None:
        """Return the index that answers; None when nothing has been indexed."""
        ...

    def next_index_path(self) -> Path:
        """Return an unused name for another index."""
        ...

    def switch_to(self, path: Path) -> None:
        """Make this the current index, atomically."""
        ...

    def unfinished(self) -> Sequence[Path]:
        """Return interrupted rebuilds, oldest first: the indexes newer than the current one."""
        ...

    def holds(self, path: Path) -> bool:
        """Return whether this index exists."""
        ...

    def set_aside(self, path: Path) -> Path:
        """Take an unusable index out of use; return the name under which it is kept."""
        ...

    def remove_superseded(self) -> None:
        """Delete all but the current index; only for the holder of the write lock."""
        ...

    def check_room_for_rebuild(self) -> None:
        """Raise DiskFullError when there is no room for a second index."""
        ...

    def agents(self) -> Sequence[str]:
        """Return the agents of this workspace that have an index."""
        ...

    def checks(self) -> Iterable[Check]:
        """Return the checks of `doctor` on the storage."""
        ...


# --- in files ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Opened:
    path: Path
    identity: tuple[int, int]  # device and inode: a new file may have the name of one that was deleted
    store: Store
    in_use: InUse
    users: int = 0
    retired: bool = False


class LiveIndex:
    """Lends the current store to any number of threads; one that was replaced is closed by its last user."""

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
        """Close the store once its users are done."""
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
