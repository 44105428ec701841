"""Lists the documents below a root; symbolic links are reported, never followed."""

from __future__ import annotations

import os
import re
import stat
import time
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from notewell.errors import NoteNotFoundError, PathRefusedError
from notewell.files.no_follow import is_link
from notewell.types import FileStamp, Listing, Problem, SourceName

if TYPE_CHECKING:
    from notewell.sources.included import FolderRules, Inclusion

_KIND = 0o170000  # the bits of a mode that say what a thing is
_HAS_JUNCTIONS = hasattr(os.stat_result, "st_reparse_tag")

# On Windows a listing includes sizes and times; a stat of each file would be slower.
_TIMES_TELL = os.name != "nt"
_LARGEST_INTEGER = 2**63 - 1  # for databases; some file systems use all 64 bits of an inode
SETTLED_NS = 20_000_000  # twice a file system's clock tick, within which a folder may change without a new time
REMEMBERED_S = 60.0  # then all folders are listed again, for file systems without reliable folder times

IS_LINK = "is a symbolic link, and links are not followed"
NOT_REGULAR = "is not a regular file"
NOT_TEXT = "has a name that is not valid Unicode; rename it to have it indexed"


# --- names and stored paths --------------------------------------------------------------------

ROOT_FILES = ("MEMORY.md", "memory.md")
ROOT_FOLDER = "memory"
SKIPPED_FOLDERS = frozenset({"node_modules"})  # in addition to names that begin with a dot

# Windows reserves these in any folder, with any extension; Microsoft, "Naming Files, Paths, and Namespaces".
_WINDOWS_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"}
)
_WINDOWS_FORBIDDEN = frozenset('\\:*?"<>|')
_PERCENT_ESCAPE = re.compile("%(?:[0-9a-f]{2}|u[0-9a-f]{4})", re.IGNORECASE)
_SLASH_LOOKALIKES = frozenset("∕⁄⧸⧵⟋⟍∖")  # not folded by NFKC


def unused_label(name: str, taken: set[str], endings: tuple[str, ...]) -> str:
    """Return `@name`, or `@name-2`, `@name-3.md`, ... if that is taken; adds the label to `taken`."""
    stem, dot, ending = name.rpartition(".") if name.lower().endswith(endings) else (name, "", "")
    number, label = 1, f"@{name}"
    while label.casefold() in taken:
        number += 1
        label = f"@{stem}-{number}{dot}{ending}"
    taken.add(label.casefold())
    return label


def is_markdown(name: str) -> bool:
    """Return whether a file of this name is a note."""
    return name[-3:].lower() == ".md"


def is_skipped(name: str) -> bool:
    """Return whether a file or folder is ignored by its name: hidden ones and `node_modules`."""
    return name.startswith(".") or name.lower() in SKIPPED_FOLDERS


def is_text(name: str) -> bool:
    """Return whether a file name is valid Unicode; invalid bytes are decoded as lone surrogates."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def parts_of(path: str) -> tuple[str, ...] | None:
    """Return the parts of a stored path; None if it is not valid on this system."""
    parts = tuple(path.split("/"))
    if "\0" in path or not is_text(path) or not {"", ".", ".."}.isdisjoint(parts):
        return None
    if os.name == "nt" and any(map(means_else_on_windows, parts)):
        return None
    return parts


def is_disguised(path: str) -> bool:
    """Return whether a path means something else when it is decoded, normalized, displayed, or used on another system.

    A note may have such a name; but if it does not exist, the path is refused instead of not found.
    """
    folded = unicodedata.normalize("NFKC", path)
    return (
        _PERCENT_ESCAPE.search(path) is not None
        or folded.count("/") != path.count("/")
        or not {"", ".", ".."}.isdisjoint(part.strip(" .") or ".." for part in folded.split("/"))
        or not _SLASH_LOOKALIKES.isdisjoint(path)
        or any(unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"} for char in path)
        or any(map(means_else_on_windows, folded.split("/")))
    )


def means_else_on_windows(part: str) -> bool:
    """Return whether Windows would not take a part of a path as a plain file name."""
    return (
        part[-1:] in {" ", "."}
        or not _WINDOWS_FORBIDDEN.isdisjoint(part)
        or part.split(".", 1)[0].rstrip(" ").casefold() in _WINDOWS_DEVICES
    )


# --- places on disk ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Root:
    """A file or folder that documents come from: its stored path and its place on disk."""

    stored: str  # "memory", "notes/x.md", "@vault", "sessions/@claude"; "" is the workspace itself
    base: str  # a real folder; nothing below it may be a link
    parts: tuple[str, ...]  # from the base to the root
    is_extra: bool = False
    is_outside: bool = False  # outside the workspace: the stored path begins with a label instead of `parts`
    is_file: bool = False  # known to be a single file; extra paths may be either
    missing_as: str = ""  # its name in the problem if it does not exist; empty: the stored path

    @property
    def real_path(self) -> str:
        return os.path.join(self.base, *self.parts)  # noqa: PTH118 - strings, as the walk below it


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a path below a root, which may be the file itself."""

    root: Root
    rest: tuple[str, ...]

    @property
    def below_base(self) -> tuple[str, ...]:
        return (*self.root.parts, *self.rest)

    @property
    def real_path(self) -> str:
        return os.path.join(self.root.base, *self.below_base)  # noqa: PTH118

    @property
    def stored(self) -> str:
        return "/".join((self.root.stored, *self.rest) if self.root.stored else self.rest)

    def exists(self) -> bool:
        """Return whether a regular file exists; folders on the path are not checked for links."""
        try:
            return stat.S_ISREG(os.lstat(self.real_path).st_mode)
        except OSError:  # gone or unreachable
            return False


