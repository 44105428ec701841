"""Creates batch jobs at a provider, follows them, collects their vectors, and records them on disk.

A job is paid for once it is created. So the intention and the uploaded file are recorded first, one file per job, and a
job whose creation was interrupted is looked for by its mark before another one is created.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import uuid4

from notewell.embedding import JOBS_FOLDER
from notewell.embedding.http_calls import FailureKind, RemoteFailure, without_secrets
from notewell.errors import system_error
from notewell.files.atomic import DRAFT_SUFFIX, write_atomically
from notewell.text import valid_unicode
from notewell.types import EmbedderIdentity

if TYPE_CHECKING:
    from notewell.embedding.providers.embedder import RemoteEmbedder
    from notewell.protocols import Embedder, Vector

PROVIDERS = ("openai", "gemini", "voyage", "mistral")
MAX_BYTES = 32_000_000  # of an input or result file, which is held in memory: some 3,700 texts of 1,536 numbers
LOOK_AGAIN_S = 2.0  # a new job may not be listed at once
CHECKED_AT_ONCE = 512  # rows, which validation converts to float64
SHORT_HASH = 32  # characters of the text's hash in the id of a line, enough for millions of texts

# After these failures no job was created; after any other there may be one.
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

    def create(self, file_id: str, mark: str) -> JobView: ...  # costs money, so it is never retried: see `find`

    def find(self, mark: str) -> JobView | None: ...  # a job that was created with this mark

    def look(self, job_id: str) -> JobView: ...

    def cancel(self, job_id: str) -> None: ...

    def answers(self, file_id: str) -> Iterator[LineAnswer]: ...  # of a result file, without unreadable lines

    def find_file(self, name: str) -> str: ...  # the id of an uploaded file; empty if not among the newest

    def delete_file(self, file_id: str) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class JobResults:
    """The results of a finished job."""

    vectors: Mapping[str, Vector]  # by the hash of the text
    failed: Mapping[str, str]  # hash to reason; an ordinary request may still embed these
    trouble: str = ""  # why the job as a whole failed; empty when it did not


class BatchJobs:
    """The jobs of one embedder at its provider, with their records."""

    def __init__(self, driver: JobDriver, ledger: Ledger, embedder: RemoteEmbedder) -> None:
        self._driver = driver
        self._ledger = ledger
        self._embedder = embedder
        self.title = embedder.api.title

    @property
    def identity(self) -> EmbedderIdentity:
        """The embedder of the jobs."""
        return self._embedder.identity

    def close(self) -> None:
        self._driver.close()

    def record_failures(self, count: int, last_error: str = "") -> None:
        """Record how many jobs of this run failed, and why the last one did."""
        self._ledger.record_failures(JobFailures(count, last_error, self._embedder.provider))

    def pending(self) -> list[JobRecord]:
        """Return the jobs of this embedder, oldest first; those of other models are kept."""
        return [record for record in self._ledger.records() if record.identity == self.identity]

    def tidy(self, days: float) -> None:
        """Delete leftovers of a crash, and records of other models whose results have expired."""
        self._ledger.tidy()
        for record in self._ledger.records():
            if record.identity != self.identity and time.time() - record.begun_at > days * 86_400:
                self._ledger.remove(record)

    # --- creating --------------------------------------------------------------------------------

    def accepts(self, text: str) -> bool:
        """Return whether a text is short enough for the model: a job cannot split it."""
        from notewell.embedding.providers.requests import pieces_of  # imports asyncio and NumPy

        return len(pieces_of(0, text, input_tokens=self._embedder.facts.input_tokens)) == 1

    def batches(self, texts: Iterator[tuple[str, str]]) -> Iterator[dict[str, bytes]]:
        """Yield the lines of one job at a time by text hash; `texts` is consumed as jobs are created."""
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
        """Create a job for these lines; raise RemoteFailure when it was not created, or cannot be found."""
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
        """Find or create the job of a record without id, which a killed process left; None if there is no job."""
        if not record.file_id:  # then there is no job, but perhaps an uploaded file
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
        """Look for a job whose creation was interrupted; if this raises, the record is kept: nothing is paid twice."""
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
        """Cancel a job and return its state; finished texts may be collected."""
        self._driver.cancel(record.job_id)
        return self.look(record)

    def collect(self, record: JobRecord, view: JobView) -> JobResults:
        """Return the vectors of a finished job; raise RemoteFailure when they cannot be fetched now."""
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
        """Delete the record and the files of a job whose vectors are stored; return how many files remain."""
        left = 0
        for file_id in (record.file_id, *(view.result_files if view else ())):
            left += not self._delete(file_id)
        self._ledger.remove(record)
        return left

    def _delete(self, file_id: str) -> bool:
        """Delete a file at the provider; return whether it is gone."""
        try:
            if file_id:
                self._driver.delete_file(file_id)
        except RemoteFailure as failure:
            return failure.kind in _FILE_GONE
        return True

    def _validated(self, rows: dict[str, Any]) -> tuple[dict[str, Vector], dict[str, str]]:
        """Return the valid vectors and the problems of the others, by text hash."""
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
    """Return whether the embedder's provider offers batch jobs."""
    from notewell.embedding.providers.embedder import RemoteEmbedder

    return isinstance(embedder, RemoteEmbedder) and embedder.provider in PROVIDERS


