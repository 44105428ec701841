"""Creates batch jobs, follows them and collects their vectors.

A job is paid for once it is created. So the intention and the uploaded file are recorded on disk first, and a job whose
creation was interrupted is looked for by its mark before another one is created.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from notewell.embedding.batch.ledger import JobFailures, JobRecord, Ledger, new_record
from notewell.embedding.http_calls import FailureKind, RemoteFailure, without_secrets
from notewell.embedding.providers.embedder import RemoteEmbedder
from notewell.text import valid_unicode

if TYPE_CHECKING:
    from pathlib import Path

    from notewell.protocols import Embedder, Vector
    from notewell.types import EmbedderIdentity

PROVIDERS = ("openai", "gemini", "voyage", "mistral")
MAX_BYTES = 32_000_000  # of an input or result file, which is held in memory: some 3,700 texts of 1,536 numbers
LOOK_AGAIN_S = 2.0  # a job that was just created may not be listed at once
CHECKED_AT_ONCE = 512  # rows: validation works in float64, which takes room
SHORT_HASH = 32  # characters of a text's hash that name its line: no two of a million texts share them

# The provider said no: no job was created. After any other failure there may be one.
_NOT_CREATED: frozenset[FailureKind] = frozenset({"key", "quota", "refused", "missing", "rate_limited"})
# How the providers report that a result file is gone; Gemini calls a missing file forbidden.
_FILE_GONE: frozenset[FailureKind] = frozenset({"missing", "refused", "key"})

JobState = Literal["running", "done", "failed", "expired", "cancelled"]


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as its provider describes it."""

    id: str
    state: JobState
    provider_state: str  # in the provider's own words
    reason: str = ""  # why it failed, if the provider says so
    result_files: Sequence[str] = ()  # results and errors

    @property
    def is_over(self) -> bool:
        return self.state != "running"


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """The result for one text: `row` is a vector, not validated yet; without one, `reason` says why."""

    custom_id: str
    row: Any = None
    reason: str = ""


class JobDriver(Protocol):
    """Calls one provider; every method that does so raises RemoteFailure."""

    @property
    def inputs_a_job(self) -> int: ...  # how many texts the provider accepts

    @property
    def bytes_a_number(self) -> float: ...  # in the results: decides how many texts fit into one download

    def line(self, custom_id: str, text: str) -> dict[str, Any]: ...  # of the input file

    def upload(self, name: str, content: bytes) -> str: ...  # returns the id of the input file

    def create(self, file_id: str, mark: str) -> JobView: ...  # costs money, and is never retried: see `find`

    def find(self, mark: str) -> JobView | None: ...  # a job that was created with this mark

    def look(self, job_id: str) -> JobView: ...

    def cancel(self, job_id: str) -> None: ...

    def answers(self, file_id: str) -> Iterator[LineAnswer]: ...  # of a result file, without unreadable lines

    def find_file(self, name: str) -> str: ...  # the id of an uploaded file; empty if not among the newest

    def delete_file(self, file_id: str) -> None: ...  # no text stays with the provider longer than necessary

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class JobResults:
    """The results of a finished job."""

    vectors: Mapping[str, Vector]  # by the hash of the text
    failed: Mapping[str, str]  # hash to reason; an ordinary request may still embed these
    trouble: str = ""  # why the job as a whole failed; empty when it did not


