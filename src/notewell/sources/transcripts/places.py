"""Where transcripts lie: folders in, stored paths and stamps out; a stored path someone asks for in, its file out.

The session store's own folder is `sessions/...`; every other folder is `sessions/@<name>/...`. Links are not followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from notewell.errors import NoteNotFoundError, PathRefusedError
from notewell.sources.note_paths import is_disguised, is_skipped, is_text, means_else_on_windows
from notewell.sources.walking import IS_LINK, NOT_REGULAR, NOT_TEXT, is_link, problem_at
from notewell.types import FileStamp, Listing, Problem

TOP = "sessions"
ENDINGS = (".jsonl", ".json5")
REGISTRY = "registry.json5"  # the session store's list of its sessions: no conversation
SET_ASIDE = "damaged"  # its folder of files that could not be read
# Folders are often called so in every program; the folder above them tells which program it is.
_COMMON_NAMES = frozenset({"sessions", "projects", "transcripts", "conversations", "logs", "history", "chats"})


@dataclass(frozen=True, slots=True)
class Root:
    """One place that transcripts come from: a folder, or a single file."""

    stored: tuple[str, ...]  # the first parts of the stored paths
    base: str  # a real folder; nothing below it may be a link
    parts: tuple[str, ...]  # from there to the root
    is_own: bool = False  # the session store's; not there yet is no problem

    @property
    def real_path(self) -> str:
        return os.path.join(self.base, *self.parts)  # noqa: PTH118 - strings, as the walk below it


@dataclass(frozen=True, slots=True)
class Place:
    """A file below a root."""

    root: Root
    rest: tuple[str, ...]

    @property
    def below_base(self) -> tuple[str, ...]:
        return (*self.root.parts, *self.rest)

    @property
    def stored(self) -> str:
        return "/".join((*self.root.stored, *self.rest))


def roots_of(own_folder: Path, paths: Sequence[Path]) -> tuple[Root, ...]:
    """Return where to look: the session store's own folder, then the others in their order."""
    roots = [Root((TOP,), *_base_and_parts(own_folder), is_own=True)]
    taken: set[str] = set()
    roots += [Root((TOP, _unused(_label(path), taken)), *_base_and_parts(path)) for path in paths]
    return tuple(roots)


def _base_and_parts(path: Path) -> tuple[str, tuple[str, ...]]:
    """Links may lead to a root; it must not be one itself."""
    return os.path.realpath(path.parent), (path.name,) if path.name else ()


def _label(path: Path) -> str:
    generic = path.name.lower() in _COMMON_NAMES and path.parent.name
    return "@" + (path.parent.name if generic else path.name or "root").lstrip(".")


def _unused(label: str, taken: set[str]) -> str:
    stem, dot, ending = label.rpartition(".") if label.lower().endswith(ENDINGS) else (label, "", "")
    number, unused = 1, label
    while unused.casefold() in taken:
        number += 1
        unused = f"{stem}-{number}{dot}{ending}"
    taken.add(unused.casefold())
    return unused


def is_transcript(name: str) -> bool:
    """Say whether a file of this name is a transcript."""
    return name.lower().endswith(ENDINGS) and name.lower() != REGISTRY


def could_hold(path: str) -> bool:
    """Say whether a stored path has the form of a transcript's."""
    return path.startswith(f"{TOP}/") and is_transcript(path.rpartition("/")[2])


def place_of(roots: Sequence[Root], path: str) -> Place | None:
    """Return where a stored path would lie, or None when it cannot be one of these roots."""
    parts = tuple(path.split("/"))
    if not could_hold(path) or "\0" in path or not is_text(path) or not {"", ".", ".."}.isdisjoint(parts):
        return None
    if os.name == "nt" and any(map(means_else_on_windows, parts)):
        return None
    for root in roots:
        rest = parts[len(root.stored) :]
        if parts[: len(root.stored)] == root.stored and not any(map(is_skipped, rest)):
            if root.is_own and (rest[0].startswith("@") or rest[0] == SET_ASIDE):
                continue  # a label, or nothing to read
            return Place(root, rest)
    return None