def place_below(root: Root, parts: tuple[str, ...], *, casefold: bool = False) -> Place | None:
    """Return the place of a stored path below a root; None if it is not below it."""
    stored = root.stored.casefold() if casefold else root.stored
    above = tuple(stored.split("/")) if stored else ()
    rest = parts[len(above) :]
    if parts[: len(above)] != above or (root.is_file and rest) or any(map(is_skipped, rest)):
        return None
    return Place(root, rest)


def stored_below(file: Path, roots: Iterable[Root]) -> str | None:
    """Return the stored path of a file on disk; None if it is below no root."""
    real = Path(os.path.realpath(file.parent)) / file.name
    for root in roots:
        if real.is_relative_to(root.real_path):
            return "/".join(filter(None, (root.stored, *real.relative_to(root.real_path).parts)))
    return None


def find_file(place: Place, path: str) -> tuple[Place, os.stat_result]:
    """Return the place of an existing file, spelled as its folders list it, and its lstat result.

    Raises PathRefusedError for anything but regular files, and NoteNotFoundError if there is no file.
    """
    spelt: list[str] = []
    folder = place.root.base
    try:
        for part in place.below_base:
            info = os.lstat(os.path.join(folder, part))  # noqa: PTH118
            if is_link(info):
                raise PathRefusedError(path)
            spelt.append(listed_name(folder, part, info))
            folder = os.path.join(folder, spelt[-1])  # noqa: PTH118
    except (FileNotFoundError, NotADirectoryError):
        raise (PathRefusedError if is_disguised(path) else NoteNotFoundError)(path) from None
    except OSError as error:
        raise PathRefusedError(path) from error
    if not stat.S_ISREG(info.st_mode):
        raise PathRefusedError(path)
    depth = len(place.root.parts)
    stored = place.root.stored if place.root.is_outside else "/".join(spelt[:depth])
    return Place(replace(place.root, stored=stored, parts=tuple(spelt[:depth])), tuple(spelt[depth:])), info


def listing_of(paths: Iterable[str], stamp_of: Callable[[str], FileStamp]) -> Listing:
    """Return the stamps of the paths that exist, sorted."""
    found = []
    for path in paths:
        with suppress(NoteNotFoundError):
            found.append(stamp_of(path))
    return Listing(tuple(sorted(found)))


def is_same_file(folder: str, one: str, other: str) -> bool:
    """Return whether two spellings name the same file, as on disks that ignore case."""
    try:
        return os.path.samestat(
            os.lstat(os.path.join(folder, one)),  # noqa: PTH118
            os.lstat(os.path.join(folder, other)),  # noqa: PTH118
        )
    except OSError:
        return False


def listed_name(folder: str, name: str, info: os.stat_result) -> str:
    """Return a name as its folder lists it; the disk may have accepted another case or Unicode form."""
    if name.isascii() and not is_same_file(folder, name, name.swapcase()):
        return name
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    if name in names:
        return name
    same = [other for other in names if _folded(other) == _folded(name)]
    return next((other for other in same if os.path.samestat(os.lstat(os.path.join(folder, other)), info)), name)  # noqa: PTH118


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def problem_at(path: str, reason: str | OSError) -> Problem:
    """Return a problem whose path is printable, whatever bytes the name contains."""
    if isinstance(reason, OSError):
        reason = f"cannot be read: {reason.strerror or type(reason).__name__}"
    return Problem(path.encode("utf-8", "backslashreplace").decode(), reason)


