"""Lists and reads the notes of a workspace: `MEMORY.md`, `memory/**/*.md`, extra paths and `include`."""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from pathlib import Path

from notewell.errors import NoteNotFoundError, PathRefusedError, WorkspaceError
from notewell.files.no_follow import read_below
from notewell.sources.included import Inclusion
from notewell.sources.privacy import DIRECT, Audience, is_private
from notewell.sources.walk import (
    ROOT_FILES,
    ROOT_FOLDER,
    SETTLED_NS,
    Place,
    Root,
    Walk,
    Walker,
    combined,
    find_file,
    is_disguised,
    is_markdown,
    is_same_file,
    is_skipped,
    listing_of,
    parts_of,
    place_below,
    problem_at,
    stamp_from,
    stored_below,
    unused_label,
)
from notewell.text.redaction import redact
from notewell.types import Document, FileStamp, Listing, SourceName

ENDINGS = (".md",)
LARGEST_NOTE_BYTES = 64_000_000  # indexing a note takes many times its size in memory
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
        self._redacted = redacted  # secrets are redacted when a note is read
        self._audience = audience  # a group cannot see what is private
        self._inclusion = Inclusion(os.path.realpath(workspace), include or ())
        self._walker = Walker("memory", ENDINGS, kind="a Markdown file", ignored=self._inclusion.reports)
        self._included = Walker("memory", ENDINGS, kind="a Markdown file", inclusion=self._inclusion)
        self._public: dict[str, tuple[int, ...]] = {}  # lstat of notes that were public when last read

    @property
    def roots(self) -> tuple[Root, ...]:
        """The files and folders that notes come from, apart from `include`."""
        return self._roots_and_escaping[0]

    @property
    def name(self) -> SourceName:
        return "memory"

    def list(self, paths: Collection[str] | None = None) -> Listing:
        """Return all notes, each real file once, sorted by path; with `paths` only those.

        Raises WorkspaceError if the workspace cannot be opened: that is not the same as having no notes.
        """
        if paths is not None:
            return listing_of(paths, self.stamp_of)
        escaping = self._roots_and_escaping[1]
        problems = [problem_at(path, "leads out of the workspace through a link") for path in escaping]
        walks = self._walks()
        listing = combined(walks, problems)
        if not self._audience.is_group:
            return listing
        hidden = _private_by_name(walks)
        # Without the problems, which may name private notes.
        return Listing(tuple(stamp for stamp in listing.files if self._is_public(stamp.path, hidden)))

    def _walks(self) -> Sequence[Walk]:
        walks = [self._walker.walk(root) for root in self._listed_roots()]
        if self._inclusion.patterns:
            walks.append(self._included.walk(self._top))
        return walks

    def read(self, stamp: FileStamp, *, as_written: bool = False) -> Document:
        """Return the note at `stamp.path`, with the stamp of what was actually read.

        `as_written` keeps secrets in it: for changing the note, not for showing it to a model. Raises OSError if the
        file is gone, unreadable, too large, not a regular file, not text, or reached through a link.
        """
        document = self._document(stamp.path, as_written=as_written)
        if document.private and self._audience.is_group:
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
        # An extra path in a folder called private is private, whatever its stored path.
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
        """Return whether a group may see a note; one that cannot be read may be private.

        `hidden` are the files with a private name, if known: a hard link to one is private, too.
        """
        place = self._place(path)
        try:
            info = os.lstat(place.real_path) if place else None
            # The ctime cannot be set back, unlike the mtime.
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
        elif info and time.time_ns() - info.st_ctime_ns > SETTLED_NS:  # before that it may change without a new ctime
            self._public[path] = state
        return not document.private

    def may_hold(self, path: str) -> bool:
        """Return whether a path looks like a note's."""
        return is_markdown(path)

    def exists(self, path: str) -> bool:
        """Return whether the path is an existing note; folders on the path are not checked for links."""
        place = self._place(path)
        return place is not None and place.exists() and (not self._audience.is_group or self._is_public(path))

    def resolve(self, path: str) -> Path:
        """Return the path of a note on disk.

        Raises PathRefusedError if it is not a path of this memory, and NoteNotFoundError if it could be but does not
        exist.
        """
        return Path(self._find(path)[0].real_path)

    def place_to_write(self, path: str) -> tuple[str, tuple[str, ...], str]:
        """Return the base folder, the parts below it and the stored path of a note to be written, existing or new.

        Raises PathRefusedError for paths outside the workspace and for ambiguous names.
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
        """Return the stored path of a file on disk, which may be gone; None if it is not a note of this memory."""
        path = stored_below(file, (*self.roots, self._top))
        if path is None or not self._place(path) or (self._audience.is_group and not self.exists(path)):
            return None
        return path

    def stamp_of(self, path: str) -> FileStamp:
        """Return the stamp of a note, spelled as its folder lists it; raises like `resolve`."""
        place, info = self._find(path)
        return stamp_from("memory", place.stored, info)

    @cached_property
    def _roots_and_escaping(self) -> tuple[tuple[Root, ...], tuple[str, ...]]:
        return roots_of(self._workspace, self._extra_paths)

    @cached_property
    def _top(self) -> Root:
        """The workspace itself, from which `include` chooses notes."""
        return Root("", os.path.realpath(self._workspace), ())

    def _listed_roots(self) -> Iterator[Root]:
        """Yield the roots that exist, spelled as the workspace lists them: some disks ignore case."""
        try:
            names = set(os.listdir(self._workspace))  # noqa: PTH208 - strings are all that is needed
        except OSError as error:
            raise WorkspaceError(
                f"cannot open the workspace {str(self._workspace)!r}: {error.strerror}",
                hint="check that the folder exists and may be read",
            ) from error
        fixed = {root.stored for root in self.roots if not root.is_extra}
        for root in self.roots:
            if root.is_extra or root.stored in names:
                yield root
            else:
                for name in names - fixed:
                    if name.casefold() == root.stored.casefold() and is_same_file(root.base, name, root.stored):
                        yield replace(root, stored=name, parts=(name,))

    def _place(self, path: str) -> Place | None:
        """Return where a path would be; None if it cannot be one of this memory."""
        parts = parts_of(path) if is_markdown(path) else None
        if parts is None or any(path.startswith(f"{folder}/") for folder in self._inclusion.reports):
            return None
        for root in self.roots:
            place = place_below(root, parts)
            if place is not None:
                return place
        folded = tuple(part.casefold() for part in parts)
        for root in self.roots:
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
    """Return the files that have a private name, whatever other names they have."""
    return frozenset(found.identity for files, _ in walks for found in files if is_private(found.stamp.path, ""))


# --- roots -------------------------------------------------------------------------------------


def roots_of(workspace: Path, extra_paths: Sequence[Path]) -> tuple[tuple[Root, ...], tuple[str, ...]]:
    """Return the roots of notes, and the extra paths that leave the workspace through a link.

    A file found twice belongs to the first root.
    """
    base = os.path.realpath(workspace)
    roots = [Root(name, base, (name,), is_file=True) for name in ROOT_FILES]
    roots.append(Root(ROOT_FOLDER, base, (ROOT_FOLDER,)))
    given = [Path(os.path.abspath(workspace / path)) for path in extra_paths]  # noqa: PTH100 - resolve() follows links
    located = [
        (path, real.relative_to(base).parts if (real := _real_parent(path)).is_relative_to(base) else None)
        for path in given
    ]
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
    """Resolve links in the path of a root, but not the root itself, which must not be a link."""
    return Path(os.path.realpath(path.parent)) / path.name if path.name else path


# --- front matter ------------------------------------------------------------------------------

LONGEST_FRONT_MATTER = 200  # lines; a block longer than a screenful of settings is text between two thematic breaks
_KEY = re.compile(r"""(?P<key>[^\W\d][\w .-]{0,60}?|"[^"]{1,60}"|'[^']{1,60}')[ ]*:(?:[ \t]+(?P<value>.*))?$""")
_ITEM = re.compile(r"[ \t]*-(?:[ \t]+|$)(?P<value>.*)$")
_COMMENT = re.compile(r"(?:^|[ \t]+)#.*$")
_LIST_PARTS = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]+)""")
_ESCAPED = re.compile(r"\\(.)")
_BLOCK_STYLES = frozenset({"|", ">", "|-", ">-", "|+", ">+"})
# The date ends the name or is parted from the rest of it: 2026-11-150.md and 2026-11-15b.md are not dated.
_IN_NAME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?=[-_ ]|\.[^.]*$|$)")
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)? ?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?"
_IN_FRONT_MATTER = re.compile(rf"([0-9]{{4}})(?:-([0-9]{{2}})-|/([0-9]{{2}})/)([0-9]{{2}})(?:[Tt ]{_CLOCK})?")


def split_front_matter(text: str) -> tuple[dict[str, str], int]:
    """Return the front matter and the 1-based line where the body begins; `({}, 1)` when there is none.

    Keys are in lower case, lists are joined by ", ". In doubt a block is not front matter: its text is then indexed
    like any other instead of being lost.
    """
    if not text.startswith("---"):
        return {}, 1
    lines = text.split("\n", LONGEST_FRONT_MATTER + 2)[: LONGEST_FRONT_MATTER + 2]
    if lines[0].rstrip() != "---":
        return {}, 1
    closing = next((i for i, line in enumerate(lines) if i and line.rstrip() in {"---", "..."}), None)
    if closing is None:
        return {}, 1
    block = lines[1:closing]
    if not _looks_like_settings(block):
        return {}, 1
    return dict(_entries(block)), closing + 2


def _looks_like_settings(block: Sequence[str]) -> bool:
    """Tell settings from prose between two thematic breaks: every line at the margin must be one of a setting."""
    at_margin = [line for line in block if line.strip() and not line[0].isspace() and not line.startswith("#")]
    if not at_margin:
        return not any(line.strip() for line in block)
    return _KEY.match(at_margin[0]) is not None and all(
        _KEY.match(line) or _ITEM.match(line) or line[0] in "]}" for line in at_margin
    )


def _entries(block: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each key with its value; lines that follow a key and are not keys themselves belong to it."""
    key, value = "", ""
    rest: list[str] = []
    for line in block:
        found = _KEY.match(line)
        if found is None:
            rest.append(line)
            continue
        if key:
            yield key, _value(value, rest)
        key, value, rest = _unquoted(found["key"]).lower(), (found["value"] or "").strip(), []
    if key:
        yield key, _value(value, rest)


