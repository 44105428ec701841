"""Lists and reads the transcripts of past conversations.

The session store's own folder is stored as `sessions/...`, every other folder as `sessions/@<name>/...`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from notewell.errors import NoteNotFoundError, PathRefusedError
from notewell.files.no_follow import open_below
from notewell.sources.privacy import DIRECT, Audience
from notewell.sources.transcripts import CORRUPT, REGISTRY, SESSION_ENDING, TOP, id_of_group, session_at
from notewell.sources.transcripts.growing import ByteCounter, PieceReader, count_lines
from notewell.sources.walk import (
    Place,
    Root,
    Walker,
    combined,
    find_file,
    listing_of,
    parts_of,
    place_below,
    stamp_from,
    stored_below,
    unused_label,
)
from notewell.types import Document, FileStamp, Listing, Piece, Problem, SourceName

ENDINGS = (".jsonl", SESSION_ENDING)
# Common folder names; the folder above is more telling.
_UUID_AT_END = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")  # Codex: rollout-<time>-<id>.jsonl
_COMMON_NAMES = frozenset({"sessions", "projects", "transcripts", "conversations", "logs", "history", "chats"})


class TranscriptSource:
    """Lists and reads transcripts, and refuses every path that is not one of them.

    Line numbers are those of the file: line 12 of a document is what line 12 of the JSONL says.
    """

    def __init__(self, own_folder: Path, paths: Sequence[Path] = (), *, audience: Audience = DIRECT) -> None:
        self._own_folder = own_folder
        self._audience = audience  # a group cannot see other conversations
        self._paths = tuple(paths)
        self._counter = ByteCounter()
        self._walker = Walker("sessions", ENDINGS, kind="a transcript (.jsonl)", ignored=(REGISTRY, f"{TOP}/{CORRUPT}"))

    @property
    def name(self) -> SourceName:
        return "sessions"

    @property
    def read_bytes(self) -> int:
        return self._counter.count

    def may_hold(self, path: str) -> bool:
        """Return whether a stored path looks like a transcript's."""
        return path.startswith(f"{TOP}/") and self._walker.holds(path.rpartition("/")[2])

    def list(self, paths: Collection[str] | None = None) -> Listing:
        """Return all transcripts, each real file once, sorted by path; with `paths` only those."""
        if paths is not None:
            return listing_of(paths, self.stamp_of)
        if self._audience.is_group:
            return Listing(self.list(self._audience.own_transcripts).files)
        own, *others = self._roots
        has_own = os.path.lexists(own.real_path)  # created with the first session
        found = combined([self._walker.walk(root) for root in (self._roots if has_own else others)])
        return replace(found, files=_each_once(found.files)) if has_own and others else found

    def read(self, stamp: FileStamp) -> Document:
        """Return the whole transcript as one document; for large ones, use `read_on`."""
        pieces = list(self.read_on(stamp, None))
        texts: dict[int, str] = {}
        for said in (said for piece in pieces for said in piece.lines):
            texts[said.line] = f"{texts[said.line]} {said.text}" if said.line in texts else said.text
        end = pieces[-1]
        text = "".join(f"{texts.get(number, '')}\n" for number in range(1, max(texts, default=0) + 1))
        return Document(stamp=end.stamp, text=text, content_hash=end.content_hash, dated=end.dated)

    def read_on(self, stamp: FileStamp, position: str | None) -> Generator[Piece]:
        """Yield what the transcript says after `position`, or all of it if it was not only appended to.

        Raises OSError if the file is gone, unreadable, not a regular file, or reached through a link.
        """
        place = self._known_place(stamp.path)
        with open_below(place.root.base, place.below_base) as file:
            yield from PieceReader(file, stamp.path, self._counter).pieces(position)

    def rendered(self, path: str, first_line: int) -> Generator[str]:
        """Yield every line from `first_line` on as text, blank where a message is left out; raises like `read_on`."""
        place = self._known_place(path)
        with open_below(place.root.base, place.below_base) as file:
            for said in PieceReader(file, path, self._counter).messages(first_line):
                yield " ".join(message.line for message in said)

    def unreadable(self, positions: Mapping[str, str | None]) -> Iterator[Problem]:
        """Yield why the session files at these positions cannot be read; missing files are skipped."""
        for path, position in positions.items():
            with suppress(OSError):
                for piece in self.read_on(FileStamp("sessions", path, 0, 0), position):
                    yield from piece.problems

    def new_lines(self, path: str, first_byte: int) -> int:
        """Return how many lines were added to a transcript after `first_byte`; raises like `read_on`."""
        place = self._known_place(path)
        with open_below(place.root.base, place.below_base) as file:
            size = os.fstat(file.fileno()).st_size
            return count_lines(file, self._counter, start=first_byte, stop=size)

    def exists(self, path: str) -> bool:
        """Return whether the path is an existing transcript; folders on the path are not checked for links."""
        place = self._place(path)
        return place is not None and place.exists() and self._audience.may_see_transcript(path)

    def stamp_of(self, path: str) -> FileStamp:
        """Return the stamp of one transcript; raises PathRefusedError or NoteNotFoundError."""
        place = self._place(path)
        if place is None:
            raise PathRefusedError(path)
        if not self._audience.may_see_transcript(path):  # before accessing the disk, whose errors would reveal it
            raise NoteNotFoundError(path)
        found, info = find_file(place, path)
        return stamp_from("sessions", found.stored, info)

    def resolve(self, path: str) -> Path:
        """Return the path of a transcript on disk; raises like `stamp_of`."""
        return Path(self._known_place(self.stamp_of(path).path).real_path)

    def place_to_write(self, path: str) -> Path | None:
        """Return the path on disk of a transcript, which may not exist; None if the path cannot be a transcript's."""
        place = self._place(path)
        return Path(place.real_path) if place and self._audience.may_see_transcript(path) else None

    def stored_path(self, file: Path) -> str | None:
        """Return the stored path of a file on disk; None if it is not a transcript of this memory."""
        path = stored_below(file, self._roots)
        return path if path and self._place(path) and self._audience.may_see_transcript(path) else None

    def _place(self, path: str) -> Place | None:
        """Return where a stored path would be; None if it cannot be a transcript's."""
        parts = parts_of(path) if self.may_hold(path) else None
        if parts is None:
            return None
        for root in self._roots:
            place = place_below(root, parts)
            if place and (root.is_extra or not (parts[1].startswith("@") or parts[1] == CORRUPT)):
                return place
        return None

    def _known_place(self, path: str) -> Place:
        place = self._place(path)
        if place is None or not self._audience.may_see_transcript(path):
            raise FileNotFoundError(f"not a path of a transcript: {path!r}")
        return place

    @cached_property
    def _roots(self) -> tuple[Root, ...]:
        """The session store's own folder, then the others in order."""
        taken: set[str] = set()
        extra = ((f"{TOP}/{unused_label(_label(path), taken, ENDINGS)}", path) for path in self._paths)
        return (_root(TOP, self._own_folder), *(_root(stored, path, is_extra=True) for stored, path in extra))


