"""Indexes transcripts as they grow: only what was appended since the last time, one transaction per piece.

After every piece the store holds a consistent beginning of the transcript and where it ends, so an interrupted run
continues from there. A transcript that was rewritten instead of appended to is replaced in a single transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from notewell.files.faults import reach
from notewell.indexing.plan import trusted_stamp
from notewell.types import StoredDocument

if TYPE_CHECKING:
    from notewell.indexing.indexer import Tally
    from notewell.indexing.plan import Deadline
    from notewell.indexing.preparation import Preparation
    from notewell.protocols import GrowingSource, Store, Vector
    from notewell.types import FileStamp, Piece, PreparedChunk

    KnownVectors = Callable[[Sequence[str]], dict[str, Vector]]

HURRIED_REWRITE_BYTES = 16_000_000  # about a second of work that cannot be stopped half-way


@dataclass(frozen=True, slots=True)
class TranscriptRun:
    """Indexes transcripts into one store."""

    store: Store
    preparation: Preparation
    known_vectors: KnownVectors

    def update(
        self,
        source: GrowingSource,
        stamp: FileStamp,
        known: StoredDocument | None,
        *,
        gone: set[str],
        tally: Tally,
        deadline: Deadline,
        check: bool = False,
    ) -> None:
        """Bring one transcript up to date, with `check` from its beginning; raises OSError when it cannot be read."""
        cursor = None
        if known and not check:
            with self.store.reading() as snapshot:
                cursor = snapshot.cursor(known.stamp.source, known.stamp.path)
        reach("index.read")
        with closing(source.read_on(stamp, cursor)) as pieces:
            first = next(pieces)
            whole = chain([first], pieces)
            if not (first.from_start and known):
                end = self._append(whole, stamp, tally, deadline)
            elif deadline.at is not None and first.stamp.size > HURRIED_REWRITE_BYTES:
                tally.complete = False
                return
            else:
                end = self._rewrite(whole, stamp, tally)
        if end is not None:
            _count(end, known, gone, tally)

    def _append(self, pieces: Iterator[Piece], stamp: FileStamp, tally: Tally, deadline: Deadline) -> Piece | None:
        """Commit piece by piece; return the last one, or None when the deadline came first."""
        for piece in pieces:
            chunks = self.preparation.prepare_messages(piece.lines, stamp.path)
            vectors = self._vectors(chunks, tally)
            reach("index.put")
            self.store.append_document(_stored(piece), chunks, vectors, cursor=piece.position)
            if piece.last:
                return piece
            if deadline.passed:
                tally.complete = False
                return None
        return None

    def _rewrite(self, pieces: Iterator[Piece], stamp: FileStamp, tally: Tally) -> Piece | None:
        with self.store.rewriting(stamp.source, stamp.path) as rewrite:
            for piece in pieces:
                chunks = self.preparation.prepare_messages(piece.lines, stamp.path)
                reach("index.put")
                rewrite.add(chunks, self._vectors(chunks, tally))
            rewrite.finish(_stored(piece), piece.position)
        return piece

    def _vectors(self, chunks: Sequence[PreparedChunk], tally: Tally) -> dict[str, Vector]:
        vectors = self.known_vectors([prepared.chunk.embedded_hash for prepared in chunks])
        tally.reused += len(vectors)
        return vectors


def _stored(piece: Piece) -> StoredDocument:
    """Return what to remember; before the last piece a stamp that no file has, so that the rest is read next time."""
    stamp = (
        trusted_stamp(piece.stamp, now_ns=time.time_ns()) if piece.last else piece.stamp._replace(size=0, mtime_ns=0)
    )
    return StoredDocument(stamp, piece.content_hash, piece.dated)


def _count(end: Piece, known: StoredDocument | None, gone: set[str], tally: Tally) -> None:
    tally.problems += end.problems
    if known and known.content_hash == end.content_hash:
        tally.unchanged += 1
    elif known:
        tally.changed += 1
    elif end.content_hash in gone:
        tally.renamed += 1
    else:
        tally.added += 1
