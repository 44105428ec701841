"""The folder that holds one agent's index, cache and lock: paths come in, names of database files go out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from recollect.errors import IndexBusyError, StoreError

TOP_FOLDER = ".recollect"
_INDEX_NAME = re.compile(r"index-(\d+)\.sqlite")
_SIDE_FILES = ("-wal", "-shm")  # a database in WAL mode; they go wherever the database goes


class StateFolder:
    """One agent's derived files. `CURRENT` names the index that answers; a rebuild writes another and switches."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def cache_path(self) -> Path:
        return self.path / "cache.sqlite"

    @property
    def _pointer(self) -> Path:
        return self.path / "CURRENT"

    def ensure(self) -> None:
        """Create the folder, and keep what is derived out of git."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise StoreError(
                f"{self.path} cannot be made: a file is in the way", hint="move that file, or set store.path"
            ) from error
        top = next((folder for folder in (self.path, *self.path.parents) if folder.name == TOP_FOLDER), None)
        if top is not None and not (top / ".gitignore").exists():
            (top / ".gitignore").write_text("*\n", encoding="utf-8")

    def writable(self) -> bool:
        """Say whether files can be made here, or the folder itself if it is not there yet."""
        nearest = next((folder for folder in (self.path, *self.path.parents) if folder.exists()), None)
        return nearest is not None and os.access(nearest, os.W_OK | os.X_OK)

    def current(self) -> Path | None:
        """Return the index that `CURRENT` names, or None when nothing has been indexed or the index was deleted."""
        named = self._named()
        while named is not None and not named.exists():
            again = self._named()  # a switch may have come in between, and the old file gone
            if again == named:
                return None
            named = again
        return named

    def next_index_path(self) -> Path:
        """Return a path that no index had before, not even one that was set aside."""
        taken = [int(found[1]) for name in self._names() if (found := _INDEX_NAME.match(name))]
        return self.path / f"index-{max(taken, default=0) + 1}.sqlite"

    def switch_to(self, path: Path) -> None:
        """Make `path` the current index; after a crash either the old or the new one is named, whole."""
        draft = self.path / f"CURRENT.{os.getpid()}.tmp"
        with draft.open("w", encoding="utf-8") as file:
            file.write(f"{path.name}\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._pointer)
        _sync_folder(self.path)

    def unfinished(self) -> list[Path]:
        """Return the index files that `CURRENT` does not name, oldest first: rebuilds that were cut short."""
        current = self._named()
        numbered = sorted((int(found[1]), name) for name in self._names() if (found := _INDEX_NAME.fullmatch(name)))
        return [self.path / name for _, name in numbered if self.path / name != current]

    def set_aside(self, path: Path) -> Path:
        """Keep a damaged or foreign index under another name, so that a new one can be built; return that name."""
        kept = set_aside_database(path)
        if self._named() == path:
            self._pointer.unlink(missing_ok=True)
        return kept

    def remove_superseded(self) -> None:
        """Delete index files that `CURRENT` does not name; those set aside stay."""
        for path in self.unfinished():
            try:
                path.unlink(missing_ok=True)
            except PermissionError:
                continue  # on Windows another process still reads it; the next run tries again
            for suffix in _SIDE_FILES:
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        for draft in self.path.glob("CURRENT.*.tmp"):  # of a process that was killed while it switched
            draft.unlink(missing_ok=True)

    @contextmanager
    def write_lock(self, timeout_s: float) -> Iterator[None]:
        """Be the only writer among all processes; raises IndexBusyError after `timeout_s`.

        The operating system lets go of the lock when its holder dies.
        """
        import filelock  # costs as much as a keyword search

        lock = filelock.FileLock(self.path / "write.lock")
        try:
            lock.acquire(timeout=timeout_s)
        except filelock.Timeout as error:
            raise IndexBusyError(
                f"another process is indexing into {self.path}", hint="try again when it has finished"
            ) from error
        try:
            yield
        finally:
            lock.release()

    def _named(self) -> Path | None:
        try:
            name = self._pointer.read_text(encoding="utf-8", errors="replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return self.path / name if _INDEX_NAME.fullmatch(name) else None

    def _names(self) -> list[str]:
        return [entry.name for entry in self.path.iterdir()] if self.path.exists() else []


def set_aside_database(path: Path) -> Path:
    """Rename a database and its side files so that they are kept but no longer used; return the new path."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    kept = path.with_name(f"{path.name}.damaged-{stamp}")
    for suffix in ("", *_SIDE_FILES):
        side = path.with_name(path.name + suffix)
        if side.exists():
            side.replace(kept.with_name(kept.name + suffix))
    return kept


def _sync_folder(folder: Path) -> None:
    """Make a rename outlive a power cut; Windows cannot open folders and needs no such call."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