def _each_once(files: Sequence[FileStamp]) -> tuple[FileStamp, ...]:
    """Leave out the older of an imported conversation and its transcript: the newer one has all of its messages."""
    stored = {session_id: stamp for stamp in files if (session_id := session_at(stamp.path))}
    left_out: set[str] = set()
    for stamp in files:
        known = stored.get(_session_of(stamp.path)) if stamp.path.startswith(f"{TOP}/@") else None
        if known:
            left_out.add(min(known, stamp, key=lambda each: each.mtime_ns).path)
    return tuple(stamp for stamp in files if stamp.path not in left_out) if left_out else tuple(files)


def _session_of(path: str) -> str:
    """Return the id that a transcript of another program gets when it is imported, by its name."""
    stem = path.rpartition("/")[2].rpartition(".")[0].lower()
    found = _UUID_AT_END.search(stem)
    return found[0] if found else id_of_group(stem)


def _root(stored: str, path: Path, *, is_extra: bool = False) -> Root:
    """Return a root; its path may contain links, but it must not be one itself."""
    parts = (path.name,) if path.name else ()
    return Root(stored, os.path.realpath(path.parent), parts, is_extra=is_extra, is_outside=True)


def _label(path: Path) -> str:
    generic = path.name.lower() in _COMMON_NAMES and path.parent.name
    return (path.parent.name if generic else path.name or "root").lstrip(".")