def stamp_at(roots: Sequence[Root], path: str) -> FileStamp:
    """Return the stamp of one transcript, spelt as its folder lists it.

    Raises PathRefusedError for whatever is not a path of a transcript, and NoteNotFoundError when it could be one but
    no such file exists.
    """
    place = place_of(roots, path)
    if place is None:
        raise PathRefusedError(path)
    folder = place.root.base
    try:
        for part in place.below_base:
            info = os.lstat(os.path.join(folder, part))  # noqa: PTH118
            if is_link(info):
                raise PathRefusedError(path)
            if part in place.rest and part not in os.listdir(folder):  # noqa: PTH208 - another case of the same name
                raise NoteNotFoundError(path)
            folder = os.path.join(folder, part)  # noqa: PTH118
    except (FileNotFoundError, NotADirectoryError):
        raise (PathRefusedError if is_disguised(path) else NoteNotFoundError)(path) from None
    except OSError as error:
        raise PathRefusedError(path) from error
    if not stat.S_ISREG(info.st_mode):
        raise PathRefusedError(path)
    return FileStamp("sessions", path, info.st_size, info.st_mtime_ns)


def listing_of(roots: Sequence[Root]) -> Listing:
    """Return every transcript now there, each real file once, sorted by stored path."""
    files: dict[str, FileStamp] = {}
    problems: list[Problem] = []
    seen: set[tuple[int, int] | str] = set()
    for root in roots:
        for found in sorted(_walk(root), key=lambda each: each.path if isinstance(each, Problem) else each[0].path):
            if isinstance(found, Problem):
                problems.append(found)
                continue
            stamp, identity = found
            if identity not in seen:
                seen.add(identity)
                files.setdefault(stamp.path, stamp)
    return Listing(tuple(files[path] for path in sorted(files)), tuple(sorted(problems, key=lambda each: each.path)))


_Found = tuple[FileStamp, tuple[int, int] | str]


def _walk(root: Root) -> Iterator[_Found | Problem]:
    shown = "/".join(root.stored)
    try:
        info = os.lstat(root.real_path)
    except OSError as error:
        if not (root.is_own and isinstance(error, FileNotFoundError)):
            yield problem_at(shown, error)
        return
    if is_link(info):
        yield problem_at(shown, IS_LINK)
    elif stat.S_ISREG(info.st_mode) and is_transcript(root.stored[-1]):
        yield _found(shown, root.real_path, info)
    elif stat.S_ISDIR(info.st_mode):
        yield from _walk_folder(root.real_path, f"{shown}/", left_out={SET_ASIDE} if root.is_own else set())
    else:
        yield problem_at(shown, "is neither a folder nor a transcript (.jsonl)")


def _walk_folder(top: str, stored_top: str, left_out: AbstractSet[str]) -> Iterator[_Found | Problem]:
    waiting = [(top, stored_top)]
    while waiting:
        folder, stored = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                listed = [entry for entry in entries if not is_skipped(entry.name) and entry.name not in left_out]
        except OSError as error:
            yield problem_at(stored.rstrip("/"), error)
            continue
        left_out = frozenset()
        for entry in listed:
            if not (is_transcript(entry.name) or entry.is_dir()):
                continue
            found = _look_at(entry, stored + entry.name)
            if isinstance(found, str):
                waiting.append((found, f"{stored}{entry.name}/"))
            elif found is not None:
                yield found


def _look_at(entry: os.DirEntry[str], stored: str) -> _Found | Problem | str | None:
    """Return a transcript, a problem, the path of a folder to go into, or None when it is gone."""
    try:
        info = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not is_text(entry.name):
        return problem_at(stored, NOT_TEXT)
    if is_link(info):
        return problem_at(stored, IS_LINK)
    if stat.S_ISDIR(info.st_mode):
        return entry.path
    if not stat.S_ISREG(info.st_mode):
        return problem_at(stored, NOT_REGULAR)
    return _found(stored, entry.path, info)


def _found(stored: str, real_path: str, info: os.stat_result) -> _Found:
    # Windows gives no inode while listing; a name that differs only in case is the same file there.
    identity = (info.st_dev, info.st_ino) if info.st_ino else os.path.normcase(real_path)
    return FileStamp("sessions", stored, info.st_size, info.st_mtime_ns), identity
