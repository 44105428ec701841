"""Manages the folder that holds one agent's index, cache and locks."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from notewell.errors import (
    DiskFullError,
    IndexBusyError,
    IndexForeignError,
    IndexReadOnlyError,
    StoreError,
    as_store_errors,
    store_error,
)
from notewell.files.atomic import DRAFT_SUFFIX, write_atomically
from notewell.files.faults import reach
from notewell.files.no_follow import read_regular
from notewell.settings.workspace import require_workspace
from notewell.types import Check

if sys.platform != "win32":
    import fcntl

TOP_FOLDER = ".notewell"
OWNER = "WORKSPACE"  # the file that names the workspace of a state folder
_INDEX_NAME = re.compile(r"index-(\d+)\.sqlite")
_SIDE_FILES = ("-wal", "-shm")  # of a database in WAL mode; they are moved with it
_CORRUPT = ".corrupt-"
_MARK_SUFFIX = ".in-use"
_DRAFT_PREFIX = "CURRENT."
LOW_DISK_BYTES = 200 * 1024 * 1024  # room for an index of 10,000 chunks, its rebuild and a cache
ROOM_SHARE = 1.1  # a new index is about as large as the old one, without its log
ROOM_LOG_BYTES = 4_096_000  # at which SQLite folds the log back; the log of a small index stays smaller than the index
LONGEST_NAME = 100_000  # bytes of a file with one name or path
KEPT_CORRUPT = 3  # copies, enough for diagnosis
LOOK_EVERY_S = 1.0  # how often a waiting writer checks whether the other one makes progress


class StateFolder:
    """One agent's derived files. `CURRENT` names the index that answers; a rebuild writes another and switches."""

    leftovers = ""

    def __init__(self, path: Path, workspace: Path | None = None, is_moved: Callable[[], bool] = lambda: False) -> None:
        self.path = path
        self.shown = str(path)
        self._workspace = None if workspace is None else os.path.realpath(workspace)
        self._is_moved = is_moved  # returns whether the workspace was elsewhere when it was indexed here
        self._owner = path / OWNER
        self.cache_path = path / "cache.sqlite"
        self._pointer = path / "CURRENT"  # read at every use of the index

    def ensure(self) -> None:
        """Create the folder, and keep it out of git."""
        try:
            with as_store_errors(self.path):
                self._make()
        except StoreError as error:
            if isinstance(error.__cause__, (FileExistsError, NotADirectoryError)):
                raise StoreError(
                    f"{self.path} cannot be created: a file is in the way", hint="move that file, or set store.path"
                ) from error
            raise

    def _make(self) -> None:
        reach("state.make")
        if self._workspace is not None:
            require_workspace(Path(self._workspace))  # nothing is created where one was before it moved away
        self.path.mkdir(parents=True, exist_ok=True)
        self._claim()
        top = next((folder for folder in (self.path, *self.path.parents) if folder.name == TOP_FOLDER), None)
        if top is not None and not (top / ".gitignore").exists():
            (top / ".gitignore").write_text("*\n", encoding="utf-8")

    def owner(self) -> str | None:
        """Return the workspace that this folder belongs to; None if that is not recorded."""
        try:
            return os.fsdecode(read_regular(self._owner, most_bytes=LONGEST_NAME)).removesuffix("\n") or None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise store_error(error, self._owner) from error

    @property
    def is_inside(self) -> bool:
        """Whether this folder lies in its workspace, which is its owner then, also after copying both."""
        return self._workspace is not None and Path(os.path.realpath(self.path)).is_relative_to(self._workspace)

    def check_owner(self) -> None:
        """Raise IndexForeignError when this folder belongs to another workspace."""
        owner = self.owner()
        if owner is None or self._workspace is None or owner == self._workspace or self.is_inside:
            return
        with suppress(OSError):
            if Path(owner).samefile(self._workspace):  # another name of it
                return
        if Path(owner).is_dir() or not self._is_moved():
            raise IndexForeignError(self.path, owner, OWNER)

    def _claim(self) -> None:
        """Record the owner; raise like `check_owner`."""
        self.check_owner()
        owner = self.owner()
        if self._workspace is not None and owner != self._workspace:
            mark = os.fsencode(f"{self._workspace}\n")
            with suppress(FileExistsError):  # another process was faster
                write_atomically(self._owner, mark, draft_prefix=_DRAFT_PREFIX, overwrite=owner is not None)
            self.check_owner()

    def checks(self) -> tuple[Check, ...]:
        """Check that the folder is writable and has room."""
        if not self.writable():
            detail = f"{self.path} is read-only: searching works, indexing does not"
            return (Check("folder", False, detail, "set store.path"),)
        nearest = next(folder for folder in (self.path, *self.path.parents) if folder.exists())
        free = shutil.disk_usage(nearest).free
        hint = "" if free > LOW_DISK_BYTES else "free some space: a rebuild needs room for a second index"
        return (Check("folder", free > LOW_DISK_BYTES, f"{self.path}, {free // 2**20:,} MB free", hint),)

    def read_only_error(self) -> IndexReadOnlyError:
        return IndexReadOnlyError(f"cannot write to {self.path}", hint="set store.path to a folder you can write to")

    def writable(self) -> bool:
        """Return whether files can be created here, or the folder itself."""
        nearest = next((folder for folder in (self.path, *self.path.parents) if folder.exists()), None)
        return nearest is not None and os.access(nearest, os.W_OK | os.X_OK)

    def current(self) -> Path | None:
        """Return the index that `CURRENT` names; None before the first index, or when it was deleted."""
        named = self._named()
        while named is not None and not named.exists():
            again = self._named()  # a rebuild may have switched and deleted the old file
            if again == named:
                return None
            named = again
        return named

    def next_index_path(self) -> Path:
        """Return an unused path; the names of indexes that were set aside are not used again."""
        taken = [int(found[1]) for name in self._names() if (found := _INDEX_NAME.match(name))]
        return self.path / f"index-{max(taken, default=0) + 1}.sqlite"

    def switch_to(self, path: Path) -> None:
        """Make this the current index, atomically."""
        with as_store_errors(self.path):
            write_atomically(self._pointer, f"{path.name}\n", draft_prefix=_DRAFT_PREFIX, faults="pointer")

    def unfinished(self) -> list[Path]:
        """Return interrupted rebuilds, oldest first: the index files newer than the current one."""
        current = self._named()
        found = _INDEX_NAME.fullmatch(current.name) if current else None
        newest = int(found[1]) if found else 0
        return [path for number, path in self._numbered() if number > newest and path != current]

    def holds(self, path: Path) -> bool:
        return path.parent == self.path and path.exists()

    def agents(self) -> list[str]:
        """Return the agents of this workspace that have an index; only in `.notewell` is every folder an agent's."""
        top = self.path.parent
        if top.name != TOP_FOLDER:
            return [self.path.name] if self.current() else []
        return sorted(folder.name for folder in top.iterdir() if StateFolder(folder).current())

    def _numbered(self) -> list[tuple[int, Path]]:
        found = [(match, name) for name in self._names() if (match := _INDEX_NAME.fullmatch(name))]
        return sorted((int(match[1]), self.path / name) for match, name in found)

    def set_aside(self, path: Path) -> Path:
        """Rename an unusable index, so that a new one can be built; return the new name."""
        kept = set_aside_database(path)
        if self._named() == path:
            self._pointer.unlink(missing_ok=True)
        return kept

    def set_folders_aside(self) -> list[str]:
        """Rename folders and pipes in the place of our files; return their new names."""
        found = []
        for name in self._names():
            is_own = name in {"CURRENT", OWNER, "write.lock", self.cache_path.name} or _INDEX_NAME.match(name)
            path = self.path / name
            if is_own and _CORRUPT not in name and path.exists() and not path.is_file() and not path.is_symlink():
                kept = path.with_name(f"{name}{_CORRUPT}{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
                with as_store_errors(path):
                    path.rename(kept)
                found.append(kept.name)
        return found

    def remove_superseded(self) -> None:
        """Delete old index files that nobody reads, and all but the newest of those set aside.

        Only for the holder of the write lock: `CURRENT` does not name an index that is being built either.
        """
        current = self._named()
        for _, path in self._numbered():
            if path != current:
                self._remove(path)
        names = self._names()
        kept = sorted(filter(_is_corrupt, names), key=_set_aside_at)[-KEPT_CORRUPT:]
        for name in names:
            draft = name.startswith(_DRAFT_PREFIX) and name.endswith(DRAFT_SUFFIX)  # of a killed process
            if _is_corrupt(name) and name not in kept:
                _unlink_database(self.path / name)
            elif draft or _is_orphan(name, names):
                _unlink(self.path / name)

    def remove_if_superseded(self, path: Path) -> None:
        """Delete an index older than the current one, unless somebody reads it."""
        current = self._named()
        if current is not None and path.parent == self.path and _number(path) < _number(current):
            self._remove(path)

    def _remove(self, path: Path) -> None:
        with _unused(path) as unused:
            if unused:
                _unlink_database(path)
                _unlink(_mark_of(path))

    @staticmethod
    def bytes_of(path: Path) -> int:
        """Return the size of a database with its side files, which may vanish at any time."""
        total = 0
        for suffix in ("", *_SIDE_FILES):
            with suppress(FileNotFoundError):
                total += path.with_name(path.name + suffix).stat().st_size
        return total

    def check_room_for_rebuild(self) -> None:
        """Raise DiskFullError when there is no room for a second index."""
        current = self.current()
        if current is None:
            return
        begun, size = sum(map(self.bytes_of, self.unfinished())), self.bytes_of(current)
        needed_bytes = int(size * ROOM_SHARE) + min(size, ROOM_LOG_BYTES) - begun
        free = shutil.disk_usage(self.path).free
        if free < needed_bytes:
            raise DiskFullError(
                f"{self.path}: a rebuild needs about {needed_bytes / 1e6:,.1f} MB and {free / 1e6:,.1f} MB are free",
                hint="free some space; the index in use goes on answering",
            )

    @contextmanager
    def write_lock(self, timeout_s: float, *, give_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Be the only writer of all processes, waiting as long as another one makes progress.

        Raises IndexBusyError when nothing was written here for `timeout_s`, or when `give_up` returns true. The
        operating system releases the lock of a process that dies.
        """
        import filelock  # costs as much as a keyword search

        lock = filelock.FileLock(self.path / "write.lock")
        seen, since = -1, time.monotonic()
        while True:
            try:
                with as_store_errors(self.path):
                    reach("state.lock")
                    lock.acquire(timeout=min(timeout_s, LOOK_EVERY_S))
                break
            except filelock.Timeout as error:
                newest = self._last_write()
                if newest != seen:
                    seen, since = newest, time.monotonic()
                if give_up() or time.monotonic() - since >= timeout_s:
                    raise IndexBusyError(
                        f"another process is indexing into {self.path}", hint="try again when it has finished"
                    ) from error
        try:
            yield
        finally:
            lock.release()

    def _last_write(self) -> int:
        """Return when a database here was last written, in nanoseconds."""
        newest = 0
        for name in self._names():
            if ".sqlite" in name:
                with suppress(OSError):
                    newest = max(newest, (self.path / name).stat().st_mtime_ns)
        return newest

    def _named(self) -> Path | None:
        try:
            reach("pointer.read")
            name = read_regular(self._pointer, most_bytes=LONGEST_NAME).decode("utf-8", "replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise store_error(error, self._pointer) from error
        return self.path / name if _INDEX_NAME.fullmatch(name) else None

    def _names(self) -> list[str]:
        try:
            return os.listdir(self.path)  # noqa: PTH208 - strings are all that is needed
        except FileNotFoundError:
            return []


def set_aside_database(path: Path) -> Path:
    """Rename a database and its side files; return the new path."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    kept = path.with_name(f"{path.name}{_CORRUPT}{stamp}")
    with as_store_errors(path):
        # The log goes first: it must not be taken for the log of a new database of the same name.
        for suffix in (*_SIDE_FILES, ""):
            side = path.with_name(path.name + suffix)
            if side.exists():
                reach("aside.rename")
                side.replace(kept.with_name(kept.name + suffix))
    return kept


def _is_corrupt(name: str) -> bool:
    return _CORRUPT in name and not name.endswith(_SIDE_FILES)


def _is_orphan(name: str, names: Collection[str]) -> bool:
    """Return whether this is a side file or a mark without its index."""
    if not _INDEX_NAME.match(name):
        return False
    owner = next((name.removesuffix(end) for end in (*_SIDE_FILES, _MARK_SUFFIX) if name.endswith(end)), None)
    return owner is not None and owner not in names


def _set_aside_at(name: str) -> str:
    return name.rpartition(_CORRUPT)[2]


def _number(path: Path) -> int:
    found = _INDEX_NAME.fullmatch(path.name)
    return int(found[1]) if found else -1


def _unlink_database(path: Path) -> None:
    if _unlink(path):
        for suffix in _SIDE_FILES:
            _unlink(path.with_name(path.name + suffix))


def _unlink(path: Path) -> bool:
    """Delete a file if possible; otherwise (on Windows, with a reader) a later run tries again."""
    try:
        reach("superseded.remove")
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


# --- indexes in use ------------------------------------------------------------------------------
#
# A database must not be deleted while another process may open it once more, as it does for every further thread. So a
# process with an open index holds a shared lock on a small file beside it, and deleting the index takes an exclusive
# one. The database itself is never locked: closing a second handle would drop SQLite's own locks. Windows does not
# delete open files, so it needs none of this.


def _mark_of(database: Path) -> Path:
    """Return the file that is locked while the database is in use."""
    return database.with_name(database.name + _MARK_SUFFIX)


class InUse:
    """Keeps other processes from deleting a database, until `release` or garbage collection.

    Raises FileNotFoundError if the database is being deleted.
    """

    def __init__(self, database: Path) -> None:
        self._end: Callable[[], object] | None = None
        if sys.platform == "win32":
            return
        handle = _open_mark(_mark_of(database))
        if handle is None:
            return  # nobody deletes anything in a read-only folder
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise FileNotFoundError(errno.ENOENT, "this index is being deleted", str(database)) from error
        except OSError:  # a file system without locks
            os.close(handle)
        else:
            self._end = weakref.finalize(self, os.close, handle)

    def release(self) -> None:
        """Allow deletion; may be called twice."""
        if self._end is not None:
            self._end()


@contextmanager
def _unused(database: Path) -> Iterator[bool]:
    """Yield whether the database is unused; if so, nobody can open it in the `with` block."""
    if sys.platform == "win32":
        yield True
        return
    handle = _open_mark(_mark_of(database))
    try:
        if handle is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            except OSError:  # a file system without locks
                pass
        yield True
    finally:
        if handle is not None:
            os.close(handle)


def _open_mark(mark: Path) -> int | None:
    """Open the mark, creating it if possible; locking needs no write permission."""
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        with suppress(OSError):
            return os.open(mark, flags | os.O_CLOEXEC, 0o644)
    return None
