"""Lists and reads the notes of a workspace: `MEMORY.md`, `memory/**/*.md`, extra paths and what `include` adds."""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from notewell.errors import NoteNotFoundError, PathRefusedError, WorkspaceError
from notewell.files.no_follow import read_below
from notewell.sources.front_matter import note_date, split_front_matter
from notewell.sources.included import Inclusion
from notewell.sources.note_paths import (
    ROOT_FILES,
    ROOT_FOLDER,
    is_disguised,
    is_markdown,
    is_skipped,
    parts_of,
    unused_label,
)
from notewell.sources.privacy import DIRECT, Audience, is_private
from notewell.sources.walk import (
    SETTLED_NS,
    Place,
    Root,
    Walk,
    Walker,
    combined,
    find_file,
    is_same_file,
    place_below,
    problem_at,
    stamp_from,
)
from notewell.text.redaction import redact
from notewell.types import Document, FileStamp, Listing, SourceName

ENDINGS = (".md",)
LARGEST_NOTE_BYTES = 64_000_000  # nobody reads a longer note, and reading one takes many times its size in memory
MOST_INVALID, MOST_INVALID_SHARE = 8, 0.3  # characters; "Müll" in Latin-1 has one of four


class NotesSource:
    """Lists and reads the Markdown files of one workspace, and refuses every path that is not one of them.

    Extra paths in the workspace keep their path relative to it; others are stored as `@<name>/...`, and a second one
    of the same name as `@<name>-2/...`.
    """

    def __init__(
        self,
        workspace: Path,
        extra_paths: Sequence[Path] = (),
        *,
        include: Sequence[str] | None = None,
        redacted: bool = False,
        audience: Audience = DIRECT,
    ) -> None:
        self._workspace = workspace
        self._extra_paths = tuple(extra_paths)
        self._redacted = redacted  # secrets are hidden before anybody sees the text
        self._audience = audience  # to whom what is private is not there
        self._inclusion = Inclusion(os.path.realpath(workspace), include or ())
        self._walker = Walker("memory", ENDINGS, kind="a Markdown file", ignored=self._inclusion.reports)
        self._included = Walker("memory", ENDINGS, kind="a Markdown file", inclusion=self._inclusion)
        self._public: dict[str, tuple[int, ...]] = {}  # what lstat said of notes that were public when last read

    @property
    def roots(self) -> tuple[Root, ...]:
        """The files and folders that notes come from, besides what `include` adds."""
        return self._roots

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
        walks = self._walks()
        listing = combined(walks, problems)
        if not self._audience.is_group:
            return listing
        hidden = _private_by_name(walks)
        # Without the problems: one may name what is private.
        return Listing(tuple(stamp for stamp in listing.files if self._is_public(stamp.path, hidden)))

    def _walks(self) -> Sequence[Walk]:
        walks = [self._walker.walk(root) for root in self._listed_roots()]
        if self._inclusion.patterns:
            walks.append(self._included.walk(self._top))
        return walks

    def read(self, stamp: FileStamp, *, as_written: bool = False) -> Document:
        """Return the note with the stamp of what was really read; only `stamp.path` is looked at.

        `as_written` leaves secrets in it: for changing the note, not for showing it to a model. Raises OSError when the
        file is gone, unreadable, too large, no regular file, no text, or reached through a link.
        """
        document = self._document(stamp.path, as_written=as_written)
        if not self._audience.may_see(document):
            raise FileNotFoundError(errno.ENOENT, "there is no such note", stamp.path)
        return document

    def _document(self, path: str, *, as_written: bool = False) -> Document:
        place = self._place(path)
        if place is None:
            raise FileNotFoundError(f"not a path of this memory: {path!r}")
        raw, info = read_below(place.root.base, place.below_base, most_bytes=LARGEST_NOTE_BYTES)
        text = decode_note(raw)
        if is_no_text(text):
            raise OSError(errno.EILSEQ, "no UTF-8 text; save it as UTF-8 to index it", path)
        # An extra path that lies in a folder called private is private, whatever its notes are stored under.
        private = is_private(place.real_path if place.root.is_outside else path, text)
        if self._redacted and not as_written:
            text = redact(text).text
        metadata, body_first_line = split_front_matter(text)
        return Document(
            stamp=stamp_from("memory", path, info),
            text=text,
            content_hash=hashlib.sha256(raw).hexdigest(),
            body_first_line=body_first_line,
            metadata=metadata,
            dated=note_date(path, metadata),
            private=private,
        )

    def _is_public(self, path: str, hidden: Collection[tuple[int, int] | str] | None = None) -> bool:
        """Return whether a note may be named to a group; one that cannot be read may be private.

        `hidden` are the files that have a private name, if that is known: a hard link to one is as private.
        """
        place = self._place(path)
        try:
            info = os.lstat(place.real_path) if place else None
            # The time of the last change cannot be set back, as the other one can.
            state = (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns) if info else ()
            if state and self._public.get(path) == state:
                return True
            if info and info.st_nlink > 1:
                hidden = _private_by_name(self._walks()) if hidden is None else hidden
                if (info.st_dev, info.st_ino) in hidden:
                    return False
            document = self._document(path)
        except OSError:
            return False
        if document.private:
            self._public.pop(path, None)
        elif info and time.time_ns() - info.st_ctime_ns > SETTLED_NS:  # until then it may change and keep its times
            self._public[path] = state
        return not document.private

    def may_hold(self, path: str) -> bool:
        """Say whether a path has the form of a note's."""
        return is_markdown(path)

    def exists(self, path: str) -> bool:
        """Say whether the path names a regular file of this memory now; a single look, folders on the way unchecked."""
        place = self._place(path)
        return place is not None and place.exists() and (not self._audience.is_group or self._is_public(path))

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
            hidden = found is not None and self._audience.is_group and found.exists()
            if found is None or is_disguised(path) or hidden:
                raise PathRefusedError(path) from None
            place = found
        if place.root.is_outside:
            raise PathRefusedError(path)
        return place.root.base, place.below_base, place.stored

    def stored_path(self, file: Path) -> str | None:
        """Return the stored path of a file on disk, or None when it is no note of this memory; it may be gone."""
        real = Path(os.path.realpath(file.parent)) / file.name
        for root in (*self._roots, self._top):
            if real.is_relative_to(root.real_path):
                path = "/".join(filter(None, (root.stored, *real.relative_to(root.real_path).parts)))
                hidden = self._audience.is_group and not self.exists(path)
                return path if self._place(path) and not hidden else None
        return None

    def _stamp_if_there(self, path: str) -> FileStamp | None:
        try:
            return self.stamp_of(path)
        except NoteNotFoundError:
            return None

    def stamp_of(self, path: str) -> FileStamp:
        """Return the stamp of one note under the name its folder lists, ready for `read`; raises like `resolve`."""
        place, info = self._find(path)
        return stamp_from("memory", place.stored, info)

    @cached_property
    def _roots_and_escaping(self) -> tuple[tuple[Root, ...], tuple[str, ...]]:
        return roots_of(self._workspace, self._extra_paths)

    @cached_property
    def _top(self) -> Root:
        """The workspace itself, of which `include` chooses notes."""
        return Root("", os.path.realpath(self._workspace), ())

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
                    if name.casefold() == root.stored.casefold() and is_same_file(root.base, name, root.stored):
                        yield replace(root, stored=name, parts=(name,))

    def _place(self, path: str) -> Place | None:
        """Return where a path would lie, or None when it cannot be one of this memory."""
        parts = parts_of(path) if is_markdown(path) else None
        if parts is None or any(path.startswith(f"{folder}/") for folder in self._inclusion.reports):
            return None
        for root in self._roots:
            place = place_below(root, parts)
            if place is not None:
                return place
        folded = tuple(part.casefold() for part in parts)
        for root in self._roots:
            place = None if root.is_outside else place_below(root, folded, casefold=True)
            if place is not None and is_same_file(root.base, "/".join(parts[: len(root.parts)]), root.stored):
                return Place(root, parts[len(root.parts) :])
        if self._inclusion.patterns and not any(map(is_skipped, parts)) and self._inclusion.holds(path):
            return Place(self._top, parts)
        return None

    def _find(self, path: str) -> tuple[Place, os.stat_result]:
        place = self._place(path)
        if place is None:
            raise PathRefusedError(path)
        found, info = find_file(place, path)
        if self._audience.is_group and not self._is_public(found.stored):
            raise NoteNotFoundError(path)
        return found, info


