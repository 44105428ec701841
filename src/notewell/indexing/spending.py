"""Limits what embedding in the background may cost, where nobody can confirm it.

If embedding the pending chunks would cost more than the limit, they stay pending until `notewell index`; keyword search
finds them meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from notewell.embedding.prices import price_of
from notewell.types import embedded_text

if TYPE_CHECKING:
    from notewell.indexing.embedding_run import Excluded
    from notewell.protocols import Embedder, EmbeddingCache, Snapshot, Store
    from notewell.settings import Settings
    from notewell.types import EmbedderIdentity

HELD_BACK = "held_back"  # meta key of an index: the cost of what exceeds the limit
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class PendingCost:
    """The number and weight of the chunks without a vector, up to an id."""

    identity: str  # of the embedder
    pending: int = 0
    chunks: int = 0  # of those, the ones without a known vector
    quarters: int = 0  # their weight in quarters of a token
    last_id: int = 0

    @classmethod
    def remembered(cls, snapshot: Snapshot, identity: str) -> PendingCost:
        """Return what an earlier run counted for this embedder, or zero."""
        written = snapshot.meta(HELD_BACK)
        found = cls(**json.loads(written)) if written else cls(identity)
        return found if found.identity == identity else cls(identity)

    @property
    def tokens(self) -> int:
        from notewell.chunking.lines import QUARTERS

        return self.quarters // QUARTERS


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """The spending limit and the price of the embedder in use."""

    limit_usd: float
    usd_per_million: float

    @classmethod
    def of(cls, embedder: Embedder | None, settings: Settings) -> SpendingLimit | None:
        """Return the limit for an embedder; None if it is free, or its price unknown."""
        usd_per_million = price_of(embedder, settings).usd_per_million if embedder else None
        return cls(settings.cost.confirm_above_usd, usd_per_million) if usd_per_million else None

    def note(self, cost: PendingCost) -> str:
        """Return a note on chunks that would cost too much; empty when they are within the limit."""
        usd = self.usd_per_million * cost.tokens / _MILLION
        if usd <= self.limit_usd:
            return ""
        return (
            f"{cost.chunks:,} chunks have no vector yet (keyword search finds them): embedding them would cost about "
            f"${usd:,.2f}, more than cost.confirm_above_usd; run `notewell index`"
        )

    def remembered_note(self, snapshot: Snapshot, identity: EmbedderIdentity) -> str:
        """Return the note of an earlier run; empty when there was none, or when it is out of date."""
        pending = snapshot.counts().pending
        cost = PendingCost.remembered(snapshot, str(identity)) if pending else None
        return self.note(cost) if cost and cost.pending == pending else ""

    def note_on_switch(self, snapshot: Snapshot, embedder: Embedder, cache: EmbeddingCache | None) -> str:
        """Return a note if replacing the vectors of another embedder exceeds the limit; otherwise nothing."""
        if not snapshot.counts().embedded or snapshot.embedder() == embedder.identity:
            return ""
        from notewell.chunking.lines import weigh
        from notewell.indexing.verification import all_chunks

        weights = {
            chunk.embedded_hash: weigh(embedded_text(chunk.context, chunk.text)) for chunk in all_chunks(snapshot)
        }
        known = cache.known(embedder.identity, weights) if cache else set()
        unknown = [weight for text_hash, weight in weights.items() if text_hash not in known]
        return self.note(PendingCost(str(embedder.identity), len(weights), len(unknown), sum(unknown)))

    def note_on_pending(
        self, store: Store, embedder: Embedder, cache: EmbeddingCache | None, paid_for: Excluded
    ) -> str:
        """Return a note if embedding the pending chunks exceeds the limit; otherwise nothing.

        The sum is stored, so that the next run weighs only newer chunks, unless some were removed.
        """
        identity = str(embedder.identity)
        with store.reading() as snapshot:
            pending, before = snapshot.counts().pending, PendingCost.remembered(snapshot, identity)
        cost = _weighed(before, store, embedder, cache, paid_for)
        if cost.pending != pending:
            cost = _weighed(PendingCost(identity), store, embedder, cache, paid_for)
        note = self.note(cost)
        if note:
            store.write_meta({HELD_BACK: json.dumps(asdict(cost))})
        return note


def _weighed(
    cost: PendingCost, store: Store, embedder: Embedder, cache: EmbeddingCache | None, paid_for: Excluded
) -> PendingCost:
    """Return the cost with the pending chunks that were not counted yet."""
    from notewell.chunking.lines import weigh
    from notewell.indexing.embedding_run import pending_pages

    pending, chunks, quarters, last_id = cost.pending, cost.chunks, cost.quarters, cost.last_id
    for page in pending_pages(store, after=last_id):
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
    return PendingCost(cost.identity, pending, chunks, quarters, last_id)
