"""A growing source in, the same out but that documents which grew too little are shown as the index knows them.

A conversation that is going on grows with every message. It is taken in again once enough has come together, so that
the last chunk is not embedded anew for every line; whoever asks for indexing by name gets it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import TYPE_CHECKING

from notewell.types import Document, FileStamp, Listing, Piece, SourceName, StoredDocument

if TYPE_CHECKING:
    from notewell.protocols import GrowingSource
    from notewell.settings.model import SessionSyncSettings

StoredDocuments = Callable[[], Mapping[tuple[SourceName, str], StoredDocument]]


class PatientSource:
    """Lists a document that grew by less than the thresholds with the stamp it was indexed with."""

    def __init__(self, inner: GrowingSource, thresholds: SessionSyncSettings, stored: StoredDocuments) -> None:
        self._inner = inner
        self._thresholds = thresholds
        self._stored = stored
        self.postponed = 0  # by the latest listing

    @property
    def name(self) -> SourceName:
        return self._inner.name

    @property
    def read_bytes(self) -> int:
        return self._inner.read_bytes

    def list(self, paths: Collection[str] | None = None) -> Listing:
        listing = self._inner.list(paths)
        stored = self._stored()
        files = tuple(self._shown(stamp, stored.get((stamp.source, stamp.path))) for stamp in listing.files)
        self.postponed = sum(shown is not listed for shown, listed in zip(files, listing.files, strict=True))
        return Listing(files, listing.problems)

    def _shown(self, stamp: FileStamp, known: StoredDocument | None) -> FileStamp:
        if known is None or stamp == known.stamp or is_due(self._inner, stamp, known.stamp, self._thresholds):
            return stamp
        return known.stamp

    def read(self, stamp: FileStamp) -> Document:
        return self._inner.read(stamp)

    def read_on(self, stamp: FileStamp, position: str | None) -> Generator[Piece]:
        return self._inner.read_on(stamp, position)

    def new_lines(self, path: str, first_byte: int) -> int:
        return self._inner.new_lines(path, first_byte)

    def may_hold(self, path: str) -> bool:
        return self._inner.may_hold(path)

    def exists(self, path: str) -> bool:
        return self._inner.exists(path)


def is_due(source: GrowingSource, now: FileStamp, known: FileStamp, thresholds: SessionSyncSettings) -> bool:
    """Say whether a document has changed enough to be read: grown by so many bytes or lines, or not grown at all."""
    grown = now.size - known.size
    if grown <= 0 or grown >= thresholds.delta_bytes:
        return True
    try:
        return source.new_lines(now.path, known.size) >= thresholds.delta_messages
    except OSError:
        return True  # reading it will say what is wrong


def due_paths(
    source: GrowingSource,
    paths: Collection[str],
    stored: Mapping[tuple[SourceName, str], StoredDocument],
    thresholds: SessionSyncSettings,
) -> list[str]:
    """Return those of the paths that are new, gone, or have changed enough to be read."""
    listed = {stamp.path: stamp for stamp in source.list(paths).files}
    due = []
    for path in paths:
        now, known = listed.get(path), stored.get((source.name, path))
        known_as = known.stamp if known else None
        if now is None or known_as is None or (now != known_as and is_due(source, now, known_as, thresholds)):
            due.append(path)
    return due


def postponed_by(sources: Iterable[object]) -> int:
    """Return how many documents wait to grow further, by the latest listing."""
    return sum(source.postponed for source in sources if isinstance(source, PatientSource))
