"""Gives chunks without a vector their vectors, from the cache or from the embedder."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from notewell.errors import BadVectorError, EmbedderError
from notewell.files.faults import reach
from notewell.indexing.plan import EMBEDDER, NEVER, Deadline
from notewell.protocols import StreamingEmbedder
from notewell.types import Citation, Problem, Progress

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from notewell.indexing.indexer import Tally
    from notewell.protocols import EmbeddedPart, Embedder, EmbeddingCache, ReadableStore, Store, Vector
    from notewell.types import PendingChunk, ProgressCallback

EMBED_BATCH = 32  # chunks per transaction: a few seconds on a laptop, which is what an interruption costs
HURRIED_BATCH = 8  # with a deadline, check the clock more often
LOOKED_UP_AT_ONCE = 256  # chunks; a lookup in cache and index has a cost of its own
REMEMBERED_AT_ONCE = 256  # vectors per transaction of the cache: a few MB of memory

Excluded = Callable[[str], bool]  # takes the hash of a text; true: it stays pending


def pending_pages(store: ReadableStore, *, after: int = 0) -> Iterator[Sequence[PendingChunk]]:
    """Yield the chunks without a vector after this id, a page at a time."""
    while page := store.pending(LOOKED_UP_AT_ONCE, after=after):
        yield page
        if len(page) < LOOKED_UP_AT_ONCE:
            return
        after = page[-1].id


@dataclass(frozen=True, slots=True)
class EmbeddingRun:
    """Embeds the pending chunks of one store with one embedder."""

    store: Store
    embedder: Embedder
    cache: EmbeddingCache | None = None
    older_store: Store | None = None  # while rebuilding: the index in use, with vectors of the same embedder
    _unknown: set[str] = field(default_factory=set, init=False)  # known to have no vector, until one is stored

    def known_vectors(self, hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of texts embedded before: from the cache, this index, or the one it replaces."""
        known: dict[str, Vector] = {}
        reach("embed.known")
        if self.cache and hashes:
            known.update(self.cache.get_many(self.embedder.identity, hashes))
        for store in (self.store, self.older_store):
            missing = [text_hash for text_hash in hashes if text_hash not in known]
            if store and missing:
                with store.reading() as snapshot:
                    known.update(snapshot.known_vectors(missing))
        if len(self._unknown) < LOOKED_UP_AT_ONCE:
            self._unknown.update(text_hash for text_hash in hashes if text_hash not in known)
        return known

    def run(
        self,
        tally: Tally,
        excluded: Excluded,
        *,
        deadline: Deadline = NEVER,
        progress: ProgressCallback | None = None,
    ) -> None:
        """Embed what is pending, one transaction a batch; stops early at the deadline or when the embedder fails."""
        total = 0
        if progress:
            with self.store.reading() as snapshot:
                total = snapshot.counts().pending
        arrivals = _Arrivals()

        def report() -> None:
            if progress:
                progress(Progress("embed", arrivals.done, max(total, arrivals.done)))

        texts = self._texts(arrivals, tally, excluded, deadline, report)
        try:
            with self._remembering() as remember, closing(self._parts(texts, deadline)) as parts:
                for part in parts:
                    fresh, chunks = arrivals.arrived(part)
                    remember(fresh)  # first: a full disk that refuses the index may have room for the cache
                    self._store(chunks, fresh)
                    tally.embedded += len(fresh)
                    tally.reused += len(chunks) - len(fresh)
                    for refused, reason in arrivals.failed(part):
                        tally.problems += self._problems(refused, reason)
                    report()
        except EmbedderError as error:  # the text is indexed by now: keyword search works, and the report says why
            tally.problems.append(Problem(EMBEDDER, f"{error.message}; {error.hint}".rstrip("; ")))
        tally.complete = tally.complete and arrivals.are_all
        if arrivals.split:
            what = "1 chunk was" if arrivals.split == 1 else f"{arrivals.split} chunks were"
            model = self.embedder.identity.model
            tally.notes.append(f"{what} too long for {model}: embedded in pieces, with the mean of their vectors")

    def _texts(
        self,
        arrivals: _Arrivals,
        tally: Tally,
        excluded: Excluded,
        deadline: Deadline,
        report: Callable[[], None],
    ) -> Iterator[str]:
        """Yield the pending texts that must be embedded; the others get the vectors that are known."""
        for page in pending_pages(self.store):
            if deadline.passed:
                return
            chunks, known = self._looked_up(page, tally, excluded)
            found = [chunk for chunk in chunks if chunk.embedded_hash in known]
            self._store(found, known)
            if settled := len(page) - len(chunks) + len(found):
                arrivals.done += settled
                report()
            yield from arrivals.expect(chunk for chunk in chunks if chunk.embedded_hash not in known)
        arrivals.all_sent = True

    def _parts(self, texts: Iterator[str], deadline: Deadline) -> Generator[EmbeddedPart]:
        """Yield the vectors of the texts as they are made."""
        hurried = deadline.at is not None
        if isinstance(self.embedder, StreamingEmbedder):
            is_over = None if deadline is NEVER else lambda: deadline.passed
            yield from self.embedder.stream_documents(texts, is_over=is_over, hurried=hurried)
            return
        position = 0
        while not deadline.passed and (batch := list(islice(texts, HURRIED_BATCH if hurried else EMBED_BATCH))):
            yield self._embedded(batch, position)
            position += len(batch)

    def _embedded(self, texts: Sequence[str], first: int) -> EmbeddedPart:
        """Embed all at once; if a vector is invalid, one by one, so that a bad text costs only itself."""
        import numpy as np  # keyword search does without it

        from notewell.embedding.unit_vectors import unit_rows
        from notewell.protocols import EmbeddedPart

        dimensions = self.embedder.identity.dimensions
        try:
            rows = unit_rows(self.embedder.embed_documents(texts), count=len(texts), dimensions=dimensions)
            return EmbeddedPart(range(first, first + len(texts)), rows)
        except BadVectorError as error:
            if len(texts) == 1:
                return EmbeddedPart((), np.empty((0, dimensions), np.float32), {first: error.message})
        parts = [self._embedded([text], position) for position, text in enumerate(texts, first)]
        return EmbeddedPart(
            [position for part in parts for position in part.positions],
            np.concatenate([part.vectors for part in parts]),
            {position: reason for part in parts for position, reason in part.failed.items()},
        )

    def _looked_up(
        self, batch: Sequence[PendingChunk], tally: Tally, excluded: Excluded
    ) -> tuple[Sequence[PendingChunk], dict[str, Vector]]:
        """Return the chunks in a script that the embedder supports, and those of their vectors that are known."""
        unknown = {chunk.id for chunk in batch if not self.embedder.knows(chunk.embedded_text)}
        self.store.skip_vectors(unknown)
        tally.unknown += len(unknown)
        batch = [chunk for chunk in batch if chunk.id not in unknown]
        asked = [chunk.embedded_hash for chunk in batch if chunk.embedded_hash not in self._unknown]
        known = self.known_vectors(asked) if asked else {}
        tally.reused += sum(chunk.embedded_hash in known for chunk in batch)
        batch = [chunk for chunk in batch if chunk.embedded_hash in known or not excluded(chunk.embedded_hash)]
        return batch, known

    @contextmanager
    def _remembering(self) -> Iterator[Callable[[Mapping[str, Vector]], None]]:
        """Yield a function that puts vectors into the cache, many at once; the rest is written at the end of the block.

        The cache may lag behind: vectors in the index survive a kill.
        """
        waiting: dict[str, Vector] = {}

        def remember(fresh: Mapping[str, Vector]) -> None:
            waiting.update(fresh)
            if len(waiting) >= REMEMBERED_AT_ONCE:
                self._remember(waiting)
                waiting.clear()

        try:
            yield remember
        finally:
            self._remember(waiting)

    def _remember(self, fresh: Mapping[str, Vector]) -> None:
        if self.cache and fresh:
            reach("embed.remember")
            self.cache.put_many(self.embedder.identity, fresh)

    def _store(self, chunks: Sequence[PendingChunk], vectors: Mapping[str, Vector]) -> None:
        if chunks:
            self._unknown.clear()
            reach("embed.store")
            self.store.put_vectors({c.id: vectors[c.embedded_hash] for c in chunks if c.embedded_hash in vectors})

    def _problems(self, chunk_ids: Collection[int], reason: str) -> Iterator[Problem]:
        with self.store.reading() as snapshot:
            chunks = snapshot.chunks(chunk_ids)
        for chunk in chunks.values():
            yield Problem(str(Citation(chunk.path, chunk.first_line)), f"a chunk could not be embedded: {reason}")