def _private_by_name(walks: Iterable[Walk]) -> frozenset[tuple[int, int] | str]:
    """Return the files that have a name that is private, whatever other names they have."""
    return frozenset(found.identity for files, _ in walks for found in files if is_private(found.stamp.path, ""))


# --- roots -------------------------------------------------------------------------------------


def roots_of(workspace: Path, extra_paths: Sequence[Path]) -> tuple[tuple[Root, ...], tuple[str, ...]]:
    """Return where to look for notes, and the extra paths that leave the workspace through a link.

    The order of the roots is the order in which a file found twice is kept.
    """
    base = os.path.realpath(workspace)
    roots = [Root(name, base, (name,), is_file=True) for name in ROOT_FILES]
    roots.append(Root(ROOT_FOLDER, base, (ROOT_FOLDER,)))
    given = [Path(os.path.abspath(workspace / path)) for path in extra_paths]  # noqa: PTH100 - resolve() follows links
    located = [(path, _below(base, _real_parent(path))) for path in given]
    escaping: list[str] = []
    labels = {inside[0].casefold() for _, inside in located if inside}
    for path, inside in located:
        if inside is not None:
            roots.append(Root("/".join(inside), base, inside, is_extra=True, missing_as=str(Path(base, *inside))))
        elif path.is_relative_to(os.path.abspath(workspace)):  # noqa: PTH100
            escaping.append(path.as_posix())
        else:
            label = unused_label(path.name or "root", labels, ENDINGS)
            real = _real_parent(path)
            parts = (real.name,) if real.name else ()
            roots.append(Root(label, str(real.parent), parts, is_extra=True, is_outside=True, missing_as=str(real)))
    return tuple(roots), tuple(escaping)


def _real_parent(path: Path) -> Path:
    """Resolve the folders on the way but not the last part: links may lead to a root, it must not be one."""
    return Path(os.path.realpath(path.parent)) / path.name if path.name else path


def _below(base: str, path: Path) -> tuple[str, ...] | None:
    return path.relative_to(base).parts if path.is_relative_to(base) else None


# --- decoding ----------------------------------------------------------------------------------

# Longest first: the UTF-32 mark begins with the UTF-16 one.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode_note(raw: bytes) -> str:
    r"""Return the text of a note; never fails.

    What is not valid in its encoding becomes U+FFFD. NUL is removed, which also makes Latin text in UTF-16 without a
    mark readable. Only "\n", "\r\n" and "\r" end a line, as in an editor; U+2028, "\v" and "\f" do not.
    """
    text = _decoded(raw)
    if "\0" in text:
        text = text.replace("\0", "")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def is_no_text(text: str) -> bool:
    """Tell whether most of what was decoded is binary, or text in an encoding that nothing in it names, such as GBK."""
    invalid = text.count("\ufffd")
    return invalid > MOST_INVALID and invalid > MOST_INVALID_SHARE * len(text)


def _decoded(raw: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return raw[len(mark) :].decode(encoding, "replace")
    return raw.decode("utf-8", "replace")
