"""Files and a store in, the store brought up to date with the files out: first the text, then the vectors.

Text comes first so that keyword search finds everything at once, while embedding goes on where it stopped.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recollect.errors import BadVectorError, EmbedderError
from recollect.indexing.plan import plan_changes, trusted_stamp
from recollect.types import IndexReport, Problem, Progress, StoredDocument

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from recollect.indexing.plan import Plan
    from recollect.indexing.preparation import Preparation
    from recollect.protocols import Embedder, EmbeddingCache, Source, Store, Vector
    from recollect.types import (
        Document,
        FileStamp,
        PendingChunk,
        ProgressCallback,
    )

EMBED_BATCH = 32  # chunks a transaction: some seconds of work on a laptop, the most that an interruption costs
HURRIED_BATCH = 8  # when a deadline is near, ask the clock more often


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment after which no new piece of work is begun."""

    at: float | None = None  # time.monotonic(); None is never

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    @property
    def passed(self) -> bool:
        return self.at is not None and time.monotonic() >= self.at


NEVER = Deadline()


@dataclass(slots=True)
class _Tally:
    """Counts what a run does; turned into a frozen report at the end."""

    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0
    reused: int = 0
    unknown: int = 0
    complete: bool = True
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Indexer:
    """Brings one store up to date; without an embedder the vectors are left for later."""

    store: Store
    sources: Sequence[Source]
    preparation: Preparation
    embedder: Embedder | None = None
    cache: EmbeddingCache | None = None
    older_store: Store | None = None  # while rebuilding: its vectors of the same embedder need no new embedding

    def run(
        self,
        *,
        paths: Collection[str] | None = None,
        deadline: Deadline = NEVER,
        progress: ProgressCallback | None = None,
    ) -> IndexReport:
        """Do what is needed, one transaction a document, and report it; stops early at the deadline.

        With `paths` only those are looked at.
        """
        started = time.monotonic()
        tally = _Tally()
        if self.embedder:
            self.store.set_embedder(self.embedder.identity, self.embedder.quantization)
        plan = self._plan(paths, tally)
        self._index_text(plan, tally, deadline, progress)
        if self.embedder and tally.complete:
            self._embed_pending(self.embedder, tally, deadline, progress)
        if not plan.is_empty or tally.embedded:
            self.store.optimize()
        return self._report(tally, time.monotonic() - started)

    def _plan(self, paths: Collection[str] | None, tally: _Tally) -> Plan:
        listings = [source.list(paths) for source in self.sources]
        with self.store.reading() as snapshot:
            stored = snapshot.documents(paths=paths)
        tally.problems += [problem for listing in listings for problem in listing.problems]
        names = {source.name for source in self.sources}
        return plan_changes(
            (stamp for listing in listings for stamp in listing.files),
            {key: document for key, document in stored.items() if key[0] in names},
            unlisted=[problem.path for problem in tally.problems],
        )

    # --- text ------------------------------------------------------------------------------------

    def _index_text(self, plan: Plan, tally: _Tally, deadline: Deadline, progress: ProgressCallback | None) -> None:
        tally.unchanged += plan.unchanged
        gone = {document.content_hash for document in plan.removed}
        work = [*((stamp, None) for stamp in plan.added), *plan.touched]
        for done, (stamp, known) in enumerate(work):
            if deadline.passed:
                tally.complete = False
                return
            document = self._read(stamp, tally)
            if document is not None:
                self._put(document, known, gone, tally)
            if progress:
                progress(Progress("read", done + 1, len(work)))
        self._remove(plan, tally)

    def _read(self, stamp: FileStamp, tally: _Tally) -> Document | None:
        source = next(source for source in self.sources if source.name == stamp.source)
        try:
            return source.read(stamp)
        except FileNotFoundError:
            return None  # gone since it was listed: the next run sees that it is removed
        except OSError as error:
            tally.problems.append(Problem(stamp.path, error.strerror or str(error)))
            return None

    def _put(self, document: Document, known: StoredDocument | None, gone: set[str], tally: _Tally) -> None:
        stamp = trusted_stamp(document.stamp, now_ns=time.time_ns())
        stored = StoredDocument(stamp, document.content_hash, document.dated)
        if known and known.content_hash == document.content_hash:
            self.store.touch_documents([stored])
            tally.unchanged += 1
            return
        chunks = self.preparation.prepare(document)
        vectors = self._known_vectors([prepared.chunk.embedded_hash for prepared in chunks])
        self.store.put_document(stored, chunks, vectors)
        tally.reused += len(vectors)
        if known:
            tally.changed += 1
        elif document.content_hash in gone:
            tally.renamed += 1
        else:
            tally.added += 1

    def _remove(self, plan: Plan, tally: _Tally) -> None:
        """Take out what is gone, after the rest: a renamed note has found its vectors by then."""
        for source in {document.stamp.source for document in plan.removed}:
            paths = [document.stamp.path for document in plan.removed if document.stamp.source == source]
            self.store.remove_documents(source, paths)
        tally.removed += len(plan.removed) - tally.renamed

    # --- vectors ---------------------------------------------------------------------------------

    def _known_vectors(self, hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of texts embedded before: from the cache, this index, or the one it replaces."""
        known: dict[str, Vector] = {}
        if self.embedder is None:
            return known
        if self.cache and hashes:
            known.update(self.cache.get_many(self.embedder.identity, hashes))
        for store in (self.store, self.older_store):
            missing = [text_hash for text_hash in hashes if text_hash not in known]
            if store and missing:
                with store.reading() as snapshot:
                    known.update(snapshot.known_vectors(missing))
        return known

    def _embed_pending(
        self, embedder: Embedder, tally: _Tally, deadline: Deadline, progress: ProgressCallback | None
    ) -> None:
        with self.store.reading() as snapshot:
            total = snapshot.counts().pending
        batch_size = EMBED_BATCH if deadline.at is None else HURRIED_BATCH
        after, done = 0, 0
        while batch := self.store.pending(batch_size, after=after):
            if deadline.passed:
                tally.complete = False
                return
            after = batch[-1].id
            try:
                self._embed(embedder, batch, tally)
            except EmbedderError as error:  # the text is indexed by now: keyword search works, and the report says why
                tally.problems.append(Problem("embedder", f"{error.message}; {error.hint}".rstrip("; ")))
                tally.complete = False
                return
            done += len(batch)
            if progress:
                progress(Progress("embed", done, max(total, done)))

    def _embed(self, embedder: Embedder, batch: Sequence[PendingChunk], tally: _Tally) -> None:
        unknown = [chunk.id for chunk in batch if not embedder.knows(chunk.embedded_text)]
        self.store.skip_vectors(unknown)
        tally.unknown += len(unknown)
        batch = [chunk for chunk in batch if chunk.id not in unknown]
        known = self._known_vectors([chunk.embedded_hash for chunk in batch])
        texts = {chunk.embedded_hash: chunk.embedded_text for chunk in batch if chunk.embedded_hash not in known}
        fresh = self._embed_texts(embedder, texts, tally)
        if self.cache and fresh:
            self.cache.put_many(embedder.identity, fresh)
        vectors = {**known, **fresh}
        self.store.put_vectors({c.id: vectors[c.embedded_hash] for c in batch if c.embedded_hash in vectors})
        tally.embedded += len(fresh)
        tally.reused += sum(chunk.embedded_hash in known for chunk in batch)

    def _embed_texts(self, embedder: Embedder, texts: Mapping[str, str], tally: _Tally) -> dict[str, Vector]:
        """Embed all at once; if a vector comes out bad, one by one, so that a poisoned text costs only itself."""
        if not texts:
            return {}
        from recollect.embedding.checks import unit_rows  # imports NumPy, which keyword search does without

        dimensions = embedder.identity.dimensions
        try:
            rows = embedder.embed_documents(list(texts.values()))
            return dict(zip(texts, unit_rows(rows, count=len(texts), dimensions=dimensions), strict=True))
        except BadVectorError as error:
            if len(texts) == 1:
                tally.problems.append(Problem("", f"a chunk could not be embedded: {error.message}"))
                return {}
        vectors: dict[str, Vector] = {}
        for text_hash, text in texts.items():
            vectors |= self._embed_texts(embedder, {text_hash: text}, tally)
        return vectors

    def _report(self, tally: _Tally, seconds: float) -> IndexReport:
        with self.store.reading() as snapshot:
            pending = snapshot.counts().pending
        report = IndexReport(pending=pending, seconds=seconds, problems=tuple(tally.problems))
        return replace(
            report,
            added=tally.added,
            changed=tally.changed,
            renamed=tally.renamed,
            removed=tally.removed,
            unchanged=tally.unchanged,
            embedded=tally.embedded,
            reused=tally.reused,
            unknown=tally.unknown,
            complete=tally.complete,
        )
