"""The notes of a workspace: `MEMORY.md`, `memory/**/*.md` and extra paths in, stamps and clean `Document`s out."""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from notewell.errors import NoteNotFoundError, PathRefusedError, WorkspaceError
from notewell.sources.dates import note_date
from notewell.sources.decoding import decode_note
from notewell.sources.front_matter import split_front_matter
from notewell.sources.note_paths import Root, is_disguised, is_markdown, is_skipped, parts_of, roots_of
from notewell.sources.opening import read_below
from notewell.sources.privacy import is_private
from notewell.sources.walking import Found, Walker, is_link, problem_at
from notewell.text.redaction import redact
from notewell.types import Document, FileStamp, Listing, Problem, SourceName


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a path would lie: below a root, which may be the file itself."""

    root: Root
    rest: tuple[str, ...]

    @property
    def real_path(self) -> str:
        return os.path.join(self.root.real_path, *self.rest)  # noqa: PTH118

    @property
    def stored(self) -> str:
        return "/".join((self.root.stored, *self.rest) if self.root.stored else self.rest)


class NotesSource:
    """Lists and reads the Markdown files of one workspace, and refuses every path that is not one of them.

    Extra paths in the workspace keep their path relative to it; others are stored as `@<name>/...`, and a second one
    of the same name as `@<name>-2/...`.
    """

    def __init__(self, workspace: Path, extra_paths: Sequence[Path] = (), *, redacted: bool = False) -> None:
        self._workspace = workspace
        self._extra_paths = tuple(extra_paths)
        self._redacted = redacted  # secrets are hidden before anybody sees the text
        self._walker = Walker()

    @property
    def name(self) -> SourceName:
        return "memory"

    def list(self, paths: Collection[str] | None = None) -> Listing:
        """Return every note now there, each real file once, sorted by path; with `paths` only those.

        Raises WorkspaceError when the workspace itself cannot be opened: that is not the same as holding no notes.
        """
        if paths is not None:
            return Listing(tuple(sorted(filter(None, map(self._stamp_if_there, paths)))))
        escaping = self._roots_and_escaping[1]
        problems = [problem_at(path, "leads out of the workspace through a link") for path in escaping]
        walks = [self._walker.walk(root) for root in self._listed_roots()]
        problems += [problem for _, unreadable in walks for problem in unreadable]
        found = [note for files, _ in walks for note in files]
        paths_and_files = {note.stamp.path for note in found}, {note.identity for note in found}
        if any(len(distinct) < len(found) for distinct in paths_and_files):
            found = [note for files, _ in walks for note in sorted(files, key=_path_of)]
            problems += _drop_doubles(found)
        problems.sort(key=lambda problem: problem.path)
        return Listing(tuple(note.stamp for note in sorted(found, key=_path_of)), tuple(dict.fromkeys(problems)))

    def read(self, stamp: FileStamp) -> Document:
        """Return the note with the stamp of what was really read; only `stamp.path` is looked at.

        Raises OSError when the file is gone, unreadable, no regular file, or reached through a link.
        """
        place = self._place(stamp.path)
        if place is None:
            raise FileNotFoundError(f"not a path of this memory: {stamp.path!r}")
        raw, info = read_below(place.root.base, (*place.root.parts, *place.rest))
        text = decode_note(raw)
        if self._redacted:
            text = redact(text).text
        metadata, body_first_line = split_front_matter(text)
        return Document(
            stamp=FileStamp("memory", stamp.path, info.st_size, info.st_mtime_ns),
            text=text,
            content_hash=hashlib.sha256(raw).hexdigest(),
            body_first_line=body_first_line,
            metadata=metadata,
            dated=note_date(stamp.path, metadata),
            private=is_private(stamp.path, metadata, text),
        )

    def may_hold(self, path: str) -> bool:
        """Say whether a path has the form of a note's."""
        return is_markdown(path)

    def exists(self, path: str) -> bool:
        """Say whether the path names a regular file of this memory now; a single look, folders on the way unchecked."""
        place = self._place(path)
        if place is None:
            return False
        try:
            return stat.S_ISREG(os.lstat(place.real_path).st_mode)
        except OSError:  # gone or out of reach: either way nothing that could be shown
            return False

    def resolve(self, path: str) -> Path:
        """Return where a note lies on disk.

        Raises PathRefusedError for whatever is not a path of this memory, and NoteNotFoundError when it could be one
        but no such file exists.
        """
        return Path(self._find(path)[0].real_path)

    def place_to_write(self, path: str) -> tuple[str, tuple[str, ...], str]:
        """Return the base folder, the parts below it and the stored path of a note that may be written, old or new.

        Raises PathRefusedError for paths outside the workspace and names that are not the same everywhere.
        """
        try:
            place = self._find(path)[0]
        except NoteNotFoundError:
            found = self._place(path)
            if found is None or is_disguised(path):
                raise PathRefusedError(path) from None
            place = found
        if place.root.is_outside:
            raise PathRefusedError(path)
        return place.root.base, (*place.root.parts, *place.rest), place.stored

    def stored_path(self, file: Path) -> str | None:
        """Return the stored path of a file on disk, or None when it is no note of this memory; it may be gone."""
        real = Path(os.path.realpath(file.parent)) / file.name
        for root in self._roots:
            if real.is_relative_to(root.real_path):
                path = "/".join(filter(None, (root.stored, *real.relative_to(root.real_path).parts)))
                return path if self._place(path) else None
        return None

    def _stamp_if_there(self, path: str) -> FileStamp | None:
        try:
            return self.stamp_of(path)
        except NoteNotFoundError:
            return None

    def stamp_of(self, path: str) -> FileStamp:
        """Return the stamp of one note under the name its folder lists, ready for `read`; raises like `resolve`."""
        place, info = self._find(path)
        return FileStamp("memory", place.stored, info.st_size, info.st_mtime_ns)

    @cached_property
    def _roots_and_escaping(self) -> tuple[tuple[Root, ...], tuple[str, ...]]:
        return roots_of(self._workspace, self._extra_paths)

    @property
    def _roots(self) -> tuple[Root, ...]:
        return self._roots_and_escaping[0]

    def _listed_roots(self) -> Iterator[Root]:
        """Yield the roots there are, under the names the workspace lists: `Memory.md` is `MEMORY.md` on some disks."""
        try:
            names = set(os.listdir(self._workspace))  # noqa: PTH208 - strings are all that is needed
        except OSError as error:
            raise WorkspaceError(
                f"cannot open the workspace {str(self._workspace)!r}: {error.strerror}",
                hint="check that the folder exists and may be read",
            ) from error
        fixed = {root.stored for root in self._roots if not root.is_extra}
        for root in self._roots:
            if root.is_extra or root.stored in names:
                yield root
            else:
                for name in names - fixed:
                    if name.casefold() == root.stored.casefold() and _is_same_file(root.base, name, root.stored):
                        yield replace(root, stored=name, parts=(name,))

    def _place(self, path: str) -> _Place | None:
        """Return where a path would lie, or None when it cannot be one of this memory."""
        parts = parts_of(path)
        if parts is None:
            return None
        for root in self._roots:
            place = _place_below(root, parts)
            if place is not None:
                return place
        folded = tuple(part.casefold() for part in parts)
        for root in self._roots:
            place = None if root.is_outside else _place_below(root, folded, casefold=True)
            if place is not None and _is_same_file(root.base, "/".join(parts[: len(root.parts)]), root.stored):
                return _Place(root, parts[len(root.parts) :])
        return None

    def _find(self, path: str) -> tuple[_Place, os.stat_result]:
        """Return the place of an existing note, every part spelt as its folder lists it, and what lstat says of it."""
        place = self._place(path)
        if place is None:
            raise PathRefusedError(path)
        spelt: list[str] = []
        folder = place.root.base
        try:
            for part in (*place.root.parts, *place.rest):
                info = os.lstat(os.path.join(folder, part))  # noqa: PTH118
                if is_link(info):
                    raise PathRefusedError(path)
                spelt.append(_listed_name(folder, part, info))
                folder = os.path.join(folder, spelt[-1])  # noqa: PTH118
        except (FileNotFoundError, NotADirectoryError):
            raise (PathRefusedError if is_disguised(path) else NoteNotFoundError)(path) from None
        except OSError as error:
            raise PathRefusedError(path) from error
        if not stat.S_ISREG(info.st_mode):
            raise PathRefusedError(path)
        depth = len(place.root.parts)
        stored = place.root.stored if place.root.is_outside else "/".join(spelt[:depth])
        return _Place(replace(place.root, stored=stored, parts=tuple(spelt[:depth])), tuple(spelt[depth:])), info