class BatchJobs:
    """The jobs of one embedder at its provider, and their records."""

    def __init__(self, driver: JobDriver, ledger: Ledger, embedder: RemoteEmbedder) -> None:
        self._driver = driver
        self._ledger = ledger
        self._embedder = embedder
        self.title = embedder.api.title

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors the jobs give."""
        return self._embedder.identity

    def close(self) -> None:
        self._driver.close()

    def record_failures(self, count: int, last_error: str = "") -> None:
        """Keep how many jobs of this run failed, and why the last one did."""
        self._ledger.record_failures(JobFailures(count, last_error, self._embedder.provider))

    def pending(self) -> list[JobRecord]:
        """Return the jobs of this embedder, oldest first; those of other models wait until their model is back."""
        return [record for record in self._ledger.records() if record.identity == self.identity]

    def tidy(self, days: float) -> None:
        """Forget other models' jobs that are so old that their results are gone, and the leftovers of a crash."""
        self._ledger.tidy()
        for record in self._ledger.records():
            if record.identity != self.identity and time.time() - record.begun_at > days * 86_400:
                self._ledger.remove(record)

    # --- creating --------------------------------------------------------------------------------

    def accepts(self, text: str) -> bool:
        """Tell whether a text fits into a line; one that is too long for the model must be split, which jobs cannot."""
        from notewell.embedding.providers.requests import pieces_of  # imports asyncio and NumPy

        return len(pieces_of(0, text, input_tokens=self._embedder.facts.input_tokens)) == 1

    def batches(self, texts: Iterator[tuple[str, str]]) -> Iterator[dict[str, bytes]]:
        """Yield lines by text hash, as many as one job accepts; `texts` is only drawn from as jobs are created."""
        bytes_a_result = self.identity.dimensions * self._driver.bytes_a_number + 400
        most = min(self._driver.inputs_a_job, int(MAX_BYTES / bytes_a_result))
        lines: dict[str, bytes] = {}
        size = 0
        for text_hash, text in texts:
            sent = valid_unicode(self._embedder.facts.document_prefix + (text if text.strip() else "-"))
            entry = self._driver.line(text_hash[:SHORT_HASH], sent)
            line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
            if lines and (len(lines) >= most or size + len(line) > MAX_BYTES):
                yield lines
                lines, size = {}, 0
            lines[text_hash] = line
            size += len(line)
        if lines:
            yield lines

    def submit(self, lines: Mapping[str, bytes]) -> JobRecord:
        """Create a job for these lines; raise RemoteFailure when there is none, or none that we could see."""
        record = new_record(self.identity, lines)
        self._ledger.write(record)
        try:
            file_id = self._driver.upload(_file_name(record), b"".join(lines.values()))
        except RemoteFailure:
            self._ledger.remove(record)
            raise
        record = replace(record, file_id=file_id)
        self._ledger.write(record)
        return self._create(record)

    def recover(self, record: JobRecord) -> JobRecord | None:
        """Find out what became of a job without an id, left by a killed process; None when there is no job."""
        if not record.file_id:  # without a recorded file there is no job, but the file may have been uploaded
            self._delete(self._driver.find_file(_file_name(record)))
            self._ledger.remove(record)
            return None
        view = self._driver.find(record.mark)
        if view is not None:
            return self._recorded(record, view)
        try:
            return self._create(record)
        except RemoteFailure as failure:
            if failure.kind in _NOT_CREATED:
                return None
            raise

    def _create(self, record: JobRecord) -> JobRecord:
        try:
            view: JobView | None = self._driver.create(record.file_id, record.mark)
        except RemoteFailure as failure:
            view = None if failure.kind in _NOT_CREATED else self._find_created(record)
            if view is None:
                self._delete(record.file_id)
                self._ledger.remove(record)
                raise
        assert view is not None
        return self._recorded(record, view)

    def _find_created(self, record: JobRecord) -> JobView | None:
        """Look for a job whose creation was cut off; if that fails, its record stays, and nothing is paid twice."""
        view = self._driver.find(record.mark)
        if view is None:
            time.sleep(LOOK_AGAIN_S)
            view = self._driver.find(record.mark)
        return view

    def _recorded(self, record: JobRecord, view: JobView) -> JobRecord:
        record = replace(record, job_id=view.id)
        self._ledger.write(record)
        return record

    # --- collecting ------------------------------------------------------------------------------

    def look(self, record: JobRecord) -> JobView:
        """Return the state of a job; one that the provider no longer knows has failed."""
        try:
            return self._driver.look(record.job_id)
        except RemoteFailure as failure:
            if failure.kind != "missing":
                raise
            return JobView(record.job_id, "failed", "gone", f"{self.title} no longer knows it")

    def cancel(self, record: JobRecord) -> JobView:
        """Cancel a job and return its state; what was done until then may be collected."""
        self._driver.cancel(record.job_id)
        return self.look(record)

    def collect(self, record: JobRecord, view: JobView) -> JobResults:
        """Return the vectors of a job that is over; raise RemoteFailure when they cannot be fetched now."""
        rows: dict[str, Any] = {}
        reasons: dict[str, str] = {}
        by_line = {text_hash[:SHORT_HASH]: text_hash for text_hash in record.hashes}
        trouble = "" if view.state == "done" else ": ".join(filter(None, (view.provider_state, view.reason)))
        for file_id in view.result_files:
            try:
                for answer in self._driver.answers(file_id):
                    text_hash = by_line.get(answer.custom_id)  # None: a line that was not asked for
                    if text_hash is None:
                        continue
                    if answer.reason:
                        reasons[text_hash] = without_secrets(answer.reason, self._embedder.service.secrets)
                    else:
                        rows.setdefault(text_hash, answer.row)
            except RemoteFailure as failure:
                if failure.kind not in _FILE_GONE:
                    raise
                trouble = trouble or f"its results are missing: {failure.message}"
        vectors, wrong = self._validated({key: row for key, row in rows.items() if key in record.wanted})
        failed = {key: wrong.get(key) or reasons.get(key) or "no result" for key in record.wanted if key not in vectors}
        if record.wanted and not vectors and not trouble:
            trouble = f"none of its results can be used: {next(iter(failed.values()))}"
        return JobResults(vectors, failed, trouble)

    def finish(self, record: JobRecord, view: JobView | None) -> int:
        """Forget a job whose vectors are stored, and delete its files; return how many could not be deleted."""
        left = 0
        for file_id in (record.file_id, *(view.result_files if view else ())):
            left += not self._delete(file_id)
        self._ledger.remove(record)
        return left

    def _delete(self, file_id: str) -> bool:
        """Delete a file at the provider; tell whether it is gone."""
        try:
            if file_id:
                self._driver.delete_file(file_id)
        except RemoteFailure as failure:
            return failure.kind in _FILE_GONE
        return True

    def _validated(self, rows: dict[str, Any]) -> tuple[dict[str, Vector], dict[str, str]]:
        """Return the valid vectors, and what is wrong with the others, by text hash."""
        from notewell.embedding.unit_vectors import valid_rows  # imports NumPy

        good: dict[str, Vector] = {}
        bad: dict[str, str] = {}
        keys = list(rows)
        for first in range(0, len(keys), CHECKED_AT_ONCE):
            block = keys[first : first + CHECKED_AT_ONCE]
            matrix, wrong = valid_rows([rows.pop(key) for key in block], dimensions=self.identity.dimensions)
            good |= {key: matrix[at] for at, key in enumerate(block) if at not in wrong}
            bad |= {block[at]: why for at, why in wrong.items()}
        return good, bad


def _file_name(record: JobRecord) -> str:
    return f"notewell-{record.mark}.jsonl"


def supports_jobs(embedder: Embedder | None) -> bool:
    """Tell whether the embedder's provider offers batch jobs."""
    return isinstance(embedder, RemoteEmbedder) and embedder.provider in PROVIDERS


def open_jobs(embedder: Embedder, state_folder: Path) -> BatchJobs:
    """Return the jobs of an embedder that `supports_jobs`; nothing is called yet."""
    from notewell.embedding.batch.drivers import GeminiJobs, JobCalls, OpenAIFamilyJobs  # imports asyncio

    assert isinstance(embedder, RemoteEmbedder)
    calls = JobCalls(embedder.service)
    driver: JobDriver = (
        GeminiJobs(calls, embedder) if embedder.provider == "gemini" else OpenAIFamilyJobs(calls, embedder)
    )
    return BatchJobs(driver, Ledger(state_folder), embedder)