@dataclass(slots=True)
class _Arrivals:
    """The texts that are being embedded, by their position, with the chunks that wait for each vector.

    Chunks with the same text share one vector, so that no text is embedded twice.
    """

    done: int = 0  # chunks that are no longer pending
    all_sent: bool = False
    split: int = 0  # texts that the embedder had to cut in pieces
    _sent: int = 0
    _waiting: dict[int, list[PendingChunk]] = field(default_factory=dict)
    _positions: dict[str, int] = field(default_factory=dict)  # by embedded hash

    @property
    def are_all(self) -> bool:
        """Whether no chunk waits any more."""
        return self.all_sent and not self._waiting

    def expect(self, chunks: Iterable[PendingChunk]) -> list[str]:
        """Return the texts to be sent, each once."""
        texts = []
        for chunk in chunks:
            position = self._positions.setdefault(chunk.embedded_hash, self._sent)
            if position == self._sent:
                self._sent += 1
                texts.append(chunk.embedded_text)
            self._waiting.setdefault(position, []).append(chunk)
        return texts

    def arrived(self, part: EmbeddedPart) -> tuple[dict[str, Vector], list[PendingChunk]]:
        """Return the vectors by embedded hash, and the chunks they are for."""
        fresh: dict[str, Vector] = {}
        chunks: list[PendingChunk] = []
        for position, vector in zip(part.positions, part.vectors, strict=True):
            waiting = self._taken(position)
            fresh[waiting[0].embedded_hash] = vector
            chunks += waiting
        self.split += len(part.split)
        return fresh, chunks

    def failed(self, part: EmbeddedPart) -> Iterator[tuple[list[int], str]]:
        """Yield the chunks that get no vector, and why."""
        for position, reason in part.failed.items():
            yield [chunk.id for chunk in self._taken(position)], reason

    def _taken(self, position: int) -> list[PendingChunk]:
        waiting = self._waiting.pop(position)
        del self._positions[waiting[0].embedded_hash]
        self.done += len(waiting)
        return waiting