def _path_of(note: Found) -> str:
    return note.stamp.path


def _drop_doubles(found: list[Found]) -> list[Problem]:
    """Leave each real file and each path once in the list, the first one met; return what that leaves out."""
    problems: list[Problem] = []
    kept: dict[str, Found] = {}
    seen: set[tuple[int, int] | str] = set()
    for note in found:
        if note.identity in seen:
            continue
        seen.add(note.identity)
        path = note.stamp.path
        if path in kept:
            problems.append(problem_at(path, f"two files would have this path; {note.real_path} is left out"))
        else:
            kept[path] = note
    found[:] = kept.values()
    return problems


def _place_below(root: Root, parts: tuple[str, ...], *, casefold: bool = False) -> _Place | None:
    stored = root.stored.casefold() if casefold else root.stored
    above = tuple(stored.split("/")) if stored else ()
    rest = parts[len(above) :]
    if parts[: len(above)] != above or (root.is_file and rest) or any(map(is_skipped, rest)):
        return None
    return _Place(root, rest)


def _is_same_file(folder: str, one: str, other: str) -> bool:
    """Say whether two spellings name one file, as they do on disks that do not tell upper from lower case."""
    try:
        return os.path.samestat(
            os.lstat(os.path.join(folder, one)),  # noqa: PTH118
            os.lstat(os.path.join(folder, other)),  # noqa: PTH118
        )
    except OSError:
        return False


def _listed_name(folder: str, name: str, info: os.stat_result) -> str:
    """Return the spelling a folder lists for a name that the disk accepted, perhaps in another case or Unicode form."""
    if name.isascii() and not _is_same_file(folder, name, name.swapcase()):
        return name
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    if name in names:
        return name
    same = [other for other in names if _folded(other) == _folded(name)]
    return next((other for other in same if os.path.samestat(os.lstat(os.path.join(folder, other)), info)), name)  # noqa: PTH118


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
