"""Replaces, moves and deletes files in a folder, each in one step and never through a link."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from notewell.files.atomic import DRAFT_SUFFIX, write_atomically
from notewell.files.faults import reach
from notewell.files.no_follow import is_link

DRAFT_PREFIX = ".notewell-"  # hidden, so that no listing of notes shows a draft
_BY_FOLDER = (
    {os.open, os.mkdir, os.rename, os.unlink, os.stat} <= os.supports_dir_fd
    and hasattr(os, "O_NOFOLLOW")
    and hasattr(os, "O_DIRECTORY")
)


class NoteFolder:
    """One folder that is held open, or checked where folders cannot be; names in it are plain file names."""

    def __init__(self, path: str, handle: int | None) -> None:
        self._path = path
        self._handle = handle

    def replace(self, name: str, content: bytes, mode: int) -> None:
        """Give a file this content in one step: after a crash the old or the new content is there, whole."""
        write_atomically(
            self._at(name), content, mode=mode, folder_fd=self._handle, draft_prefix=DRAFT_PREFIX, faults="note"
        )

    def sync(self) -> None:
        """Make what was done here outlive a power cut; Windows needs no such call."""
        if self._handle is not None:
            reach("note.fsync_folder")
            os.fsync(self._handle)

    def stat(self, name: str) -> os.stat_result | None:
        """Return what lstat says of a file, or None when it is not there."""
        try:
            return os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Delete a file."""
        reach("note.remove")
        os.unlink(self._at(name), dir_fd=self._handle)

    def remove_folder(self, name: str) -> None:
        """Delete a folder that is empty."""
        os.rmdir(self._at(name), dir_fd=self._handle)

    def move(self, name: str, into: NoteFolder, new_name: str) -> None:
        """Give a file or folder another name, here or in another folder; the caller sees that it is free."""
        reach("note.rename")
        if self._handle is None or into._handle is None:
            os.rename(self._at(name), into._at(new_name))  # noqa: PTH104
        else:
            os.rename(name, new_name, src_dir_fd=self._handle, dst_dir_fd=into._handle)
        into.sync()
        self.sync()

    def remove_drafts(self) -> None:
        """Delete drafts that killed processes left; the caller holds the lock, so nobody is writing one."""
        for name in os.listdir(self._path if self._handle is None else self._handle):  # noqa: PTH208
            if name.startswith(DRAFT_PREFIX) and name.endswith(DRAFT_SUFFIX):
                with contextlib.suppress(OSError):
                    self.remove(name)

    def _at(self, name: str) -> str:
        return name if self._handle is not None else os.path.join(self._path, name)  # noqa: PTH118


@contextmanager
def open_folder(base: str, parts: tuple[str, ...], *, create: bool) -> Iterator[NoteFolder]:
    """Yield the folder, made if need be; raises OSError when a link lies on the way or a file is in it."""
    if not _BY_FOLDER:
        yield NoteFolder(_checked_path(base, parts, create=create), None)
        return
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(base, flags)
    try:
        for part in parts:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            inner = os.open(part, flags, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield NoteFolder(os.path.join(base, *parts), handle)  # noqa: PTH118
    finally:
        os.close(handle)


def _checked_path(base: str, parts: tuple[str, ...], *, create: bool) -> str:
    path = base
    for part in parts:
        path = os.path.join(path, part)  # noqa: PTH118
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path)  # noqa: PTH102
        if is_link(os.lstat(path)):
            raise OSError(errno.ELOOP, "a link lies on the way", path)
    return path
