"""The transcripts of past conversations: folders of them in, stamps, documents and growing pieces out."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Generator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from notewell.errors import NoteNotFoundError
from notewell.sources.opening import open_below
from notewell.sources.transcripts.lines import ByteCounter, count_lines, lines_of
from notewell.sources.transcripts.pieces import (
    LineReader,
    Redact,
    after_late_newline,
    pieces_of,
    still_stands,
)
from notewell.sources.transcripts.places import Place, Root, could_hold, listing_of, place_of, roots_of, stamp_at
from notewell.sources.transcripts.position import BEGINNING, Position
from notewell.sources.transcripts.records import NotARecord
from notewell.types import Document, FileStamp, Listing, Piece, SourceName


class RenderedLine(NamedTuple):
    """One line of a transcript as it is shown: the message, or nothing for a line that is left out."""

    number: int
    text: str


class TranscriptSource:
    """Lists and reads transcripts, and refuses every path that is not one of them.

    Line numbers are those of the file: line 12 of a document is what line 12 of the JSONL says.
    """

    def __init__(self, own_folder: Path, paths: Sequence[Path] = (), *, redact: Redact) -> None:
        self._own_folder = own_folder
        self._paths = tuple(paths)
        self._redact = redact
        self._counter = ByteCounter()

    @property
    def name(self) -> SourceName:
        return "sessions"

    @property
    def read_bytes(self) -> int:
        return self._counter.count

    def may_hold(self, path: str) -> bool:
        return could_hold(path)

    def list(self, paths: Collection[str] | None = None) -> Listing:
        """Return every transcript now there, each real file once, sorted by path; with `paths` only those."""
        if paths is None:
            return listing_of(self._roots)
        return Listing(tuple(sorted(filter(None, map(self._stamp_if_there, paths)))))

    def read(self, stamp: FileStamp) -> Document:
        """Return the whole transcript as one document; `read_on` is for those that may be large."""
        pieces = list(self.read_on(stamp, None))
        texts = {said.line: said.text for piece in pieces for said in piece.lines}
        end = pieces[-1]
        count = max(texts, default=0)
        text = "".join(f"{texts.get(number, '')}\n" for number in range(1, count + 1))
        return Document(stamp=end.stamp, text=text, content_hash=end.content_hash, dated=end.dated)

    def read_on(self, stamp: FileStamp, position: str | None) -> Generator[Piece]:
        """Yield what the transcript says after `position`, or from its beginning if it was not only appended to.

        Raises OSError when the file is gone, unreadable, no regular file, or reached through a link.
        """
        place = self._known_place(stamp.path)
        with open_below(place.root.base, place.below_base) as file:
            known = Position.from_text(position) if position else None
            if known is not None and not still_stands(file, known, self._counter):
                known = None
            if known is not None:
                known = after_late_newline(file, known, self._counter)
            yield from pieces_of(
                file,
                stamp.path,
                known or BEGINNING,
                redact=self._redact,
                counter=self._counter,
                from_start=known is None,
            )

    def rendered(self, path: str, first_line: int) -> Generator[RenderedLine]:
        """Yield every line from `first_line` on as it is shown; raises like `read_on`."""
        place = self._known_place(path)
        with open_below(place.root.base, place.below_base) as file:
            size = os.fstat(file.fileno()).st_size
            reader = LineReader(path, self._redact)
            for line in lines_of(file, self._counter, start=0, stop=size, number=0, chain=BEGINNING.chain):
                if reader.ends_before(line):
                    return
                if line.number < first_line and reader.may_skip:
                    continue
                try:
                    message = reader.message_in(line)
                except NotARecord:
                    message = None
                if line.number >= first_line:
                    yield RenderedLine(line.number, message.line if message else "")

    def new_lines(self, path: str, first_byte: int) -> int:
        """Return how many lines were added to a transcript after `first_byte`; raises like `read_on`."""
        place = self._known_place(path)
        with open_below(place.root.base, place.below_base) as file:
            size = os.fstat(file.fileno()).st_size
            return count_lines(file, self._counter, start=first_byte, stop=size)

    def exists(self, path: str) -> bool:
        """Say whether the path names a transcript now; a single look, folders on the way unchecked."""
        place = place_of(self._roots, path)
        if place is None:
            return False
        try:
            return stat.S_ISREG(os.lstat(os.path.join(place.root.base, *place.below_base)).st_mode)  # noqa: PTH118
        except OSError:  # gone or out of reach: either way nothing that could be shown
            return False

    def stamp_of(self, path: str) -> FileStamp:
        """Return the stamp of one transcript; raises PathRefusedError or NoteNotFoundError."""
        return stamp_at(self._roots, path)

    def resolve(self, path: str) -> Path:
        """Return where a transcript lies on disk; raises like `stamp_of`."""
        place = self._known_place(self.stamp_of(path).path)
        return Path(place.root.base, *place.below_base)

    def stored_path(self, file: Path) -> str | None:
        """Return the stored path of a file on disk, or None when it is no transcript of this memory."""
        real = Path(os.path.realpath(file.parent)) / file.name
        for root in self._roots:
            if real.is_relative_to(root.real_path):
                path = "/".join((*root.stored, *real.relative_to(root.real_path).parts))
                return path if place_of(self._roots, path) else None
        return None

    def _stamp_if_there(self, path: str) -> FileStamp | None:
        try:
            return self.stamp_of(path)
        except NoteNotFoundError:
            return None

    def _known_place(self, path: str) -> Place:
        place = place_of(self._roots, path)
        if place is None:
            raise FileNotFoundError(f"not a path of a transcript: {path!r}")
        return place

    @cached_property
    def _roots(self) -> tuple[Root, ...]:
        return roots_of(self._own_folder, self._paths)
