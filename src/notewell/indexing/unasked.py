"""Embedding that costs money while nobody is there to be asked: what waits in, consent or a note on its price out.

A search, a watcher or an agent's session keeps the index fresh by itself. What that would cost above the limit of the
settings is left to `notewell index`: those chunks wait, and words find them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from notewell.chunking.fitting import QUARTERS, weigh
from notewell.errors import IndexCorruptError
from notewell.indexing.building import REASON_PROFILE
from notewell.indexing.verification import all_chunks
from notewell.indexing.waited_for import WaitedFor
from notewell.types import Chunk, IndexReport

if TYPE_CHECKING:
    from notewell.indexing.batch_run import Known
    from notewell.indexing.deadline import Deadline
    from notewell.indexing.tally import Tally
    from notewell.indexing.update import IndexUpdate
    from notewell.indexing.waited_for import BatchStep
    from notewell.protocols import Embedder, EmbeddingCache, Snapshot, Store
    from notewell.types import EmbedderIdentity

HELD_BACK = "held_back"  # meta key of an index: the chunks that wait for somebody to agree to their price
PAGE = 500  # chunks that are weighed at once
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """Chunks without a vector: how many there are, what they weigh, and up to which id they were counted."""

    identity: str  # whose vectors they wait for
    pending: int = 0  # chunks that were looked at
    chunks: int = 0  # of those, how many would have to be embedded
    quarters: int = 0  # their weight in quarters of a token
    last_id: int = 0

    @classmethod
    def remembered(cls, snapshot: Snapshot, identity: str) -> Waiting:
        """Return what an earlier run counted for this embedder; nothing when there was none."""
        written = snapshot.meta(HELD_BACK)
        found = cls(**json.loads(written)) if written else cls(identity)
        return found if found.identity == identity else cls(identity)

    @property
    def tokens(self) -> int:
        return self.quarters // QUARTERS


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """What may be spent without asking, and the price of a million tokens of the embedder in use."""

    limit_usd: float
    usd_per_million: float

    def note(self, waiting: Waiting) -> str:
        """Say what waits and what it would cost; empty when it costs little enough to go unasked."""
        usd = self.usd_per_million * waiting.tokens / _MILLION
        if usd <= self.limit_usd:
            return ""
        return (
            f"{waiting.chunks:,} chunks wait for their vectors and are found by words: embedding them would cost about "
            f"${usd:,.2f}, more than cost.confirm_above_usd allows without asking; run `notewell index`"
        )

    def note_on(self, snapshot: Snapshot, identity: EmbedderIdentity) -> str:
        """Say what an index holds back, as an earlier run found it; empty when nothing, or when that is out of date."""
        pending = snapshot.counts().pending
        waiting = Waiting.remembered(snapshot, str(identity)) if pending else None
        return self.note(waiting) if waiting and waiting.pending == pending else ""

    def note_on_switch(self, snapshot: Snapshot, embedder: Embedder, cache: EmbeddingCache | None) -> str:
        """Say what it would cost to embed everything an index holds by another embedder; empty when little enough."""
        weights = {
            chunk.embedded_hash: weigh(chunk.embedded_text)
            for chunk in (Chunk(c.first_line, c.last_line, c.text, c.context) for c in all_chunks(snapshot))
        }
        known = cache.known(embedder.identity, weights) if cache else set()
        unknown = [weight for text_hash, weight in weights.items() if text_hash not in known]
        return self.note(Waiting(str(embedder.identity), len(weights), len(unknown), sum(unknown)))


class WithoutAsking:
    """Implements `BatchStep`: leaves every text without a vector alone if all of them cost more than the limit."""

    def __init__(self, limit: SpendingLimit, inner: BatchStep) -> None:
        self._limit = limit
        self._inner = inner
        self._holds_back = False

    def step(self, store: Store, embedder: Embedder, cache: EmbeddingCache | None, known: Known, tally: Tally) -> None:
        self._inner.step(store, embedder, cache, known, tally)
        waiting = self._weighed(store, embedder, cache)
        note = self._limit.note(waiting)
        self._holds_back = bool(note)
        if note:
            store.write_meta({HELD_BACK: json.dumps(asdict(waiting))})
            tally.notes.append(note)

    def left_alone(self, embedder: Embedder) -> Callable[[str], bool]:
        return (lambda _: True) if self._holds_back else self._inner.left_alone(embedder)

    def _weighed(self, store: Store, embedder: Embedder, cache: EmbeddingCache | None) -> Waiting:
        """Weigh what waits. What an earlier run weighed is not weighed again, unless some of it is gone."""
        identity = str(embedder.identity)
        with store.reading() as snapshot:
            pending, before = snapshot.counts().pending, Waiting.remembered(snapshot, identity)
        waiting = self._go_on(before, store, embedder, cache)
        return waiting if waiting.pending == pending else self._go_on(Waiting(identity), store, embedder, cache)

    def _go_on(self, waiting: Waiting, store: Store, embedder: Embedder, cache: EmbeddingCache | None) -> Waiting:
        pending, chunks, quarters, last_id = waiting.pending, waiting.chunks, waiting.quarters, waiting.last_id
        paid_for = self._inner.left_alone(embedder)
        while page := store.pending(PAGE, after=last_id):
            hashes = {chunk.embedded_hash for chunk in page}
            known = cache.known(embedder.identity, hashes) if cache else set()
            new = [
                chunk
                for chunk in page
                if not (chunk.embedded_hash in known or paid_for(chunk.embedded_hash))
                and embedder.knows(chunk.embedded_text)
            ]
            pending, chunks, last_id = pending + len(page), chunks + len(new), page[-1].id
            quarters += sum(weigh(chunk.embedded_text) for chunk in new)
        return Waiting(waiting.identity, pending, chunks, quarters, last_id)


def within_limit(update: IndexUpdate, limit: SpendingLimit) -> IndexUpdate:
    """Return the update as a search may run it: where it is known that everything that waits is too dear, text only."""
    embedder = update.embedder
    if embedder and _read(update, lambda snapshot: limit.note_on(snapshot, embedder.identity)):
        return replace(update, embedder=None)
    return replace(update, batch=WithoutAsking(limit, WaitedFor(update.folder.path)))


def run_without_asking(
    update: IndexUpdate, limit: SpendingLimit, *, paths: Collection[str] | None, deadline: Deadline
) -> IndexReport:
    """Bring the index up to date; what would cost more than the limit waits.

    Vectors of another embedder stay in use if it is too dear to replace them.
    """
    note = _read(update, lambda snapshot: _note_on_switch(snapshot, update, limit))
    if not note:
        guarded = replace(update, batch=WithoutAsking(limit, WaitedFor(update.folder.path)))
        return guarded.run(paths=paths, deadline=deadline, tidy=True)
    with update.live.use() as store:
        reason = update.rebuild_reason(store) if store else ""
    if reason == REASON_PROFILE:
        return IndexReport(complete=False, notes=(f"the index is out of date ({reason})", note))
    report = replace(update, embedder=None).run(paths=paths, deadline=deadline, tidy=True)
    return replace(report, notes=(*report.notes, note))


def _note_on_switch(snapshot: Snapshot, update: IndexUpdate, limit: SpendingLimit) -> str:
    if update.embedder is None or not snapshot.counts().embedded or snapshot.embedder() == update.embedder.identity:
        return ""
    return limit.note_on_switch(snapshot, update.embedder, update.cache)


def _read(update: IndexUpdate, read: Callable[[Snapshot], str]) -> str:
    """Return what is read of the live index; nothing where there is none or it is damaged, which the update mends."""
    try:
        with update.live.use() as store:
            if store is None:
                return ""
            with store.reading() as snapshot:
                return read(snapshot)
    except IndexCorruptError:
        return ""
