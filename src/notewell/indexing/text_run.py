"""A plan and a store in, the text of the store in step with the files out; vectors known before come along."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notewell.files.faults import reach
from notewell.indexing.growth import GrowthRun
from notewell.indexing.plan import trusted_stamp
from notewell.protocols import GrowingSource
from notewell.types import Problem, Progress, StoredDocument

if TYPE_CHECKING:
    from notewell.indexing.deadline import Deadline
    from notewell.indexing.plan import Plan
    from notewell.indexing.preparation import Preparation
    from notewell.indexing.tally import Tally
    from notewell.protocols import Source, Store, Vector
    from notewell.types import Document, FileStamp, PreparedChunk, ProgressCallback

    KnownVectors = Callable[[Sequence[str]], dict[str, Vector]]

WRITTEN_AT_ONCE = 64  # documents a transaction: a first index takes a fifth less time, a kill costs 0.2 s of work
TEXT_AT_ONCE = 4_000_000  # characters; large notes are written sooner, so that memory stays small
REMOVED_AT_ONCE = 256  # documents a transaction: some 50 ms, so that a deadline is kept and readers are not held up


@dataclass(slots=True)
class _Waiting:
    """Notes that were read and cut, to be written together."""

    touched: list[StoredDocument] = field(default_factory=list)  # as they are in the store, but for size or time
    fresh: list[tuple[StoredDocument, list[PreparedChunk]]] = field(default_factory=list)
    characters: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.touched) + len(self.fresh) >= WRITTEN_AT_ONCE or self.characters >= TEXT_AT_ONCE


@dataclass(frozen=True, slots=True)
class TextRun:
    """Carries out one plan, no document in two transactions; stops early at the deadline."""

    store: Store
    sources: Sequence[Source]
    preparation: Preparation
    known_vectors: KnownVectors
    tally: Tally
    deadline: Deadline

    def run(self, plan: Plan, progress: ProgressCallback | None) -> None:
        """Read what is new or may have changed, then take out what is gone: a renamed note finds its vectors so."""
        self.tally.unchanged += plan.unchanged
        gone = {document.content_hash for document in plan.removed}
        work = [*((stamp, None) for stamp in plan.added), *plan.touched]
        waiting = _Waiting()
        for done, (stamp, known) in enumerate(work, 1):
            if self.deadline.passed:
                self.tally.complete = False
                break
            self._take_in(stamp, known, gone, waiting)
            if waiting.is_full:
                self._write(waiting)
                waiting = _Waiting()
            if progress:
                progress(Progress("read", done, len(work)))
        self._write(waiting)
        if self.tally.complete:
            self._remove(plan)

    def _take_in(self, stamp: FileStamp, known: StoredDocument | None, gone: set[str], waiting: _Waiting) -> None:
        source = next(source for source in self.sources if source.name == stamp.source)
        try:
            if stamp.source == "sessions" and isinstance(source, GrowingSource):  # the check costs 40 µs a note
                # A conversation is written in transactions of its own: it may be larger than memory.
                growth = GrowthRun(self.store, self.preparation, self.known_vectors)
                growth.take_in(source, stamp, known, gone=gone, tally=self.tally, deadline=self.deadline)
                return
            reach("index.read")
            document = source.read(stamp)
        except FileNotFoundError:
            return  # gone since it was listed: the next run sees that it is removed
        except OSError as error:
            self.tally.problems.append(Problem(stamp.path, error.strerror or str(error)))
            return
        self._prepare(document, known, gone, waiting)

    def _prepare(self, document: Document, known: StoredDocument | None, gone: set[str], waiting: _Waiting) -> None:
        stamp = trusted_stamp(document.stamp, now_ns=time.time_ns())
        stored = StoredDocument(stamp, document.content_hash, document.dated, document.private)
        if known and known.content_hash == document.content_hash:
            waiting.touched.append(stored)
            self.tally.unchanged += 1
            return
        waiting.fresh.append((stored, self.preparation.prepare(document)))
        waiting.characters += len(document.text)
        if known:
            self.tally.changed += 1
        elif document.content_hash in gone:
            self.tally.renamed += 1
        else:
            self.tally.added += 1

    def _write(self, waiting: _Waiting) -> None:
        """Write what was read, with the vectors of texts that were embedded before."""
        if not (waiting.touched or waiting.fresh):
            return
        hashes = [new.chunk.embedded_hash for _, chunks in waiting.fresh for new in chunks]
        vectors = self.known_vectors(hashes)
        self.tally.reused += sum(map(vectors.__contains__, hashes))
        with self.store.together():
            if waiting.touched:
                reach("index.touch")
                self.store.touch_documents(waiting.touched)
            for stored, chunks in waiting.fresh:
                reach("index.put")
                self.store.put_document(stored, chunks, vectors)

    def _remove(self, plan: Plan) -> None:
        for source in {document.stamp.source for document in plan.removed}:
            paths = [document.stamp.path for document in plan.removed if document.stamp.source == source]
            for start in range(0, len(paths), REMOVED_AT_ONCE):
                if self.deadline.passed:
                    self.tally.complete = False
                    return
                reach("index.remove")
                self.store.remove_documents(source, paths[start : start + REMOVED_AT_ONCE])
        self.tally.removed += len(plan.removed) - self.tally.renamed