# --- walking -----------------------------------------------------------------------------------


class Found(NamedTuple):
    """A document on disk."""

    real_path: str
    identity: tuple[int, int] | str  # the same for two names of one file
    stamp: FileStamp


@dataclass(frozen=True, slots=True)
class _Folder:
    """The content of a folder when it was listed."""

    state: tuple[int, ...]  # its lstat then
    files: list[Found]
    folders: list[tuple[str, str]]  # real path, stored path with a slash at its end
    problems: list[Problem]
    rules: FolderRules | None = None  # by which it was listed


class Walker:
    """Lists roots repeatedly. Of folders whose own time has not changed, only the known files are checked.

    Creating, deleting and renaming files changes the folder's time; other changes show in the file.
    """

    def __init__(
        self,
        source: SourceName,
        endings: tuple[str, ...],
        *,
        kind: str,
        ignored: Collection[str] = (),
        inclusion: Inclusion | None = None,
    ) -> None:
        self._source = source
        self._endings = endings  # of the files that are documents
        self._kind = kind  # "a Markdown file": what a single file should be, for messages
        self._ignored = frozenset(ignored)  # names of files, and stored paths of folders
        self._inclusion = inclusion  # chooses files and folders of a workspace; None: all documents
        self._known: dict[tuple[str, str], _Folder] = {}
        self._forget_at = 0.0

    def holds(self, name: str) -> bool:
        """Return whether a file of this name is a document."""
        return name.lower().endswith(self._endings) and name.lower() not in self._ignored

    def walk(self, root: Root) -> Walk:
        """Return the documents of a root, unsorted, and what could not be read."""
        try:
            info = os.lstat(root.real_path)
        except OSError as error:
            return [], [problem_at(root.missing_as or root.stored, error)]
        shown = root.stored or root.real_path
        if is_link(info):
            why = IS_LINK
        elif not is_text(shown):
            why = NOT_TEXT
        elif stat.S_ISDIR(info.st_mode) and not root.is_file:
            return self._walk_folders(root.real_path, f"{root.stored}/" if root.stored else "")
        elif not stat.S_ISREG(info.st_mode):
            why = NOT_REGULAR
        elif self.holds(root.stored):
            return [self._found(root.stored, root.real_path, info)], []
        else:
            why = f"is not {self._kind}"
        return [], [problem_at(shown, why)]

    def _walk_folders(self, top: str, stored_top: str) -> Walk:
        if time.monotonic() >= self._forget_at:
            self._known, self._forget_at = {}, time.monotonic() + REMEMBERED_S
        found: list[Found] = []
        problems: list[Problem] = []
        waiting = [(top, stored_top)]
        above = {"": self._inclusion.top()} if self._inclusion else {}
        while waiting:
            place = waiting.pop()
            rules = self._inclusion.rules_of(place[1].rstrip("/"), above) if self._inclusion else None
            try:
                folder = self._unchanged(place, rules) or self._listed(place, rules)
            except OSError as error:
                problems.append(problem_at(place[1].rstrip("/") or place[0], error))
                continue
            found += folder.files
            problems += folder.problems
            waiting += folder.folders
        return found, problems

    def _unchanged(self, place: tuple[str, str], rules: FolderRules | None) -> _Folder | None:
        """Return the remembered content of a folder with its files checked again, if its names have not changed."""
        folder = self._known.get(place)
        if folder is None or folder.rules is not rules or folder.state != _state(os.lstat(place[0])):
            return None
        files = folder.files
        for position, (real_path, identity, stamp) in enumerate(files):
            try:
                info = os.lstat(real_path)
            except OSError:  # gone in the meantime
                return None
            if (
                info.st_ctime_ns == stamp.ctime_ns
                and info.st_mtime_ns == stamp.mtime_ns
                and info.st_size == stamp.size
                and info.st_ino == identity[1]
            ):
                continue
            if not stat.S_ISREG(info.st_mode):
                return None
            if files is folder.files:
                files = files.copy()
            files[position] = self._found(stamp.path, real_path, info)
        if files is not folder.files:
            folder = self._known[place] = replace(folder, files=files)
        return folder

    def _listed(self, place: tuple[str, str], rules: FolderRules | None) -> _Folder:
        """List a folder, and remember it if its time would reveal any change."""
        now_ns = time.time_ns()
        state = _state(os.lstat(place[0]))
        folder = self._list_folder(state, *place, rules)
        if _TIMES_TELL and all(time_ns % 1_000_000_000 and time_ns < now_ns - SETTLED_NS for time_ns in state[:2]):
            self._known[place] = folder
        else:
            self._known.pop(place, None)
        return folder

    def _list_folder(self, state: tuple[int, ...], folder: str, stored: str, rules: FolderRules | None) -> _Folder:
        """Return the content of a folder; `stored` is its stored path with a slash at the end.

        Links are problems only if all files are notes: other folders are full of them.
        """
        files: list[Found] = []
        folders: list[tuple[str, str]] = []
        problems: list[Problem] = []
        endings, ignored = self._endings, self._ignored
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                # A shortcut for nearly all names: a sync checks thousands.
                plain = name.endswith(endings) and name[0] != "." and name.isascii() and name not in ignored
                if not plain and (is_skipped(name) or not (self.holds(name) or entry.is_dir())):
                    continue
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # deleted since the folder was opened
                    continue
                # The mode is not enough on Windows, where a junction looks like a folder.
                kind = info.st_mode & _KIND if not (_HAS_JUNCTIONS and is_link(info)) else stat.S_IFLNK
                if rules and not _is_chosen(rules, stored + name, kind):
                    continue
                if kind == stat.S_IFREG and (plain or is_text(name)):
                    files.append(self._found(stored + name, entry.path, info))
                elif not is_text(name):
                    problems.append(problem_at(stored + name, NOT_TEXT))
                elif kind == stat.S_IFDIR:
                    if stored + name not in ignored:
                        folders.append((entry.path, f"{stored}{name}/"))
                else:
                    problems.append(problem_at(stored + name, IS_LINK if kind == stat.S_IFLNK else NOT_REGULAR))
        return _Folder(state, files, folders, problems, rules)

    def _found(self, stored: str, real_path: str, info: os.stat_result) -> Found:
        # Windows listings have no inodes; names that differ only in case are the same file there.
        identity = (info.st_dev, info.st_ino) if info.st_ino else os.path.normcase(real_path)
        return Found(real_path, identity, stamp_from(self._source, stored, info))


