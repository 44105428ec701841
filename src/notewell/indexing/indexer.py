"""Files and a store in, the store brought up to date with the files out: first the text, then the vectors.

Text comes first so that keyword search finds everything at once, while embedding goes on where it stopped.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from notewell.files.faults import reach
from notewell.indexing.deadline import NEVER, Deadline
from notewell.indexing.embedding_run import EmbeddingRun
from notewell.indexing.listing import listings_of
from notewell.indexing.plan import plan_changes
from notewell.indexing.tally import Tally
from notewell.indexing.text_run import TextRun
from notewell.protocols import GrowingSource

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from notewell.indexing.plan import Plan
    from notewell.indexing.preparation import Preparation
    from notewell.indexing.waited_for import BatchStep
    from notewell.protocols import Embedder, EmbeddingCache, Source, Store, Vector
    from notewell.types import IndexReport, ProgressCallback

TIDIED_IN_PASSING = 16  # documents; tidying up after more of them may take longer than a search can wait


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
        TextRun(self.store, self.sources, self.preparation, self._known_vectors, tally, deadline).run(plan, progress)
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
