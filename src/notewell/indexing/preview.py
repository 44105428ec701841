"""Previews what an indexing run would do and cost, without writing anything."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notewell.chunking import chunk_document
from notewell.chunking.lines import QUARTERS, weigh
from notewell.indexing.embedding_run import pending_pages
from notewell.indexing.plan import SyncPolicy, find_changes
from notewell.indexing.rebuild import rebuild_reason
from notewell.protocols import GrowingSource
from notewell.reports import IndexPreview
from notewell.types import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from notewell.indexing.plan import Plan
    from notewell.indexing.preparation import Preparation
    from notewell.protocols import Embedder, EmbeddingCache, ReadableStore, Source
    from notewell.types import Chunk, CostEstimate, FileStamp, StoredDocument


@dataclass(frozen=True, slots=True)
class _Read:
    """A file that would be indexed, without its text."""

    path: str
    known: StoredDocument | None
    content_hash: str
    weights: tuple[tuple[str, int], ...]  # a chunk: its hash and its weight in quarters of a token

    @property
    def is_changed(self) -> bool:
        return self.known is not None and self.known.content_hash != self.content_hash


@dataclass(frozen=True, slots=True)
class Preview:
    """What a preview looks at."""

    store: ReadableStore | None
    sources: Sequence[Source]
    preparation: Preparation
    embedder: Embedder | None
    cache: EmbeddingCache | None
    estimate: Callable[[int], CostEstimate] | None = None  # what it costs to embed so many tokens

    def run(self, *, paths: Collection[str] | None = None, check: bool = False, force: bool = False) -> IndexPreview:
        """Read and chunk what changed, or what changed of `paths`, and count the vectors that are known.

        `check` reads every file, to find changes that size and times do not show; `force` previews a rebuild.
        """
        reason = self._rebuild_reason(force=force)
        policy = SyncPolicy(paths=None if reason else paths, check=check)
        if self.store is None or reason:
            changes, pending = find_changes(self.sources, None, policy), 0
        else:
            with self.store.reading() as snapshot:
                changes = find_changes(self.sources, snapshot, policy)
                pending = snapshot.counts().pending
        plan, problems = changes.plan, list(changes.problems)
        read = self._read_all(plan, problems)
        new = [each for each in read if each.known is None]
        changed = [each for each in read if each.is_changed]
        weights = [weight for each in (*new, *changed) for weight in each.weights]
        known = self._known({text_hash for text_hash, _ in weights})
        unknown = self._unknown_texts(weights, known, waiting=bool(pending))
        return IndexPreview(
            added=tuple(each.path for each in new),
            changed=tuple(each.path for each in changed),
            removed=tuple(document.stamp.path for document in plan.removed),
            unchanged=plan.unchanged + len(read) - len(new) - len(changed),
            chunks=len(weights),
            tokens=sum(weight for _, weight in weights) // QUARTERS,
            known=sum(text_hash in known for text_hash, _ in weights),
            pending=pending,
            rebuild_reason=reason,
            problems=tuple(problems),
            to_embed=len(unknown),
            cost=self.estimate(sum(unknown.values()) // QUARTERS) if self.estimate else None,
        )

    # --- reading ---------------------------------------------------------------------------------

    def _rebuild_reason(self, *, force: bool) -> str:
        """Return why the index would be rebuilt; empty when it would be updated or created."""
        if self.store is None or force:
            return "requested" if self.store else ""
        with self.store.reading() as snapshot:
            return rebuild_reason(snapshot, self.preparation.profile, self.embedder)

    def _read_all(self, plan: Plan, problems: list[Problem]) -> list[_Read]:
        by_name = {source.name: source for source in self.sources}
        read: list[_Read] = []
        for stamp, known in (*((stamp, None) for stamp in plan.added), *plan.touched):
            source = by_name[stamp.source]
            try:
                if isinstance(source, GrowingSource):
                    read.append(self._read_on(source, stamp, known, problems))
                else:
                    read.append(self._read_whole(source, stamp, known))
            except OSError as error:
                problems.append(Problem(stamp.path, error.strerror or str(error)))
        return read

    def _read_whole(self, source: Source, stamp: FileStamp, known: StoredDocument | None) -> _Read:
        document = source.read(stamp)
        rules = self.preparation
        chunks: Sequence[Chunk] = ()
        if known is None or known.content_hash != document.content_hash:
            chunks = chunk_document(document, style=rules.style, tokens=rules.tokens, overlap=rules.overlap)
        return _Read(stamp.path, known, document.content_hash, _weighed(chunks))

    def _read_on(
        self, source: GrowingSource, stamp: FileStamp, known: StoredDocument | None, problems: list[Problem]
    ) -> _Read:
        """Read what was appended to a conversation, as an indexing run would."""
        cursor = self._cursor(known) if known else None
        weights: list[tuple[str, int]] = []
        with closing(source.read_on(stamp, cursor)) as pieces:
            for piece in pieces:
                weights += _weighed(chunk for each in piece.lines for chunk in self.preparation.chunk_message(each))
                problems += piece.problems
        return _Read(stamp.path, known, piece.content_hash, tuple(weights))

    def _cursor(self, known: StoredDocument) -> str | None:
        if self.store is None:
            return None
        with self.store.reading() as snapshot:
            return snapshot.cursor(known.stamp.source, known.stamp.path)

    # --- vectors ---------------------------------------------------------------------------------

    def _known(self, hashes: set[str]) -> set[str]:
        """Return the texts with a vector in the cache or the index."""
        if self.embedder is None or not hashes:
            return set()
        known = self.cache.known(self.embedder.identity, hashes) if self.cache else set()
        if self.store:
            with self.store.reading() as snapshot:
                if snapshot.embedder() == self.embedder.identity:
                    known |= set(snapshot.known_vectors(hashes - known))
        return known

    def _unknown_texts(self, weights: Sequence[tuple[str, int]], known: set[str], *, waiting: bool) -> dict[str, int]:
        """Return the weight of each text that would be embedded."""
        if self.embedder is None:
            return {}
        unknown = {text_hash: weight for text_hash, weight in weights if text_hash not in known}
        if waiting:
            assert self.store is not None
            for chunks in pending_pages(self.store):  # some may be of files that have changed since
                page = {chunk.embedded_hash: weigh(chunk.embedded_text) for chunk in chunks}
                cached = self._known(set(page) - unknown.keys())
                unknown |= {text_hash: weight for text_hash, weight in page.items() if text_hash not in cached}
        return unknown


def _weighed(chunks: Iterable[Chunk]) -> tuple[tuple[str, int], ...]:
    return tuple((chunk.embedded_hash, weigh(chunk.embedded_text)) for chunk in chunks)
