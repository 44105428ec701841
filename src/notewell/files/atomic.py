"""Replaces files atomically: a crash leaves the old or the new content."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from notewell.files.faults import reach

DRAFT_SUFFIX = ".tmp"
REPLACE_TIMEOUT_S = 2.0  # Windows does not replace a file while it is open; readers take milliseconds
_RETRY_S = 0.005


def write_atomically(
    path: str | Path,
    data: bytes | str,
    *,
    mode: int | None = None,
    overwrite: bool = True,
    folder_fd: int | None = None,
    draft_prefix: str | None = None,
    faults: str = "",
) -> None:
    """Write a draft in the same folder, rename it to `path`, and sync both to disk; text is encoded as UTF-8.

    `mode` sets the permissions regardless of the umask. Without `overwrite`, an existing file raises FileExistsError.
    With `folder_fd`, `path` is a name in that open folder, so that no link can lead elsewhere. A draft is named
    `draft_prefix`, or a dot and the file's name, followed by a unique part and `.tmp`; it is removed on failure.
    `faults` names the fault points: "note" for "note.open", "note.write" and so on.
    """
    path = Path(path)
    prefix = f".{path.name}." if draft_prefix is None else draft_prefix
    draft = path.with_name(f"{prefix}{os.getpid()}-{os.urandom(4).hex()}{DRAFT_SUFFIX}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    _reach(faults, "open")
    handle = os.open(draft, flags, 0o666 if mode is None else mode, dir_fd=folder_fd)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(handle, mode)
            _reach(faults, "write")
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            _reach(faults, "fsync")
            os.fsync(handle)
        if overwrite:
            replace(draft, path, folder_fd=folder_fd, faults=faults)
        else:
            _link(draft, path, folder_fd, faults)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder_fd)
        raise
    _reach(faults, "fsync_folder")
    if folder_fd is None:
        sync_folder(path.parent)
    else:
        os.fsync(folder_fd)


def replace(source: Path, target: Path, *, folder_fd: int | None = None, faults: str = "") -> None:
    """Rename a file, replacing another; on Windows, wait for its readers."""
    give_up = time.monotonic() + REPLACE_TIMEOUT_S
    while True:
        _reach(faults, "rename")
        try:
            os.replace(source, target, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
        except PermissionError:
            if os.name != "nt" or time.monotonic() > give_up:
                raise
            time.sleep(_RETRY_S)
        else:
            return


def _link(draft: Path, path: Path, folder_fd: int | None, faults: str) -> None:
    """Put the draft in place unless a file exists: unlike a rename, a hard link then fails."""
    _reach(faults, "rename")
    try:
        os.link(draft, path, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        with suppress(FileNotFoundError):
            os.stat(path, dir_fd=folder_fd)
            raise FileExistsError(path) from None
        os.replace(draft, path, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    else:
        os.unlink(draft, dir_fd=folder_fd)


def sync_folder(folder: Path) -> None:
    """Make renames and new files in a folder survive a power cut; a no-op on Windows."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _reach(faults: str, step: str) -> None:
    if faults:
        reach(f"{faults}.{step}")
