"""The ledger of batch jobs in, which texts are left alone by whoever embeds without jobs out: they are paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from notewell.types import BatchJob, Check

if TYPE_CHECKING:
    from notewell.indexing.batch_run import Known
    from notewell.indexing.tally import Tally
    from notewell.protocols import Embedder, EmbeddingCache, Store


class BatchStep(Protocol):
    """What an indexing run does about batch jobs before it embeds the ordinary way."""

    def step(self, store: Store, embedder: Embedder, cache: EmbeddingCache | None, known: Known, tally: Tally) -> None:
        """Collect and make jobs, or at least count them."""
        ...

    def left_alone(self, embedder: Embedder) -> Callable[[str], bool]:
        """Return which texts, by hash, the ordinary way leaves alone."""
        ...


@dataclass(frozen=True, slots=True)
class WaitedFor:
    """Implements `BatchStep` without calling anybody: for searches, and for runs that use no jobs."""

    state_folder: Path

    def step(self, store: Store, embedder: Embedder, cache: EmbeddingCache | None, known: Known, tally: Tally) -> None:  # noqa: ARG002
        tally.jobs = len(self._records(embedder))

    def left_alone(self, embedder: Embedder) -> Callable[[str], bool]:
        waited_for = frozenset().union(*(wanted for wanted in self._records(embedder)))
        return waited_for.__contains__

    def _records(self, embedder: Embedder) -> list[frozenset[str]]:
        from notewell.embedding.batch.ledger import FOLDER, Ledger

        if not (self.state_folder / FOLDER).exists():
            return []
        records = Ledger(self.state_folder).records()
        return [record.wanted for record in records if record.identity == embedder.identity]


def jobs_under_way(state_folder: Path) -> tuple[BatchJob, ...]:
    """Return the jobs of every model, oldest first, as the ledger has them; nobody is asked."""
    from notewell.embedding.batch.ledger import Ledger

    return tuple(
        BatchJob(
            provider=record.identity.provider,
            model=record.identity.model,
            id=record.job_id,
            chunks=len(record.wanted),
            since=datetime.fromtimestamp(record.begun_at, UTC).isoformat(timespec="seconds"),
        )
        for record in Ledger(state_folder).records()
    )


def check_jobs(state_folder: Path) -> Iterator[Check]:
    """Yield what `doctor` has to say about batch jobs; nothing when there are none."""
    from notewell.embedding.batch.ledger import FOLDER, Ledger

    jobs = jobs_under_way(state_folder)
    if jobs:
        waiting = sum(job.chunks for job in jobs)
        yield Check(
            "jobs", True, f"{len(jobs)} under way for {waiting:,} chunks", "run `notewell index` to collect them"
        )
    for name in Ledger(state_folder).corrupt():
        yield Check("jobs", False, f"{FOLDER}/{name} cannot be read: its job is not collected", "delete the file")
