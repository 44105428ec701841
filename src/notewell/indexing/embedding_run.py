"""Gives chunks without a vector their vectors, from the cache or from the embedder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
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

EMBED_BATCH = 32  # chunks a transaction: some seconds of work on a laptop, the most that an interruption costs
HURRIED_BATCH = 8  # when a deadline is near, ask the clock more often
LOOKED_UP_AT_ONCE = 256  # chunks; each look into cache and index takes as long as several of them
REMEMBERED_AT_ONCE = 256  # vectors put into the cache in one transaction: some MB of memory

Excluded = Callable[[str], bool]  # takes the hash of a text that may have to stay pending


def pending_pages(store: ReadableStore, *, after: int = 0) -> Iterator[Sequence[PendingChunk]]:
    """Yield the chunks without a vector whose id is above `after`, some at a time."""
    while page := store.pending(LOOKED_UP_AT_ONCE, after=after):
        yield page
        if len(page) < LOOKED_UP_AT_ONCE:
            return
        after = page[-1].id


@dataclass(frozen=True, slots=True)
class EmbeddingRun:
    """Gives one store the vectors of one embedder."""

    store: Store
    embedder: Embedder
    cache: EmbeddingCache | None = None
    older_store: Store | None = None  # while rebuilding: its vectors of the same embedder need no new embedding
    _unknown: set[str] = field(default_factory=set, init=False)  # looked up in vain, until a vector is stored

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
        embedder = self.embedder
        try:
            steps = (
                self._streamed(embedder, tally, excluded, deadline)
                if isinstance(embedder, StreamingEmbedder)
                else self._batched(tally, excluded, deadline)
            )
            for done in steps:
                if progress:
                    progress(Progress("embed", done, max(total, done)))
        except EmbedderError as error:  # the text is indexed by now: keyword search works, and the report says why
            tally.problems.append(Problem(EMBEDDER, f"{error.message}; {error.hint}".rstrip("; ")))
            tally.complete = False

    def _batched(self, tally: Tally, excluded: Excluded, deadline: Deadline) -> Iterator[int]:
        """Embed batch after batch; yield how many chunks are done."""
        batch_size = EMBED_BATCH if deadline.at is None else HURRIED_BATCH
        done = 0
        with self._remembering() as remember:
            for page in pending_pages(self.store):
                chunks, known = self._looked_up(page, tally, excluded)
                waiting = [chunk for chunk in chunks if chunk.embedded_hash not in known]
                self._store([chunk for chunk in chunks if chunk.embedded_hash in known], known)
                done += len(page) - len(waiting)
                yield done
                for start in range(0, len(waiting), batch_size):
                    if deadline.passed:
                        tally.complete = False
                        return
                    batch = waiting[start : start + batch_size]
                    self._embed(batch, known, remember, tally)
                    done += len(batch)
                    yield done

    def _streamed(
        self, embedder: StreamingEmbedder, tally: Tally, excluded: Excluded, deadline: Deadline
    ) -> Iterator[int]:
        """Feed the embedder without pause and store vectors as they come in; yield how many chunks are done."""
        arrivals = _Arrivals()

        def texts() -> Iterator[str]:
            for page in pending_pages(self.store):
                if deadline.passed:
                    return
                chunks, known = self._looked_up(page, tally, excluded)
                self._store([chunk for chunk in chunks if chunk.embedded_hash in known], known)
                arrivals.done += len(page) - len(chunks) + sum(chunk.embedded_hash in known for chunk in chunks)
                yield from arrivals.expect(chunk for chunk in chunks if chunk.embedded_hash not in known)

        hurried = deadline.at is not None
        is_over = None if deadline is NEVER else lambda: deadline.passed
        with (
            self._remembering() as remember,
            closing(embedder.stream_documents(texts(), is_over=is_over, hurried=hurried)) as parts,
        ):
            for part in parts:
                fresh, chunks = arrivals.arrived(part)
                self._store(chunks, fresh)
                remember(fresh)
                tally.embedded += len(fresh)
                tally.reused += len(chunks) - len(fresh)
                for refused, reason in arrivals.failed(part):
                    tally.problems += self._problems(refused, reason)
                yield arrivals.done
        if arrivals.split:
            what = "1 chunk was" if arrivals.split == 1 else f"{arrivals.split} chunks were"
            model = self.embedder.identity.model
            tally.notes.append(f"{what} longer than {model} takes: embedded in pieces, the vector is their mean")
        if deadline.passed:
            tally.complete = False

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
        """Yield a way to put vectors into the cache that writes many at once, the last ones at the end of the block.

        A vector that is in the index is not lost with a process that is killed: the cache may come later.
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

    def _embed(
        self,
        batch: Sequence[PendingChunk],
        known: dict[str, Vector],
        remember: Callable[[Mapping[str, Vector]], None],
        tally: Tally,
    ) -> None:
        """Embed and store one batch; `known` has the vectors of its page and grows."""
        tally.reused += sum(chunk.embedded_hash in known for chunk in batch)
        texts = {chunk.embedded_hash: chunk.embedded_text for chunk in batch if chunk.embedded_hash not in known}
        fresh = self._embed_texts(texts, batch, tally)
        known |= fresh
        remember(fresh)  # first: a full disk that refuses the index may have room for the cache
        self._store(batch, known)
        tally.embedded += len(fresh)

    def _embed_texts(self, texts: Mapping[str, str], batch: Sequence[PendingChunk], tally: Tally) -> dict[str, Vector]:
        """Embed all at once; if a vector is invalid, one by one, so that a bad text costs only itself."""
        if not texts:
            return {}
        from notewell.embedding.unit_vectors import unit_rows  # imports NumPy, which keyword search does without

        dimensions = self.embedder.identity.dimensions
        try:
            rows = self.embedder.embed_documents(list(texts.values()))
            return dict(zip(texts, unit_rows(rows, count=len(texts), dimensions=dimensions), strict=True))
        except BadVectorError as error:
            if len(texts) == 1:
                refused = [chunk.id for chunk in batch if chunk.embedded_hash in texts]
                tally.problems += self._problems(refused, error.message)
                return {}
        vectors: dict[str, Vector] = {}
        for text_hash, text in texts.items():
            vectors |= self._embed_texts({text_hash: text}, batch, tally)
        return vectors


@dataclass(slots=True)
class _Arrivals:
    """The texts sent to a streaming embedder, by their position in the stream, with the chunks that need each vector.

    Chunks with the same text share one vector, so that no text is embedded twice.
    """

    done: int = 0  # chunks that are no longer pending
    split: int = 0  # texts that the embedder had to cut in pieces
    _sent: int = 0
    _waiting: dict[int, list[PendingChunk]] = field(default_factory=dict)
    _positions: dict[str, int] = field(default_factory=dict)  # by embedded hash

    def expect(self, chunks: Iterable[PendingChunk]) -> Iterator[str]:
        """Yield the texts to be sent, each once."""
        for chunk in chunks:
            position = self._positions.get(chunk.embedded_hash)
            if position is not None:
                self._waiting[position].append(chunk)
                continue
            self._positions[chunk.embedded_hash] = self._sent
            self._waiting[self._sent] = [chunk]
            self._sent += 1
            yield chunk.embedded_text

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
