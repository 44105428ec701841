"""Brings a store up to date with the files: the text first, so that keyword search finds everything, then the vectors.

Of a transcript only what was appended is indexed, piece by piece: after each, the store holds a consistent beginning of
it and a cursor. A transcript that was rewritten is replaced in a single transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from notewell.embedding import JOBS_FOLDER
from notewell.files.faults import reach
from notewell.indexing.embedding_run import EmbeddingRun
from notewell.indexing.plan import EVERYTHING, find_changes, trusted_stamp
from notewell.protocols import GrowingSource
from notewell.types import IndexReport, Problem, Progress, StoredDocument

if TYPE_CHECKING:
    from pathlib import Path

    from notewell.indexing.batch_jobs import BatchRun
    from notewell.indexing.plan import Changes, Deadline, Plan, SyncPolicy
    from notewell.indexing.preparation import Preparation
    from notewell.indexing.spending import SpendingLimit
    from notewell.protocols import Embedder, EmbeddingCache, Source, Store, Vector
    from notewell.types import Document, FileStamp, Piece, PreparedChunk, ProgressCallback

    KnownVectors = Callable[[Sequence[str]], dict[str, Vector]]

WRITTEN_AT_ONCE = 64  # documents per transaction: a first index is a fifth faster, a kill costs 0.2 s of work
TEXT_AT_ONCE = 4_000_000  # characters per transaction, which limits memory
REMOVED_AT_ONCE = 256  # documents per transaction: some 50 ms, so that deadlines are met
HURRIED_REWRITE_BYTES = 16_000_000  # of a transcript: about a second of work that cannot be interrupted
OPTIMIZED_IN_A_HURRY = 16  # changed documents; after more of them optimizing takes longer than a search can wait


@dataclass
class Tally:
    """Counts what a run does."""

    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0
    reused: int = 0
    unknown: int = 0
    jobs: int = 0
    postponed: int = 0
    bytes_read: int = 0
    complete: bool = True
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def report(self, *, pending: int, seconds: float) -> IndexReport:
        lists = {"problems": tuple(self.problems), "notes": tuple(self.notes)}
        return IndexReport(**(vars(self) | lists), pending=pending, seconds=seconds)


@dataclass(frozen=True, slots=True)
class Indexer:
    """Brings any store up to date; without an embedder the vectors are left for later."""

    sources: Sequence[Source]
    preparation: Preparation
    embedder: Embedder | None = None
    cache: EmbeddingCache | None = None
    batch: BatchRun | None = None
    spending_limit: SpendingLimit | None = None
    jobs_folder: Path | None = None  # where batch jobs are recorded, whose texts are not embedded again
    known_only: bool = False  # use known vectors, embed nothing

    def run(
        self,
        store: Store,
        policy: SyncPolicy = EVERYTHING,
        *,
        older_store: Store | None = None,
        changes: Changes | None = None,
    ) -> IndexReport:
        """Update the store and report what was done; stop early at the deadline.

        While rebuilding, vectors of the same embedder come from the `older_store`. `changes` found before save listing
        the files again, unless the store has been written since.
        """
        started = time.monotonic()
        tally = Tally()
        if self.embedder:
            store.set_embedder(self.embedder.identity, self.embedder.quantization)
        read_before = self._read_bytes()
        reach("index.list")
        with store.reading() as snapshot:
            changes = find_changes(self.sources, snapshot, policy, changes)
        plan = changes.plan
        tally.problems += changes.problems
        tally.postponed = plan.postponed
        embedding = EmbeddingRun(store, self.embedder, self.cache, older_store) if self.embedder else None
        known_vectors: KnownVectors = embedding.known_vectors if embedding else lambda _: {}
        text_run = _TextRun(store, self.sources, self.preparation, known_vectors, tally, policy.deadline, policy.check)
        text_run.run(plan, policy.progress)
        if embedding and tally.complete:
            self._embed(embedding, tally, policy)
        changed = len(plan.added) + len(plan.touched) + len(plan.removed)
        late = policy.deadline.passed
        hurried = policy.deadline.at is not None and (changed > OPTIMIZED_IN_A_HURRY or late)
        if (changed or tally.embedded or (policy.tidy and not late)) and not hurried:
            reach("index.tidy")
            store.optimize()
        with store.reading() as snapshot:
            pending = snapshot.counts().pending
        tally.bytes_read = self._read_bytes() - read_before
        return tally.report(pending=pending, seconds=time.monotonic() - started)

    def _embed(self, embedding: EmbeddingRun, tally: Tally, policy: SyncPolicy) -> None:
        """Handle batch jobs, then embed what is neither in one nor over the spending limit."""
        if self.batch:
            self.batch.step(embedding, tally)
            excluded = self.batch.excluded()
        else:
            in_jobs = self._texts_in_jobs(embedding.embedder)
            tally.jobs = len(in_jobs)
            excluded = frozenset().union(*in_jobs).__contains__
        if self.known_only:
            excluded = _everything
        limit = self.spending_limit
        note = limit.note_on_pending(embedding.store, embedding.embedder, self.cache, excluded) if limit else ""
        if note:
            tally.notes.append(note)
            excluded = _everything
        embedding.run(tally, excluded, deadline=policy.deadline, progress=policy.progress)

    def _texts_in_jobs(self, embedder: Embedder) -> list[frozenset[str]]:
        """Return the text hashes of each recorded batch job of the embedder."""
        if self.jobs_folder is None or not (self.jobs_folder / JOBS_FOLDER).exists():
            return []
        from notewell.embedding.jobs import Ledger

        return [record.wanted for record in Ledger(self.jobs_folder).records() if record.identity == embedder.identity]

    def _read_bytes(self) -> int:
        return sum(source.read_bytes for source in self.sources if isinstance(source, GrowingSource))


def _everything(_: str) -> bool:
    return True


@dataclass(slots=True)
class _Waiting:
    """Notes to be written in one transaction."""

    touched: list[StoredDocument] = field(default_factory=list)  # with the same text as in the store
    fresh: list[tuple[StoredDocument, list[PreparedChunk]]] = field(default_factory=list)
    characters: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.touched) + len(self.fresh) >= WRITTEN_AT_ONCE or self.characters >= TEXT_AT_ONCE


@dataclass(frozen=True, slots=True)
class _TextRun:
    """Executes a plan; stops early at the deadline."""

    store: Store
    sources: Sequence[Source]
    preparation: Preparation
    known_vectors: KnownVectors
    tally: Tally
    deadline: Deadline
    check: bool = False  # do not trust what is remembered of a transcript

    def run(self, plan: Plan, progress: ProgressCallback | None) -> None:
        """Index new and changed files, then remove deleted ones, so that renamed notes keep their vectors."""
        self.tally.unchanged += plan.unchanged
        gone = {document.content_hash for document in plan.removed}
        work = [*((stamp, None) for stamp in plan.added), *plan.touched]
        waiting = _Waiting()
        for done, (stamp, known) in enumerate(work, 1):
            if self.deadline.passed:
                self.tally.complete = False
                self._tell_of(len(plan.added) - done + 1)
                break
            source = next(source for source in self.sources if source.name == stamp.source)
            try:
                if stamp.source == "sessions" and isinstance(source, GrowingSource):  # the check costs 40 µs a note
                    # It may not fit into memory, so it is written in transactions of its own.
                    self._read_on(source, stamp, known, gone)
                else:
                    reach("index.read")
                    self._prepare(source.read(stamp), known, gone, waiting)
            except FileNotFoundError:
                pass  # deleted since it was listed: the next run removes it
            except OSError as error:
                self.tally.problems.append(Problem(stamp.path, error.strerror or str(error)))
            if waiting.is_full:
                self._write(waiting)
                waiting = _Waiting()
            if progress:
                progress(Progress("read", done, len(work)))
        self._write(waiting)
        if self.tally.complete:
            self._remove(plan)

    def _tell_of(self, new_files: int) -> None:
        """Add a note on new files that were not reached; changed ones only make answers stale."""
        if new_files > 0:
            files = f"{new_files:,} files are" if new_files > 1 else "a file is"
            self.tally.notes.append(f"{files} not indexed yet: run `notewell index`")

    def _prepare(self, document: Document, known: StoredDocument | None, gone: set[str], waiting: _Waiting) -> None:
        stamp = trusted_stamp(document.stamp, now_ns=time.time_ns())
        stored = StoredDocument(stamp, document.content_hash, document.dated, document.private)
        self._count(document.content_hash, known, gone)
        if known and known.content_hash == document.content_hash:
            waiting.touched.append(stored)
            return
        waiting.fresh.append((stored, self.preparation.prepare(document)))
        waiting.characters += len(document.text)

    def _count(self, content_hash: str, known: StoredDocument | None, gone: set[str]) -> None:
        if known and known.content_hash == content_hash:
            self.tally.unchanged += 1
        elif known:
            self.tally.changed += 1
        elif content_hash in gone:
            self.tally.renamed += 1
        else:
            self.tally.added += 1

    def _write(self, waiting: _Waiting) -> None:
        """Write the notes, with the vectors that are known."""
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

    # --- transcripts -----------------------------------------------------------------------------

    def _read_on(self, source: GrowingSource, stamp: FileStamp, known: StoredDocument | None, gone: set[str]) -> None:
        """Index what was appended to a transcript; raise OSError when it cannot be read."""
        cursor = None
        if known and not self.check:
            with self.store.reading() as snapshot:
                cursor = snapshot.cursor(known.stamp.source, known.stamp.path)
        reach("index.read")
        end: Piece | None = None  # None if the deadline comes first
        with closing(source.read_on(stamp, cursor)) as pieces:
            first = next(pieces)
            whole = chain([first], pieces)
            if not (first.from_start and known):
                for piece in whole:
                    chunks, vectors = self._chunks_of(piece, stamp)
                    self.store.append_document(_stored(piece), chunks, vectors, cursor=piece.position)
                    if piece.last or self.deadline.passed:
                        end = piece if piece.last else None
                        break
            elif self.deadline.at is None or first.stamp.size <= HURRIED_REWRITE_BYTES:
                with self.store.rewriting(stamp.source, stamp.path) as rewrite:
                    for end in whole:
                        rewrite.add(*self._chunks_of(end, stamp))
                    assert end is not None
                    rewrite.finish(_stored(end), end.position)
        if end is None:
            self.tally.complete = False
        else:
            self.tally.problems += end.problems
            self._count(end.content_hash, known, gone)

    def _chunks_of(self, piece: Piece, stamp: FileStamp) -> tuple[list[PreparedChunk], dict[str, Vector]]:
        """Return the chunks of a piece and the vectors that are known."""
        chunks = self.preparation.prepare_messages(piece.lines, stamp.path)
        vectors = self.known_vectors([prepared.chunk.embedded_hash for prepared in chunks])
        self.tally.reused += len(vectors)
        reach("index.put")
        return chunks, vectors


def _stored(piece: Piece) -> StoredDocument:
    """Return what to store; before the last piece with a stamp that no file has, so that the next run continues."""
    if piece.last:
        stamp = trusted_stamp(piece.stamp, now_ns=time.time_ns())
    else:
        stamp = piece.stamp._replace(size=0, mtime_ns=0)
    return StoredDocument(stamp, piece.content_hash, piece.dated)