def open_jobs(embedder: Embedder, state_folder: Path) -> BatchJobs:
    """Return the jobs of an embedder that `supports_jobs`, without a call."""
    from notewell.embedding.job_apis import GeminiJobs, JobCalls, OpenAIFamilyJobs  # imports asyncio
    from notewell.embedding.providers.embedder import RemoteEmbedder

    assert isinstance(embedder, RemoteEmbedder)
    calls = JobCalls(embedder.service)
    driver: JobDriver = (
        GeminiJobs(calls, embedder) if embedder.provider == "gemini" else OpenAIFamilyJobs(calls, embedder)
    )
    return BatchJobs(driver, Ledger(state_folder), embedder)


# --- the records on disk; the texts themselves stay in the index -----------------------------------

FAILURES = "batch-failures.json"
_ENDING = ".json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job, from the intention to create it until its vectors are stored."""

    mark: str  # ours, in the job's metadata, by which it is found if its id was not recorded
    identity: EmbedderIdentity
    hashes: tuple[str, ...]  # of the texts
    begun_at: float  # seconds since 1970
    file_id: str = ""  # the uploaded input; empty until it is uploaded
    job_id: str = ""  # empty until the provider has returned it
    forgotten: frozenset[str] = field(default_factory=frozenset)  # hashes whose vectors are no longer wanted

    @property
    def wanted(self) -> frozenset[str]:
        """The hashes whose vectors are still wanted."""
        return frozenset(self.hashes) - self.forgotten


def new_record(identity: EmbedderIdentity, hashes: Collection[str]) -> JobRecord:
    """Return the record of a job that is about to be created."""
    return JobRecord(uuid4().hex, identity, tuple(hashes), time.time())


@dataclass(frozen=True, slots=True)
class JobFailures:
    """The failed jobs of the last run that made any."""

    count: int = 0
    last_error: str = ""
    last_provider: str = ""


class Ledger:
    """The pending jobs of one agent, and the failures of the last run."""

    def __init__(self, state_folder: Path) -> None:
        self._folder = state_folder / JOBS_FOLDER
        self._failures = state_folder / FAILURES

    def failures(self) -> JobFailures:
        """Return the failures of the last run."""
        try:
            value = json.loads(self._failures.read_text(encoding="utf-8"))
            return JobFailures(int(value["count"]), str(value["last_error"]), str(value["last_provider"]))
        except (OSError, ValueError, TypeError, KeyError):
            return JobFailures()

    def record_failures(self, failures: JobFailures) -> None:
        """Record the failures of a run for `status`, if possible."""
        with suppress(OSError):
            if failures.count:
                write_atomically(self._failures, json.dumps(asdict(failures)))
            else:
                self._failures.unlink(missing_ok=True)

    def records(self) -> list[JobRecord]:
        """Return the jobs, oldest first; `corrupt` names the files that are not records."""
        found = [record for path in self._files() if (record := _read(path)) is not None]
        return sorted(found, key=lambda record: (record.begun_at, record.mark))

    def corrupt(self) -> list[str]:
        """Return the names of unreadable records, whose jobs are not collected."""
        return [path.name for path in self._files() if _read(path) is None]

    def _files(self) -> list[Path]:
        try:
            return sorted(entry for entry in self._folder.iterdir() if entry.suffix == _ENDING)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise system_error(error) from error

    def write(self, record: JobRecord) -> None:
        """Store or replace a record durably."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(record), json.dumps(_as_json(record)))
        except OSError as error:
            raise system_error(error) from error

    def remove(self, record: JobRecord) -> None:
        """Delete the record of a job."""
        try:
            self._path(record).unlink(missing_ok=True)
        except OSError as error:
            raise system_error(error) from error
        with suppress(OSError):  # only when it is empty
            self._folder.rmdir()

    def tidy(self) -> None:
        """Delete drafts of a killed process, and the folder if it is empty; only for the holder of the write lock."""
        with suppress(OSError):
            for entry in self._folder.iterdir():
                if entry.suffix == DRAFT_SUFFIX:
                    entry.unlink(missing_ok=True)
            self._folder.rmdir()

    def forget(self, hashes: Collection[str]) -> int:
        """Stop waiting for the vectors of these texts; return how many were pending.

        Only for the holder of the write lock. The job continues, but the next run does not store these vectors, and
        cancels the job if it has no other texts.
        """
        dropped = frozenset(hashes)
        count = 0
        for record in self.records():
            if hit := record.wanted & dropped:
                self.write(replace(record, forgotten=record.forgotten | hit))
                count += len(hit)
        return count

    def _path(self, record: JobRecord) -> Path:
        return self._folder / f"{record.mark}{_ENDING}"


def _as_json(record: JobRecord) -> dict[str, object]:
    return {**asdict(record), "version": _VERSION, "forgotten": sorted(record.forgotten)}


def _read(path: Path) -> JobRecord | None:
    """Return a record; None for a file that is missing, corrupt or from a newer release."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["version"] != _VERSION:
            return None
        return JobRecord(
            mark=str(value["mark"]),
            identity=EmbedderIdentity(**value["identity"]),
            hashes=tuple(value["hashes"]),
            begun_at=float(value["begun_at"]),
            file_id=str(value["file_id"]),
            job_id=str(value["job_id"]),
            forgotten=frozenset(value["forgotten"]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