def _value(first: str, rest: Sequence[str]) -> str:
    following = [line for line in rest if line.strip() and not line.lstrip().startswith("#")]
    if first in _BLOCK_STYLES:
        return " ".join(line.strip() for line in following)
    if not first and following and all(_ITEM.match(line) for line in following):
        return ", ".join(_scalar(line.lstrip()[1:]) for line in following)
    return _scalar(" ".join([first, *(line.strip() for line in following)]))


def _scalar(value: str) -> str:
    value = value.strip()
    if value[:1] in {'"', "'"}:
        return _unquoted(value)
    value = _COMMENT.sub("", value).strip()
    if value.startswith("[") and value.endswith("]"):
        parts = (_unquoted(part.strip()) for part in _LIST_PARTS.findall(value[1:-1]))
        return ", ".join(part for part in parts if part)
    return value


def _unquoted(value: str) -> str:
    quote = value[:1]
    end = value.rfind(quote) if quote in {'"', "'"} else 0
    if end < 1:
        return value
    inner = value[1:end]
    return _ESCAPED.sub(r"\1", inner) if quote == '"' else inner.replace("''", "'")


def note_date(path: str, metadata: Mapping[str, str]) -> date | None:
    """Return the day of a note: the date its file name begins with, or else the `date` of its front matter.

    A note without a date is evergreen.
    """
    return date_in_name(path) or date_in_front_matter(metadata)


