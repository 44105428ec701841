"""A document that grows at its end and a store in, the new part taken into the store out, a piece a transaction.

After every piece the store holds the beginning of the document, in step and with where it ends: a run that is cut short
is gone on with from there. What was rewritten instead of appended to is replaced in a single transaction.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from recollect.faults import reach
from recollect.indexing.plan import trusted_stamp
from recollect.types import SpokenLine, StoredDocument

if TYPE_CHECKING:
    from recollect.chunking import DialogueChunker
    from recollect.indexing.deadline import Deadline
    from recollect.indexing.preparation import Preparation
    from recollect.indexing.tally import Tally
    from recollect.protocols import GrowingSource, Store, Vector
    from recollect.types import FileStamp, Piece, PreparedChunk

    KnownVectors = Callable[[Sequence[str]], dict[str, Vector]]

HURRIED_REWRITE_BYTES = 16_000_000  # about a second of work that cannot be stopped half-way


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a document is taken in: where its source goes on, and the lines that the last chunk holds."""

    position: str
    open_lines: tuple[SpokenLine, ...]

    def as_text(self) -> str:
        """Return the cursor as the store keeps it."""
        return json.dumps({"position": self.position, "open": self.open_lines}, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> Cursor | None:
        """Return the cursor, or None when the text is not one: the document is then read from its beginning."""
        try:
            values = json.loads(text)
            return cls(str(values["position"]), tuple(SpokenLine(int(n), str(t)) for n, t in values["open"]))
        except (KeyError, TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class GrowthRun:
    """Takes growing documents into one store."""

    store: Store
    preparation: Preparation
    known_vectors: KnownVectors

    def take_in(
        self,
        source: GrowingSource,
        stamp: FileStamp,
        known: StoredDocument | None,
        *,
        gone: set[str],
        tally: Tally,
        deadline: Deadline,
    ) -> None:
        """Bring one document up to date; raises OSError when it cannot be read."""
        cursor = self._cursor(known) if known else None
        reach("index.read")
        with closing(source.read_on(stamp, cursor.position if cursor else None)) as pieces:
            first = next(pieces)
            whole = chain([first], pieces)
            if not (first.from_start and known):
                end = self._append(whole, stamp, cursor, tally, deadline)
            elif deadline.at is not None and first.stamp.size > HURRIED_REWRITE_BYTES:
                tally.complete = False
                return
            else:
                end = self._rewrite(whole, stamp, tally)
        if end is not None:
            _count(end, known, gone, tally)

    def _cursor(self, known: StoredDocument) -> Cursor | None:
        with self.store.reading() as snapshot:
            text = snapshot.cursor(known.stamp.source, known.stamp.path)
        return Cursor.from_text(text) if text else None

    def _append(
        self, pieces: Iterator[Piece], stamp: FileStamp, cursor: Cursor | None, tally: Tally, deadline: Deadline
    ) -> Piece | None:
        """Commit piece by piece; return the last one, or None when the deadline came first."""
        chunker = self.preparation.dialogue(cursor.open_lines if cursor else ())
        for piece in pieces:
            replaced = chunker.open_chunk
            chunks = self._chunks(chunker, piece, stamp, end=True)
            vectors = self._vectors(chunks, tally)
            reach("index.put")
            self.store.append_document(
                _stored(piece),
                chunks,
                vectors,
                replaces=replaced.embedded_hash if replaced else None,
                cursor=Cursor(piece.position, chunker.open_lines).as_text(),
            )
            if piece.last:
                return piece
            if deadline.passed:
                tally.complete = False
                return None
        return None

    def _rewrite(self, pieces: Iterator[Piece], stamp: FileStamp, tally: Tally) -> Piece | None:
        chunker = self.preparation.dialogue(())
        with self.store.rewriting(stamp.source, stamp.path) as rewrite:
            for piece in pieces:
                chunks = self._chunks(chunker, piece, stamp, end=piece.last)
                reach("index.put")
                rewrite.add(chunks, self._vectors(chunks, tally))
            rewrite.finish(_stored(piece), Cursor(piece.position, chunker.open_lines).as_text())
        return piece

    def _chunks(self, chunker: DialogueChunker, piece: Piece, stamp: FileStamp, *, end: bool) -> list[PreparedChunk]:
        chunks = list(chunker.add(piece.lines))
        last = chunker.open_chunk
        return self.preparation.with_terms([*chunks, last] if end and last else chunks, stamp.path)

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
