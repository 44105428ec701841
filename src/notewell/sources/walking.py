"""A root in, the Markdown files below it and what could not be looked at out; links are reported, never followed."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from typing import NamedTuple

from notewell.sources.note_paths import Root, is_markdown, is_skipped, is_text
from notewell.types import FileStamp, Problem

_KIND = 0o170000  # the bits of a mode that say what a thing is
_HAS_JUNCTIONS = hasattr(os.stat_result, "st_reparse_tag")
_NAME_SURROGATE = 0x20000000  # of a Windows reparse tag: junctions and links have it, cloud placeholders do not

# On Windows a listing comes with sizes and times: to look at each file would be slower.
_TIMES_TELL = os.name != "nt"
SETTLED_NS = 20_000_000  # twice the tick of a file system's clock, within which a folder may change and keep its time
REMEMBERED_S = 60.0  # then every folder is listed anew, in case a file system does not keep the times of folders

IS_LINK = "is a symbolic link, and links are not followed"
NOT_REGULAR = "is not a regular file"
NOT_TEXT = "has a name that is not valid Unicode; rename it to have it indexed"


def is_link(info: os.stat_result) -> bool:
    """Say whether lstat met something that stands for another place: a symbolic link or a Windows junction."""
    return stat.S_ISLNK(info.st_mode) or bool(getattr(info, "st_reparse_tag", 0) & _NAME_SURROGATE)


def problem_at(path: str, reason: str | OSError) -> Problem:
    """Return the problem with a path that can be printed, whatever bytes the name holds."""
    if isinstance(reason, OSError):
        reason = f"cannot be read: {reason.strerror or type(reason).__name__}"
    return Problem(path.encode("utf-8", "backslashreplace").decode(), reason)


class Found(NamedTuple):
    """A note on disk."""

    real_path: str
    identity: tuple[int, int] | str  # the same for two names of one file
    stamp: FileStamp


@dataclass(frozen=True, slots=True)
class _Folder:
    """What a folder held when it was listed."""

    state: tuple[int, ...]  # what lstat said of it then
    files: list[Found]
    folders: list[tuple[str, str]]  # real path, stored path with a slash behind
    problems: list[Problem]


class Walker:
    """Walks roots again and again. A folder that has not changed is not listed anew: only its files are looked at.

    Creating, removing and renaming change the time of the folder they happen in; a file's own changes show in the file.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Folder] = {}
        self._forget_at = 0.0

    def walk(self, root: Root) -> tuple[list[Found], list[Problem]]:
        """Return what one root holds now, in no particular order, and what could not be looked at."""
        try:
            info = os.lstat(root.real_path)
        except OSError as error:
            return [], [problem_at(root.real_path if root.is_extra else root.stored, error)]
        shown = root.stored or root.real_path
        if not is_link(info) and is_text(shown):
            if stat.S_ISDIR(info.st_mode) and not root.is_file:
                return self._walk_folders(root.real_path, f"{root.stored}/" if root.stored else "")
            if stat.S_ISREG(info.st_mode) and is_markdown(root.stored):
                return [_found(root.stored, root.real_path, info)], []
        return [], [problem_at(shown, _why_not(shown, info))]

    def _walk_folders(self, top: str, stored_top: str) -> tuple[list[Found], list[Problem]]:
        if time.monotonic() >= self._forget_at:
            self._known, self._forget_at = {}, time.monotonic() + REMEMBERED_S
        found: list[Found] = []
        problems: list[Problem] = []
        waiting = [(top, stored_top)]
        while waiting:
            place = waiting.pop()
            try:
                folder = self._unchanged(place) or self._listed(place)
            except OSError as error:
                problems.append(problem_at(place[1].rstrip("/") or place[0], error))
                continue
            found += folder.files
            problems += folder.problems
            waiting += folder.folders
        return found, problems

    def _unchanged(self, place: tuple[str, str]) -> _Folder | None:
        """Return what a folder held before, each file looked at anew, if its list of names is still the same."""
        folder = self._known.get(place)
        if folder is None or folder.state != _state(os.lstat(place[0])):
            return None
        files = folder.files
        for position, (real_path, identity, stamp) in enumerate(files):
            try:
                info = os.lstat(real_path)
            except OSError:  # gone this very moment
                return None
            if info.st_mtime_ns == stamp.mtime_ns and info.st_size == stamp.size and info.st_ino == identity[1]:
                continue
            if not stat.S_ISREG(info.st_mode):
                return None
            if files is folder.files:
                files = files.copy()
            files[position] = _found(stamp.path, real_path, info)
        if files is not folder.files:
            folder = self._known[place] = _Folder(folder.state, files, folder.folders, folder.problems)
        return folder

    def _listed(self, place: tuple[str, str]) -> _Folder:
        """List a folder, and remember it if nothing can change in it that its time would not show."""
        now_ns = time.time_ns()
        state = _state(os.lstat(place[0]))
        folder = _list_folder(state, *place)
        if _TIMES_TELL and all(time_ns % 1_000_000_000 and time_ns < now_ns - SETTLED_NS for time_ns in state[:2]):
            self._known[place] = folder
        else:
            self._known.pop(place, None)
        return folder


def _state(info: os.stat_result) -> tuple[int, ...]:
    return info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_dev, info.st_mode


def _found(stored: str, real_path: str, info: os.stat_result) -> Found:
    # Windows gives no inode while listing; a name that differs only in case is the same file there.
    identity = (info.st_dev, info.st_ino) if info.st_ino else os.path.normcase(real_path)
    return Found(real_path, identity, FileStamp("memory", stored, info.st_size, info.st_mtime_ns))


def _why_not(shown: str, info: os.stat_result) -> str:
    if is_link(info):
        return IS_LINK
    if not is_text(shown):
        return NOT_TEXT
    return "is not a Markdown file" if stat.S_ISREG(info.st_mode) else NOT_REGULAR


def _list_folder(state: tuple[int, ...], folder: str, stored: str) -> _Folder:
    """Return what a folder holds. `stored` is its stored path with a slash behind."""
    files: list[Found] = []
    folders: list[tuple[str, str]] = []
    problems: list[Problem] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            # Nearly all are such: they need no closer look, and a sync looks at thousands.
            plain = name.endswith(".md") and name[0] != "." and name.isascii()
            if not plain and (is_skipped(name) or not (is_markdown(name) or entry.is_dir())):
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # deleted since the folder was opened: simply no longer there
                continue
            # A look at the kind alone is not enough on Windows, where a junction is a folder, too.
            kind = info.st_mode & _KIND if not (_HAS_JUNCTIONS and is_link(info)) else stat.S_IFLNK
            if kind == stat.S_IFREG and (plain or is_text(name)):
                files.append(_found(stored + name, entry.path, info))
            elif not is_text(name):
                problems.append(problem_at(stored + name, NOT_TEXT))
            elif kind == stat.S_IFDIR:
                folders.append((entry.path, f"{stored}{name}/"))
            else:
                problems.append(problem_at(stored + name, IS_LINK if kind == stat.S_IFLNK else NOT_REGULAR))
    return _Folder(state, files, folders, problems)
