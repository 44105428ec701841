"""Pending chunks in, their vectors by way of batch jobs out: jobs are made, waited for and collected, in steps.

A step holds the write lock and is short. Between steps only the provider is asked, so that searches and other writers
go on while a job runs; whatever ends the process, the next run goes on from the ledger.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from notewell.embedding.batch.jobs import JobView
from notewell.embedding.http_calls import RemoteFailure
from notewell.errors import NotewellError
from notewell.files.faults import reach
from notewell.types import Problem

if TYPE_CHECKING:
    from notewell.embedding.batch.jobs import BatchJobs, JobResults
    from notewell.embedding.batch.ledger import JobRecord
    from notewell.indexing.tally import Tally
    from notewell.protocols import Embedder, EmbeddingCache, Store, Vector
    from notewell.settings import BatchSettings
    from notewell.types import PendingChunk

FAILURE_LIMIT = 2  # OpenClaw's: after so many failed jobs the rest of a run goes the ordinary way
WORTH_A_JOB = 100  # chunks; fewer are embedded at once for next to nothing, unless jobs are asked for by name
GROWTH = 1.5  # of the pause between two looks
LONGEST_PAUSE_S = 60.0  # jobs take minutes to hours: a minute more does not matter
MISSED_LOOKS = 3  # in a row, each tried three times: then nobody waits for the provider any longer
LOST_AFTER_S = 48 * 3600  # twice the longest time that a provider gives itself
FOREIGN_DAYS = 30  # how long providers keep results: a job of a model that is not in use may still be wanted
PAGE = 500  # chunks looked up at once
NEVER_SET = threading.Event()  # waits for as long as it is told to

Known = Callable[[Sequence[str]], Mapping[str, "Vector"]]


@dataclass(slots=True)
class Watch:
    """When a job is asked after next, and since when it is waited for; moments of `time.monotonic()`."""

    since: float
    pause_s: float
    next_at: float
    missed: int = 0
    view: JobView | None = None  # set when it is over


class BatchRun:
    """The batch jobs of one `index` call; `step` and `wait` take turns until nothing is under way."""

    def __init__(
        self, jobs: BatchJobs, settings: BatchSettings, *, makes_jobs: bool, asked_by_name: bool = False
    ) -> None:
        self._jobs = jobs
        self._settings = settings
        self._makes_jobs = makes_jobs
        self._least = 1 if asked_by_name else WORTH_A_JOB
        self._failures = 0
        self._watches: dict[str, Watch] = {}
        self._tried: set[str] = set()  # texts that a job failed to embed: they go the ordinary way
        self._chunks: dict[str, int] = {}  # of each job under way, for messages

    def close(self) -> None:
        self._jobs.close()

    @property
    def under_way(self) -> list[JobRecord]:
        return self._jobs.pending()

    def left_alone(self, embedder: Embedder) -> Callable[[str], bool]:  # noqa: ARG002 - it is that of the jobs
        """Return which texts, by hash, the ordinary way must leave alone: a job has them, or a later one will."""
        waited_for = frozenset().union(*(record.wanted for record in self._jobs.pending()))
        if not self._makes_jobs:
            return waited_for.__contains__
        tried = self._tried
        return lambda text_hash: text_hash in waited_for or text_hash not in tried

    # --- a step, under the write lock ------------------------------------------------------------

    def step(self, store: Store, embedder: Embedder, cache: EmbeddingCache | None, known: Known, tally: Tally) -> None:
        """Collect the jobs that are over and make new ones as far as there is room for them."""
        self._jobs.tidy(FOREIGN_DAYS)
        for record in self._jobs.pending():
            try:
                self._attend(record, store, cache, tally)
            except RemoteFailure as failure:
                self._missed(record, failure, tally)
        if self._makes_jobs:
            self._make_jobs(store, embedder, known, tally)
        tally.jobs = len(self._jobs.pending())

    def _attend(self, record: JobRecord, store: Store, cache: EmbeddingCache | None, tally: Tally) -> None:
        if not record.job_id:
            recovered = self._jobs.recover(record)
            if recovered is None:
                return
            record = recovered
        watch = self._watch(record)
        if not record.wanted:
            self._jobs.finish(record, self._cancelled(record))
            return
        late = self._lateness(record, watch)
        due = late or watch.missed >= MISSED_LOOKS or time.monotonic() >= watch.next_at
        view = watch.view or (self._jobs.look(record) if due else None)
        if view is None:
            return
        if view.is_over:
            late = ""
        elif late:
            view = self._cancelled(record)
        else:
            watch.missed = 0
            self._later(watch)
            return
        self._collect(record, view, tally, store=store, cache=cache, late=late)

    def _collect(
        self, record: JobRecord, view: JobView, tally: Tally, *, store: Store, cache: EmbeddingCache | None, late: str
    ) -> None:
        harvest = self._jobs.collect(record, view)
        if cache and harvest.vectors:
            reach("embed.remember")
            cache.put_many(self._jobs.identity, harvest.vectors)
        tally.embedded += _stored(store, harvest.vectors)
        self._tried.update(harvest.failed)
        if self._jobs.finish(record, view):
            tally.notes.append(f"the files of a batch job could not be deleted at {self._jobs.title}")
        self._watches.pop(record.mark, None)
        self._judge(record, harvest, late or harvest.trouble, tally)

    def _judge(self, record: JobRecord, harvest: JobResults, trouble: str, tally: Tally) -> None:
        if trouble:
            self._failed(f"a batch job of {counted(len(record.wanted))} failed: {trouble}", tally)
        elif harvest.failed:
            reason = next(iter(harvest.failed.values()))
            tally.notes.append(
                f"{len(harvest.failed):,} of {counted(len(record.wanted))} failed in a batch job ({reason}); "
                "they are embedded the ordinary way"
            )

    def _failed(self, what: str, tally: Tally, *, for_good: bool = False) -> None:
        """Count a failure; the second one, or one that no other job would escape, turns jobs off for this run."""
        self._failures += 1
        if self._makes_jobs and (for_good or self._failures >= FAILURE_LIMIT):
            self._makes_jobs = False
            tally.notes.append(f"{what}; batch jobs are off for this run, the rest is embedded the ordinary way")
        else:
            tally.notes.append(f"{what}; its chunks are embedded the ordinary way")

    def _missed(self, record: JobRecord, failure: RemoteFailure, tally: Tally) -> None:
        """Keep a job that could not be asked after: it is paid for, and a later run finds it."""
        watch = self._watch(record)
        watch.missed += 1
        watch.view = None
        self._later(watch)
        if watch.missed >= MISSED_LOOKS or not self._settings.wait:
            reason = f"a batch job cannot be asked after: {failure.message}; run `notewell index` again later"
            tally.problems.append(Problem("batch job", reason))
            tally.complete = False

    def _cancelled(self, record: JobRecord) -> JobView:
        try:
            return self._jobs.cancel(record)
        except RemoteFailure:
            return self._jobs.look(record)

    # --- making jobs -----------------------------------------------------------------------------

    def _make_jobs(self, store: Store, embedder: Embedder, known: Known, tally: Tally) -> None:
        room = self._settings.concurrency - len(self._jobs.pending())
        if room < 1:
            return
        if self._least > 1 and not self._is_worth_it(store, embedder, known):
            self._makes_jobs = False
            return
        for load in self._jobs.batches(self._texts(store, embedder, known)):
            try:
                record = self._jobs.submit(load)
            except RemoteFailure as failure:
                self._tried.update(load)
                what = f"a batch job of {counted(len(load))} could not be made: {_told(failure)}"
                self._failed(what, tally, for_good=failure.kind in {"key", "quota", "missing", "unreachable"})
                if not self._makes_jobs:
                    return
                continue
            except NotewellError as error:  # the ledger cannot be written: without it a job could be paid for twice
                self._tried.update(load)
                self._failed(f"a batch job could not be recorded: {error.message}", tally, for_good=True)
                return
            self._watch(record, fresh=True)
            room -= 1
            if room < 1:
                return

    def _is_worth_it(self, store: Store, embedder: Embedder, known: Known) -> bool:
        waiting = islice(self._texts(store, embedder, known), self._least)
        return sum(1 for _ in waiting) == self._least

    def _texts(self, store: Store, embedder: Embedder, known: Known) -> Iterator[tuple[str, str]]:
        """Yield each text once that waits for a vector, is known nowhere and fits into a job."""
        taken = self._tried.union(*(record.wanted for record in self._jobs.pending()))
        for page in _pages(store):
            fresh = [
                chunk for chunk in page if chunk.embedded_hash not in taken and embedder.knows(chunk.embedded_text)
            ]
            vectors = known([chunk.embedded_hash for chunk in fresh])
            for chunk in fresh:
                if chunk.embedded_hash in taken or chunk.embedded_hash in vectors:
                    continue
                taken.add(chunk.embedded_hash)
                if self._jobs.accepts(chunk.embedded_text):
                    yield chunk.embedded_hash, chunk.embedded_text
                else:
                    self._tried.add(chunk.embedded_hash)

    # --- waiting, without the lock ---------------------------------------------------------------

    def wait(self, stop: threading.Event = NEVER_SET, told: Callable[[], None] = lambda: None) -> bool:
        """Wait until a step has something to do; False when there is nothing left to wait for, or `stop` is set.

        `told` is called before every look.
        """
        while not stop.is_set():
            told()
            watched = [(record, self._watch(record)) for record in self._jobs.pending()]
            watched = [(record, watch) for record, watch in watched if watch.missed < MISSED_LOOKS]
            if not watched:
                return False
            if any(self._lateness(record, watch) or not record.job_id for record, watch in watched):
                return True
            record, watch = min(watched, key=lambda pair: pair[1].next_at)
            if _stopped_within(watch.next_at - time.monotonic(), stop):
                return False
            try:
                view = self._jobs.look(record)
            except RemoteFailure:
                watch.missed += 1
                self._later(watch)
                if watch.missed >= MISSED_LOOKS:
                    return True  # the step says why
                continue
            if view.is_over:  # looks that were missed still count: its results may be what cannot be had
                watch.view = view
                return True
            watch.missed = 0
            self._later(watch)
        return False

    def _watch(self, record: JobRecord, *, fresh: bool = False) -> Watch:
        if record.mark not in self._watches:
            now, pause_s = time.monotonic(), self._settings.poll_interval_ms / 1000
            self._watches[record.mark] = Watch(now, pause_s, now + pause_s if fresh else now)
        return self._watches[record.mark]

    def _later(self, watch: Watch) -> None:
        watch.next_at = time.monotonic() + watch.pause_s
        watch.pause_s = min(watch.pause_s * GROWTH, max(LONGEST_PAUSE_S, self._settings.poll_interval_ms / 1000))

    def _lateness(self, record: JobRecord, watch: Watch) -> str:
        """Say why a job is not waited for any longer; empty while it is."""
        minutes = self._settings.timeout_minutes
        if self._settings.wait and time.monotonic() - watch.since > minutes * 60:
            return f"not done after {minutes} minutes"
        if time.time() - record.begun_at > LOST_AFTER_S:
            return "not done after two days"
        return ""


def _stopped_within(seconds: float, stop: threading.Event) -> bool:
    """Wait so long, in pieces: on Windows Ctrl-C is seen only between two waits."""
    while seconds > 0:
        if stop.wait(min(seconds, 1.0)):
            return True
        seconds -= 1.0
    return False


def _stored(store: Store, vectors: Mapping[str, Vector]) -> int:
    """Give the waiting chunks their vectors; return how many texts that were."""
    used: set[str] = set()
    for page in _pages(store):
        found = {chunk.id: vectors[chunk.embedded_hash] for chunk in page if chunk.embedded_hash in vectors}
        if found:
            reach("embed.store")
            store.put_vectors(found)
            used.update(chunk.embedded_hash for chunk in page if chunk.id in found)
    return len(used)


def _pages(store: Store) -> Iterator[Sequence[PendingChunk]]:
    after = 0
    while page := store.pending(PAGE, after=after):
        after = page[-1].id
        yield page


def counted(count: int) -> str:
    """Return so many chunks in words."""
    return "1 chunk" if count == 1 else f"{count:,} chunks"


def _told(failure: RemoteFailure) -> str:
    return f"{failure.message}: {failure.detail}" if failure.detail else failure.message
