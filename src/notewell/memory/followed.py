"""What a machine sees of a memory whose notes it does not hold: documents from the database in place of files.

A followed source lists what is indexed, so nothing ever seems new or gone, and its texts are put together from chunks.
"""

from __future__ import annotations

import errno
import sys
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from notewell.errors import NoteNotFoundError, PathRefusedError
from notewell.sources.privacy import DIRECT, Audience
from notewell.types import Document, Listing, SourceName

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Mapping
    from pathlib import Path

    from notewell.protocols import ReadAccess
    from notewell.sources.notes import NotesSource
    from notewell.sources.transcripts.source import TranscriptSource
    from notewell.types import FileStamp, Problem, StoredChunk, StoredDocument


@dataclass(frozen=True, slots=True)
class FollowedSource:
    """Implements `Source` with the documents of an index, as the audience of that index sees them."""

    index: ReadAccess
    name: SourceName
    audience: Audience = DIRECT

    def list(self, paths: Collection[str] | None = None) -> Listing:
        """Return the stamps of what is indexed; with `paths` only of those."""
        return Listing(tuple(known.stamp for known in self._documents(paths).values()))

    def read(self, stamp: FileStamp, *, as_written: bool = False) -> Document:  # noqa: ARG002 - nothing is written here
        """Return what is indexed of a document: lines that no chunk holds are empty, such as a front matter."""
        known = self._documents([stamp.path]).get((self.name, stamp.path))
        if known is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such document", stamp.path)
        text = "".join(f"{line}\n" for line in self._lines(stamp.path))
        return Document(known.stamp, text, known.content_hash, dated=known.dated, private=known.private)

    def may_hold(self, path: str) -> bool:
        """Say whether a path has the form of this source's paths."""
        return path.startswith("sessions/") == (self.name == "sessions")

    def exists(self, path: str) -> bool:
        """Say whether a document is indexed under this path."""
        return bool(self._documents([path]))

    def stored_path(self, file: Path) -> str | None:
        """Return None: no file on this machine is a part of the memory."""
        del file
        return None

    def stamp_of(self, path: str) -> FileStamp:
        """Return the stamp of one document; raises PathRefusedError or NoteNotFoundError."""
        known = self._documents([path])
        if known:
            return next(iter(known.values())).stamp
        raise NoteNotFoundError(path) if self._could_be(path) else PathRefusedError(path)

    def resolve(self, path: str) -> Path:
        """Raise: no document is a file here."""
        raise PathRefusedError(path)

    def place_to_write(self, path: str) -> Path | None:
        """Return None: nothing is written here."""
        del path
        return None

    def rendered(self, path: str, first_line: int) -> Generator[str]:
        """Yield every line of a conversation from `first_line` on."""
        yield from islice(self._lines(path), min(first_line - 1, sys.maxsize), None)

    def unreadable(self, positions: Mapping[str, str | None]) -> Iterator[Problem]:
        """Yield nothing: whoever holds the files sees which cannot be read."""
        del positions
        yield from ()

    def _could_be(self, path: str) -> bool:
        parts = path.split("/")
        known_ending = path.lower().endswith((".md", ".markdown", ".json5", ".jsonl"))
        return known_ending and not path.startswith("/") and ".." not in parts and "\0" not in path

    def _documents(self, paths: Collection[str] | None = None) -> Mapping[tuple[SourceName, str], StoredDocument]:
        with self.index.use() as store:
            if store is None:
                return {}
            with store.reading() as snapshot:
                found = snapshot.documents(self.name, paths)
        return found

    def _lines(self, path: str) -> Iterator[str]:
        """Yield the lines of a document from its chunks, which may share some; blank where no chunk has a line."""
        with self.index.use() as store:
            if store is None:
                return
            with store.reading() as snapshot:
                chunks = snapshot.chunks_of(self.name, path)
        by_line = _by_message(chunks) if self.name == "sessions" else _by_line(chunks)
        for number in range(1, max(by_line, default=0) + 1):
            yield by_line.get(number, "")


if TYPE_CHECKING:
    Notes = NotesSource | FollowedSource  # of files, or of a database
    Transcripts = TranscriptSource | FollowedSource


def _by_line(chunks: Collection[StoredChunk]) -> dict[int, str]:
    lines: dict[int, str] = {}
    for chunk in chunks:
        for number, line in enumerate(chunk.text.split("\n"), chunk.first_line):
            if number <= chunk.last_line:
                lines[number] = _joined(lines.get(number, ""), line)
    return lines


def _joined(line: str, piece: str) -> str:
    """Return a line with one more piece of it: of a very long line, neighbouring chunks hold pieces that overlap."""
    if piece in line:
        return line
    shared = next((n for n in range(min(len(line), len(piece)), 0, -1) if line.endswith(piece[:n])), 0)
    return line + piece[shared:]


def _by_message(chunks: Collection[StoredChunk]) -> dict[int, str]:
    """Return one message a line, as transcripts are shown."""
    lines: dict[int, str] = {}
    for chunk in chunks:
        before = lines.get(chunk.first_line)
        lines[chunk.first_line] = chunk.text if before is None else f"{before} {chunk.text}"
    return lines