def date_in_name(path: str) -> date | None:
    """Return the date a file name begins with (`2026-11-15.md`, `2026-11-15-slug.md`), in whichever folder it lies."""
    found = _IN_NAME.match(path, path.rfind("/") + 1)
    return _day(*found.groups()) if found else None


def date_in_front_matter(metadata: Mapping[str, str]) -> date | None:
    """Return the day that `date` names (`2026-03-14`, `2026/03/14`, with or without a time); None for other forms."""
    found = _IN_FRONT_MATTER.fullmatch(metadata.get("date", ""))
    return _day(found[1], found[2] or found[3], found[4]) if found else None


def _day(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:  # 2026-02-30 looks like a date and is none
        return None


# --- decoding ----------------------------------------------------------------------------------

# Longest first: the UTF-32 mark begins with the UTF-16 one.
BYTE_ORDER_MARKS = (
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
    mark, encoding = encoding_of(raw)
    text = raw[len(mark) :].decode(encoding, "replace")
    return text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")


def is_no_text(text: str) -> bool:
    """Return whether the decoded text is mostly invalid: binary, or in an unmarked encoding such as GBK."""
    invalid = text.count("\ufffd")
    return invalid > MOST_INVALID and invalid > MOST_INVALID_SHARE * len(text)


def encoding_of(raw: bytes) -> tuple[bytes, str]:
    """Return a note's byte order mark, if any, and its encoding."""
    return next(((mark, name) for mark, name in BYTE_ORDER_MARKS if raw.startswith(mark)), (b"", "utf-8"))
