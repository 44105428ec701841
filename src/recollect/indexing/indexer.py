"""Files and a store in, the store brought up to date with the files out: first the text, then the vectors.

Text comes first so that keyword search finds everything at once, while embedding goes on where it stopped.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.faults import reach
from recollect.indexing.deadline import NEVER, Deadline
from recollect.indexing.embedding_run import EmbeddingRun
from recollect.indexing.growth import GrowthRun
from recollect.indexing.listing import listings_of
from recollect.indexing.plan import plan_changes, trusted_stamp
from recollect.indexing.tally import Tally
from recollect.protocols import GrowingSource
from recollect.types import IndexReport, Problem, Progress, StoredDocument

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from recollect.indexing.plan import Plan
    from recollect.indexing.preparation import Preparation
    from recollect.indexing.waited_for import BatchStep
    from recollect.protocols import Embedder, EmbeddingCache, Source, Store, Vector
    from recollect.types import Document, FileStamp, ProgressCallback

TIDIED_IN_PASSING = 16  # documents; tidying up after more of them may take longer than a search can wait
WRITTEN_AT_ONCE = 24  # documents a transaction: a first index takes a seventh less time, a kill costs 0.1 s of work
REMOVED_AT_ONCE = 256  # documents a transaction: some 50 ms, so that a deadline is kept and readers are not held up


@dataclass(frozen=True, slots=True)
class Indexer:
    """Brings one store up to date; without an embedder the vectors are left for later."""

    store: Store
    sources: Sequence[Source]
    preparation: Preparation
    embedder: Embedder | None = None
    cache: EmbeddingCache | None = None
    older_store: Store | None = None  # while rebuilding: its vectors of the same embedder need no new embedding
    batch: BatchStep | None = None

    def run(
        self,
        *,
        paths: Collection[str] | None = None,
        deadline: Deadline = NEVER,
        progress: ProgressCallback | None = None,
    ) -> IndexReport:
        """Do what is needed, no document in two transactions, and report it; stops early at the deadline.

        With `paths` only those are looked at.
        """
        started = time.monotonic()
        tally = Tally()
        if self.embedder:
            self.store.set_embedder(self.embedder.identity, self.embedder.quantization)
        read_before = self._read_bytes()
        plan = self._plan(paths, tally)
        self._index_text(plan, tally, deadline, progress)
        embedding = self._embedding()
        if embedding and tally.complete:
            self._after_jobs(embedding, tally).run(tally, deadline=deadline, progress=progress)
        changed = len(plan.added) + len(plan.touched) + len(plan.removed)
        hurried = deadline.at is not None and (changed > TIDIED_IN_PASSING or deadline.passed)
        if (changed or tally.embedded) and not hurried:
            reach("index.tidy")
            self.store.optimize()
        with self.store.reading() as snapshot:
            pending = snapshot.counts().pending
        tally.bytes_read = self._read_bytes() - read_before
        return tally.report(pending=pending, seconds=time.monotonic() - started)

    def _plan(self, paths: Collection[str] | None, tally: Tally) -> Plan:
        reach("index.list")
        listings = listings_of(self.sources, paths)
        with self.store.reading() as snapshot:
            stored = snapshot.documents(paths=paths)
        tally.problems += [problem for listing in listings for problem in listing.problems]
        names = {source.name for source in self.sources}
        return plan_changes(
            (stamp for listing in listings for stamp in listing.files),
            {key: document for key, document in stored.items() if key[0] in names},
            unlisted=[problem.path for problem in tally.problems],
        )

    def _read_bytes(self) -> int:
        return sum(source.read_bytes for source in self.sources if isinstance(source, GrowingSource))

    # --- text ------------------------------------------------------------------------------------

    def _index_text(self, plan: Plan, tally: Tally, deadline: Deadline, progress: ProgressCallback | None) -> None:
        tally.unchanged += plan.unchanged
        gone = {document.content_hash for document in plan.removed}
        work = [*((stamp, None) for stamp in plan.added), *plan.touched]
        for start in range(0, len(work), WRITTEN_AT_ONCE):
            some = work[start : start + WRITTEN_AT_ONCE]
            # A conversation is written in transactions of its own: it may be larger than memory.
            whole = all(stamp.source == "memory" for stamp, _ in some)
            with self.store.together() if whole else nullcontext():
                for done, (stamp, known) in enumerate(some, start + 1):
                    if deadline.passed:
                        tally.complete = False
                        return
                    self._take_in(stamp, known, gone, tally, deadline)
                    if progress:
                        progress(Progress("read", done, len(work)))
        self._remove(plan, tally, deadline)

    def _take_in(
        self, stamp: FileStamp, known: StoredDocument | None, gone: set[str], tally: Tally, deadline: Deadline
    ) -> None:
        source = next(source for source in self.sources if source.name == stamp.source)
        try:
            if stamp.source == "sessions" and isinstance(source, GrowingSource):  # the check costs 40 µs a note
                growth = GrowthRun(self.store, self.preparation, self._known_vectors)
                growth.take_in(source, stamp, known, gone=gone, tally=tally, deadline=deadline)
                return
            reach("index.read")
            document = source.read(stamp)
        except FileNotFoundError:
            return  # gone since it was listed: the next run sees that it is removed
        except OSError as error:
            tally.problems.append(Problem(stamp.path, error.strerror or str(error)))
            return
        self._put(document, known, gone, tally)

    def _put(self, document: Document, known: StoredDocument | None, gone: set[str], tally: Tally) -> None:
        stamp = trusted_stamp(document.stamp, now_ns=time.time_ns())
        stored = StoredDocument(stamp, document.content_hash, document.dated, document.private)
        if known and known.content_hash == document.content_hash:
            reach("index.touch")
            self.store.touch_documents([stored])
            tally.unchanged += 1
            return
        chunks = self.preparation.prepare(document)
        vectors = self._known_vectors([prepared.chunk.embedded_hash for prepared in chunks])
        reach("index.put")
        self.store.put_document(stored, chunks, vectors)
        tally.reused += len(vectors)
        if known:
            tally.changed += 1
        elif document.content_hash in gone:
            tally.renamed += 1
        else:
            tally.added += 1

    def _remove(self, plan: Plan, tally: Tally, deadline: Deadline) -> None:
        """Take out what is gone, after the rest: a renamed note has found its vectors by then."""
        for source in {document.stamp.source for document in plan.removed}:
            paths = [document.stamp.path for document in plan.removed if document.stamp.source == source]
            for start in range(0, len(paths), REMOVED_AT_ONCE):
                if deadline.passed:
                    tally.complete = False
                    return
                reach("index.remove")
                self.store.remove_documents(source, paths[start : start + REMOVED_AT_ONCE])
        tally.removed += len(plan.removed) - tally.renamed

    def _known_vectors(self, hashes: Sequence[str]) -> dict[str, Vector]:
        embedding = self._embedding()
        return embedding.known_vectors(hashes) if embedding else {}

    def _after_jobs(self, embedding: EmbeddingRun, tally: Tally) -> EmbeddingRun:
        """Do what there is to do about batch jobs; return the run that embeds the rest."""
        if self.batch is None:
            return embedding
        self.batch.step(self.store, embedding.embedder, self.cache, embedding.known_vectors, tally)
        return replace(embedding, left_alone=self.batch.left_alone(embedding.embedder))

    def _embedding(self) -> EmbeddingRun | None:
        return EmbeddingRun(self.store, self.embedder, self.cache, self.older_store) if self.embedder else None
