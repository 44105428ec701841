"""Opens regular files below a folder without following symbolic links."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable

MAX_READS = 3  # a file that changes during three reads is being appended to: take what is there
_NAME_SURROGATE = 0x20000000  # bit of a Windows reparse tag that junctions and links have, but not cloud files
_FOLDER_BY_FOLDER = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
# O_NONBLOCK: opening a pipe without a writer would block. O_BINARY: Windows would stop at Ctrl-Z.
_FILE_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def is_link(info: os.stat_result) -> bool:
    """Return whether lstat found a symbolic link or a Windows junction."""
    return stat.S_ISLNK(info.st_mode) or bool(getattr(info, "st_reparse_tag", 0) & _NAME_SURROGATE)


def read_below(base: str, parts: tuple[str, ...], *, most_bytes: int | None = None) -> tuple[bytes, os.stat_result]:
    """Return a file's bytes with their fstat; raise like `open_below`, and OSError (EFBIG) beyond `most_bytes`."""
    with open_below(base, parts) as file:
        if most_bytes is None:
            return settled(file.readall, file)
        _check_size(os.fstat(file.fileno()).st_size, most_bytes, parts)
        raw, info = settled(lambda: _read_up_to(file, most_bytes + 1), file)
        _check_size(len(raw), most_bytes, parts)
        return raw, info


def open_regular(path: str | os.PathLike[str]) -> io.FileIO:
    """Open a file for reading, unbuffered, also through a link; raise OSError unless it is a regular file.

    Reading a pipe in its place might never end.
    """
    return _regular(os.open(path, _FILE_FLAGS), os.fspath(path))


def read_regular(path: str | os.PathLike[str], *, most_bytes: int | None = None) -> bytes:
    """Return the bytes of a file; raise like `open_regular`, and OSError (EFBIG) beyond `most_bytes`."""
    with open_regular(path) as file:
        if most_bytes is None:
            return file.readall()
        raw = _read_up_to(file, most_bytes + 1)
    if len(raw) > most_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fspath(path))
    return raw


def _check_size(size: int, most_bytes: int, parts: tuple[str, ...]) -> None:
    if size > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes // 10**6} MB", "/".join(parts))


def _read_up_to(file: io.FileIO, size: int) -> bytes:
    pieces = []
    while size and (piece := file.read(min(size, 2**20))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def open_below(base: str, parts: tuple[str, ...]) -> io.FileIO:
    """Open a file for reading, unbuffered.

    Raises OSError when it is missing, unreadable or not a regular file, or when there is a link anywhere below `base`.
    """
    handle = _open_by_folder(base, parts) if _FOLDER_BY_FOLDER else _open_by_path(base, parts)
    return _regular(handle, "/".join(parts))


def _regular(handle: int, path: str) -> io.FileIO:
    """Return an open regular file; FileIO itself would leave a folder open, and name it by number in the error."""
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return io.FileIO(handle)
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "not a regular file", path)


def settled(read_rest: Callable[[], bytes], file: io.FileIO) -> tuple[bytes, os.stat_result]:
    """Return the content and fstat of an open file, reading it again if it changed meanwhile.

    The fstat is from before the read: if the file keeps changing, its next listing differs and it is read again.
    """
    for _ in range(MAX_READS):
        before = os.fstat(file.fileno())
        file.seek(0)
        raw = read_rest()
        after = os.fstat(file.fileno())
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            break
    return raw, before


def _open_by_folder(base: str, parts: tuple[str, ...]) -> int:
    """Open one part after another, each relative to the open folder, so that nothing can be swapped in."""
    folder_flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(base, folder_flags)
    try:
        for part in parts[:-1]:
            inner = os.open(part, folder_flags, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FILE_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def _open_by_path(base: str, parts: tuple[str, ...]) -> int:
    """Open a file where folders cannot be opened: check every part before, and the opened file after."""
    path = base
    for part in parts:
        path = os.path.join(path, part)  # noqa: PTH118
        info = os.lstat(path)
        if is_link(info):
            raise OSError(errno.ELOOP, "a link lies on the way", path)
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    handle = os.open(path, _FILE_FLAGS)
    real = os.path.join(os.path.realpath(base), *parts)  # noqa: PTH118
    stayed = os.path.normcase(os.path.realpath(path)) == os.path.normcase(real)
    if not (stayed and os.path.samestat(os.fstat(handle), os.lstat(path))):
        os.close(handle)
        raise OSError(errno.ELOOP, "the path changed while it was opened", path)
    return handle