Walk = tuple[list[Found], list[Problem]]


def combined(walks: Sequence[Walk], problems: Iterable[Problem] = ()) -> Listing:
    """Return what several walks found, each real file once, sorted by stored path."""
    met = [*problems, *(problem for _, unreadable in walks for problem in unreadable)]
    found = [each for files, _ in walks for each in files]
    distinct = {each.stamp.path for each in found}, {each.identity for each in found}
    if any(len(values) < len(found) for values in distinct):
        found = [each for files, _ in walks for each in sorted(files, key=_path_of)]
        met += _drop_doubles(found)
    met.sort(key=lambda problem: problem.path)
    return Listing(tuple(each.stamp for each in sorted(found, key=_path_of)), tuple(dict.fromkeys(met)))


def stamp_from(source: SourceName, path: str, info: os.stat_result) -> FileStamp:
    """Return the stamp of a file from its stat result."""
    if not _TIMES_TELL:  # on Windows ctime is the creation time, and listings have no inodes
        return FileStamp(source, path, info.st_size, info.st_mtime_ns)
    inode = info.st_ino & _LARGEST_INTEGER
    return FileStamp(source, path, info.st_size, info.st_mtime_ns, info.st_ctime_ns, inode)


def _is_chosen(rules: FolderRules, path: str, kind: int) -> bool:
    if kind == stat.S_IFDIR:
        return rules.enters(path)
    return kind == stat.S_IFREG and rules.selects(path)


def _state(info: os.stat_result) -> tuple[int, ...]:
    return info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_dev, info.st_mode


_path_of = attrgetter("stamp.path")


def _drop_doubles(found: list[Found]) -> list[Problem]:
    """Keep the first of each real file and each path; return a problem for each that is dropped."""
    problems: list[Problem] = []
    kept: dict[str, Found] = {}
    seen: set[tuple[int, int] | str] = set()
    for each in found:
        if each.identity in seen:
            continue
        seen.add(each.identity)
        path = each.stamp.path
        if path in kept:
            problems.append(problem_at(path, f"another file has the same path; {each.real_path} is left out"))
        else:
            kept[path] = each
    found[:] = kept.values()
    return problems
