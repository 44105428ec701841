"""Embeds pending chunks through a provider's batch jobs: creates jobs, waits for them, collects their vectors.

Each step is short and holds the write lock. Between steps the provider is polled without it, so that searches and other
writers are not blocked. If the process dies, the next run continues from the ledger.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Self

from notewell.embedding import JOBS_FOLDER
from notewell.embedding.http_calls import RemoteFailure
from notewell.embedding.jobs import Ledger, open_jobs, supports_jobs
from notewell.errors import NotewellError
from notewell.files.faults import reach
from notewell.indexing.embedding_run import pending_pages
from notewell.types import BatchJob, Check, Problem, Progress

if TYPE_CHECKING:
    from notewell.embedding.jobs import BatchJobs, JobRecord, JobResults, JobView
    from notewell.indexing.embedding_run import EmbeddingRun, Excluded
    from notewell.indexing.indexer import Tally
    from notewell.indexing.plan import SyncPolicy
    from notewell.protocols import Embedder, Store, Vector
    from notewell.settings import BatchSettings

FAILURE_LIMIT = 2  # failed jobs, then the rest is embedded without jobs; OpenClaw's number
WORTH_A_JOB = 100  # chunks; fewer are embedded directly, which costs next to nothing, unless jobs were requested
GROWTH = 1.5  # of the pause between two polls
LONGEST_PAUSE_S = 60.0  # between two polls; jobs take minutes to hours
MISSED_LOOKS = 3  # failed polls in a row, each with retries; then the sync stops waiting
LOST_AFTER_S = 48 * 3600  # twice the longest completion window of a provider
FOREIGN_DAYS = 30  # how long providers keep results; until then the model of a job may be used again
NEVER_SET = threading.Event()


def open_batch(
    embedder: Embedder, settings: BatchSettings, policy: SyncPolicy, state_folder: Path, *, makes_jobs: bool
) -> BatchRun | None:
    """Return the batch jobs of one sync; None if it has none.

    Jobs of earlier syncs are always collected, but a sync waits for its own only.
    """
    if not supports_jobs(embedder):
        return None
    waits = (settings.wait and makes_jobs) if policy.wait is None else policy.wait
    jobs = open_jobs(embedder, state_folder)
    if makes_jobs:
        jobs.record_failures(0)
    return BatchRun(jobs, replace(settings, wait=waits), makes_jobs=makes_jobs, requested=policy.batch is True)


@dataclass(slots=True)
class Watch:
    """When to poll a job next, and since when the sync has been waiting, by `time.monotonic()`."""

    since: float
    pause_s: float
    next_at: float
    missed: int = 0
    view: JobView | None = None  # of a finished job


class BatchRun:
    """The batch jobs of one sync: `step` and `wait` alternate until none is in progress. Use it in a `with` block."""

    def __init__(self, jobs: BatchJobs, settings: BatchSettings, *, makes_jobs: bool, requested: bool = False) -> None:
        self._jobs = jobs
        self._settings = settings
        self._makes_jobs = makes_jobs
        self._least = 1 if requested else WORTH_A_JOB
        self._failures = 0
        self._watches: dict[str, Watch] = {}
        self._retried: set[str] = set()  # texts of a job that timed out, which get a second job
        self._tried: set[str] = set()  # texts that a job failed to embed, which are embedded without one

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._jobs.close()

    def excluded(self) -> Excluded:
        """Return which texts, by hash, to leave to a job of now or later."""
        in_jobs = frozenset().union(*(record.wanted for record in self._jobs.pending()))
        if not self._makes_jobs:
            return in_jobs.__contains__
        tried = self._tried
        return lambda text_hash: text_hash in in_jobs or text_hash not in tried

    def note(self) -> str:
        """Describe the jobs still in progress; empty when there are none."""
        left = self._jobs.pending()
        if not left:
            return ""
        jobs = "1 batch job is" if len(left) == 1 else f"{len(left)} batch jobs are"
        chunks = _counted(sum(len(record.wanted) for record in left))
        return f"{jobs} in progress for {chunks}: run `notewell index` later to fetch the vectors"

    # --- a step, under the write lock ------------------------------------------------------------

    def step(self, embedding: EmbeddingRun, tally: Tally) -> None:
        """Collect finished jobs, and create new ones up to the limit."""
        self._jobs.tidy(FOREIGN_DAYS)
        for record in self._jobs.pending():
            try:
                self._attend(record, embedding, tally)
            except RemoteFailure as failure:
                self._missed(record, failure, tally)
        if self._makes_jobs:
            self._make_jobs(embedding, tally)
        tally.jobs = len(self._jobs.pending())

    def _attend(self, record: JobRecord, embedding: EmbeddingRun, tally: Tally) -> None:
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
        self._collect(record, view, embedding, tally, late=late)

    def _collect(self, record: JobRecord, view: JobView, embedding: EmbeddingRun, tally: Tally, *, late: str) -> None:
        results = self._jobs.collect(record, view)
        if embedding.cache and results.vectors:
            reach("embed.remember")
            embedding.cache.put_many(self._jobs.identity, results.vectors)
        tally.embedded += _stored(embedding.store, results.vectors)
        timed_out = bool(late) or view.state == "expired"
        again = timed_out and self._makes_jobs and not record.wanted & self._retried
        (self._retried if again else self._tried).update(results.failed)
        if self._jobs.finish(record, view):
            tally.notes.append(f"the files of a batch job could not be deleted at {self._jobs.title}")
        self._watches.pop(record.mark, None)
        if again:
            what = f"a batch job of {_counted(len(record.wanted))} timed out ({late or results.trouble})"
            tally.notes.append(f"{what}; it is tried once more")
        else:
            self._judge(record, results, late or results.trouble, tally)

    def _judge(self, record: JobRecord, results: JobResults, trouble: str, tally: Tally) -> None:
        if trouble:
            self._failed(f"a batch job of {_counted(len(record.wanted))} failed: {trouble}", tally)
        elif results.failed:
            reason = next(iter(results.failed.values()))
            tally.notes.append(
                f"{len(results.failed):,} of {_counted(len(record.wanted))} failed in a batch job ({reason}); "
                "they are embedded without a job"
            )

    def _failed(self, what: str, tally: Tally, *, for_good: bool = False) -> None:
        """Count a failure; the second one, or one that every job would have, turns jobs off for this run."""
        self._failures += 1
        self._jobs.record_failures(self._failures, what)
        if self._makes_jobs and (for_good or self._failures >= FAILURE_LIMIT):
            self._makes_jobs = False
            tally.notes.append(f"{what}; batch jobs are off for this run, the rest is embedded without them")
        else:
            tally.notes.append(f"{what}; its chunks are embedded without it")

    def _missed(self, record: JobRecord, failure: RemoteFailure, tally: Tally) -> None:
        """Keep a job with an unknown state: it is paid for, and a later run collects it."""
        watch = self._watch(record)
        watch.missed += 1
        watch.view = None
        self._later(watch)
        if watch.missed >= MISSED_LOOKS or not self._settings.wait:
            reason = f"the state of a batch job cannot be read: {failure.message}; run `notewell index` again later"
            tally.problems.append(Problem("batch job", reason))
            tally.complete = False

    def _cancelled(self, record: JobRecord) -> JobView:
        try:
            return self._jobs.cancel(record)
        except RemoteFailure:
            return self._jobs.look(record)

    # --- making jobs -----------------------------------------------------------------------------

    def _make_jobs(self, embedding: EmbeddingRun, tally: Tally) -> None:
        room = self._settings.concurrency - len(self._jobs.pending())
        if room < 1:
            return
        if self._least > 1 and sum(1 for _ in islice(self._texts(embedding), self._least)) < self._least:
            self._makes_jobs = False
            return
        for texts in self._jobs.batches(self._texts(embedding)):
            try:
                record = self._jobs.submit(texts)
            except RemoteFailure as failure:
                self._tried.update(texts)
                what = f"a batch job of {_counted(len(texts))} could not be created: {_described(failure)}"
                self._failed(what, tally, for_good=failure.kind in {"key", "quota", "missing", "unreachable"})
                if not self._makes_jobs:
                    return
                continue
            except NotewellError as error:  # the ledger cannot be written: without it a job could be paid for twice
                self._tried.update(texts)
                self._failed(f"a batch job could not be recorded: {error.message}", tally, for_good=True)
                return
            self._watch(record, fresh=True)
            room -= 1
            if room < 1:
                return

    def _texts(self, embedding: EmbeddingRun) -> Iterator[tuple[str, str]]:
        """Yield each pending text without a known vector that fits into a job."""
        embedder = embedding.embedder
        taken = self._tried.union(*(record.wanted for record in self._jobs.pending()))
        for page in pending_pages(embedding.store):
            fresh = [
                chunk for chunk in page if chunk.embedded_hash not in taken and embedder.knows(chunk.embedded_text)
            ]
            vectors = embedding.known_vectors([chunk.embedded_hash for chunk in fresh])
            for chunk in fresh:
                if chunk.embedded_hash in taken or chunk.embedded_hash in vectors:
                    continue
                taken.add(chunk.embedded_hash)
                if self._jobs.accepts(chunk.embedded_text):
                    yield chunk.embedded_hash, chunk.embedded_text
                else:
                    self._tried.add(chunk.embedded_hash)

    # --- waiting, without the lock ---------------------------------------------------------------

    def wait(self, policy: SyncPolicy, *, embedded: int) -> bool:
        """Wait until a step has something to do; return False if nothing is left to wait for, or when stopped."""
        stop = policy.deadline.stop or NEVER_SET
        while self._settings.wait and not stop.is_set():
            if policy.progress:
                left = sum(len(record.wanted) for record in self._jobs.pending())
                policy.progress(Progress("jobs", embedded, embedded + left))
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
            if view.is_over:  # missed polls still count: perhaps its results cannot be fetched
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
        """Return why the sync stops waiting for a job; empty while it waits."""
        minutes = self._settings.timeout_minutes
        if self._settings.wait and time.monotonic() - watch.since > minutes * 60:
            return f"not done after {minutes} minutes"
        if time.time() - record.begun_at > LOST_AFTER_S:
            return "not done after two days"
        return ""


def _stopped_within(seconds: float, stop: threading.Event) -> bool:
    """Wait in steps, because on Windows Ctrl-C is noticed only between two waits."""
    while seconds > 0:
        if stop.wait(min(seconds, 1.0)):
            return True
        seconds -= 1.0
    return False


def _stored(store: Store, vectors: Mapping[str, Vector]) -> int:
    """Store the vectors of pending chunks; return the number of texts."""
    used: set[str] = set()
    for page in pending_pages(store):
        found = {chunk.id: vectors[chunk.embedded_hash] for chunk in page if chunk.embedded_hash in vectors}
        if found:
            reach("embed.store")
            store.put_vectors(found)
            used.update(chunk.embedded_hash for chunk in page if chunk.id in found)
    return len(used)


def _counted(count: int) -> str:
    return "1 chunk" if count == 1 else f"{count:,} chunks"


def _described(failure: RemoteFailure) -> str:
    return f"{failure.message}: {failure.detail}" if failure.detail else failure.message


def jobs_in_progress(state_folder: Path) -> tuple[BatchJob, ...]:
    """Return the recorded jobs of every model, oldest first."""
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
    """Yield the checks of `doctor` on batch jobs."""
    jobs = jobs_in_progress(state_folder)
    if jobs:
        waiting = sum(job.chunks for job in jobs)
        yield Check(
            "jobs", True, f"{len(jobs)} in progress for {waiting:,} chunks", "run `notewell index` to collect them"
        )
    for name in Ledger(state_folder).corrupt():
        yield Check("jobs", False, f"{JOBS_FOLDER}/{name} cannot be read: its job is not collected", "delete the file")
