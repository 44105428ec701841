"""Texts in, jobs that outlive this process made of them, checked vectors out: each step is recorded before the next.

A job is paid for once it is created. So the intention and the uploaded file are on disk before that, and a job whose
creation was not seen to end is looked for by its mark before another one is made.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from notewell.embedding.batch.driver import JobDriver, JobView
from notewell.embedding.batch.ledger import JobRecord, Ledger, new_record
from notewell.embedding.http.failures import FailureKind, RemoteFailure
from notewell.embedding.http.replies import sendable, without_secrets
from notewell.embedding.providers.packing import pieces_of

if TYPE_CHECKING:
    from notewell.embedding.providers.embedder import RemoteEmbedder
    from notewell.protocols import Vector
    from notewell.types import EmbedderIdentity

MOST_BYTES = 32_000_000  # of an input or a result file, which is held in memory: some 3,700 texts of 1,536 numbers
LOOK_AGAIN_S = 2.0  # a job that was just created may not be listed at once
CHECKED_AT_ONCE = 512  # rows: checking is done with twice the digits, which takes room
SHORT_HASH = 32  # characters of a text's hash that name its line: no two of a million texts share them

# The provider said no: nothing was begun. After anything else the job may be there, unseen.
_NOTHING_BEGUN: frozenset[FailureKind] = frozenset({"key", "quota", "refused", "missing", "rate_limited"})
# A result file that is gone, in the words of four providers: Gemini calls a file that is not there forbidden.
_FILE_GONE: frozenset[FailureKind] = frozenset({"missing", "refused", "key"})


@dataclass(frozen=True, slots=True)
class Harvest:
    """What a finished job gave."""

    vectors: Mapping[str, Vector]  # by the hash of the text
    failed: Mapping[str, str]  # hash to reason; the ordinary way may still embed these
    trouble: str = ""  # why the job as a whole counts as failed; empty when it does not


class BatchJobs:
    """The jobs of one embedder at its provider, and their records."""

    def __init__(
        self,
        driver: JobDriver,
        ledger: Ledger,
        embedder: RemoteEmbedder,
        *,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._driver = driver
        self._ledger = ledger
        self._embedder = embedder
        self._pause = pause
        self.title = embedder.api.title

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors the jobs give."""
        return self._embedder.identity

    def close(self) -> None:
        self._driver.close()

    # --- what is under way -----------------------------------------------------------------------

    def under_way(self) -> list[JobRecord]:
        """Return the jobs of this embedder, oldest first; those of other models wait until their model is back."""
        return [record for record in self._ledger.records() if record.identity == self.identity]

    def tidy(self, days: float) -> None:
        """Forget the jobs of other models that are so old that their results are gone, and what a crash has left."""
        self._ledger.tidy()
        for record in self._ledger.records():
            if record.identity != self.identity and time.time() - record.begun_at > days * 86_400:
                self._ledger.remove(record)

    # --- making jobs -----------------------------------------------------------------------------

    def takes(self, text: str) -> bool:
        """Say whether a text fits into a line; one that is too long for the model must be split, which jobs cannot."""
        return len(pieces_of(0, text, input_tokens=self._embedder.facts.input_tokens)) == 1

    def loads(self, texts: Iterator[tuple[str, str]]) -> Iterator[dict[str, bytes]]:
        """Yield lines by text hash, as many at once as one job takes; `texts` is only drawn from as jobs are made."""
        most = min(
            self._driver.inputs_a_job, int(MOST_BYTES / (self.identity.dimensions * self._driver.bytes_a_number + 400))
        )
        load: dict[str, bytes] = {}
        size = 0
        for text_hash, text in texts:
            line = self._line(text_hash, text)
            if load and (len(load) >= most or size + len(line) > MOST_BYTES):
                yield load
                load, size = {}, 0
            load[text_hash] = line
            size += len(line)
        if load:
            yield load

    def submit(self, load: Mapping[str, bytes]) -> JobRecord:
        """Make a job of these lines; raises RemoteFailure when there is none, or none that we could see."""
        record = new_record(self.identity, load)
        self._ledger.write(record)
        try:
            file_id = self._driver.upload(_file_name(record), b"".join(load.values()))
        except RemoteFailure:
            self._ledger.remove(record)
            raise
        record = replace(record, file_id=file_id)
        self._ledger.write(record)
        return self._begin(record)

    def recover(self, record: JobRecord) -> JobRecord | None:
        """Find out what became of a job without an id, left by a process that was ended; None when there is no job."""
        if not record.file_id:  # without a recorded file nothing was created, but it may have been uploaded
            self._deleted(self._driver.find_file(_file_name(record)))
            self._ledger.remove(record)
            return None
        view = self._driver.find(record.mark)
        if view is not None:
            return self._recorded(record, view)
        try:
            return self._begin(record)
        except RemoteFailure as failure:
            if failure.kind in _NOTHING_BEGUN:
                return None
            raise

    def _begin(self, record: JobRecord) -> JobRecord:
        try:
            view: JobView | None = self._driver.create(record.file_id, record.mark)
        except RemoteFailure as failure:
            view = None if failure.kind in _NOTHING_BEGUN else self._found_after_all(record)
            if view is None:
                self._drop(record)
                raise
        assert view is not None
        return self._recorded(record, view)

    def _found_after_all(self, record: JobRecord) -> JobView | None:
        """Look for a job whose creation was cut off; if that fails, its record stays, and nothing is paid twice."""
        view = self._driver.find(record.mark)
        if view is None:
            self._pause(LOOK_AGAIN_S)
            view = self._driver.find(record.mark)
        return view

    def _recorded(self, record: JobRecord, view: JobView) -> JobRecord:
        record = replace(record, job_id=view.id)
        self._ledger.write(record)
        return record

    def _line(self, text_hash: str, text: str) -> bytes:
        sent = sendable(self._embedder.facts.document_prefix + (text if text.strip() else "-"))
        return json.dumps(self._driver.line(text_hash[:SHORT_HASH], sent), ensure_ascii=False).encode() + b"\n"

    # --- looking and collecting ------------------------------------------------------------------

    def look(self, record: JobRecord) -> JobView:
        """Ask after a job; one that the provider does not know any more has failed."""
        try:
            return self._driver.look(record.job_id)
        except RemoteFailure as failure:
            if failure.kind != "missing":
                raise
            return JobView(record.job_id, "failed", "gone", f"{self.title} does not know it any more")

    def cancel(self, record: JobRecord) -> JobView:
        """End a job before its time; return how it stands then. What it did until then may be collected."""
        self._driver.cancel(record.job_id)
        return self.look(record)

    def harvest(self, record: JobRecord, view: JobView) -> Harvest:
        """Return the vectors of a job that is over; raises RemoteFailure when they cannot be fetched now."""
        rows: dict[str, Any] = {}
        reasons: dict[str, str] = {}
        by_line = {text_hash[:SHORT_HASH]: text_hash for text_hash in record.hashes}
        trouble = "" if view.state == "done" else f"{view.said}{': ' if view.reason else ''}{view.reason}"
        for file_id in view.result_files:
            try:
                for answer in self._driver.answers(file_id):
                    text_hash = by_line.get(answer.custom_id)  # lines that nobody asked for have none
                    if text_hash is None:
                        continue
                    if answer.reason:
                        reasons[text_hash] = without_secrets(answer.reason, self._embedder.service.secrets)
                    else:
                        rows.setdefault(text_hash, answer.row)
            except RemoteFailure as failure:
                if failure.kind not in _FILE_GONE:
                    raise
                trouble = trouble or f"its results are not there: {failure.message}"
        vectors, wrong = self._checked({key: row for key, row in rows.items() if key in record.wanted})
        failed = {key: wrong.get(key) or reasons.get(key) or "no answer" for key in record.wanted if key not in vectors}
        if record.wanted and not vectors and not trouble:
            trouble = f"none of its answers can be used: {next(iter(failed.values()))}"
        return Harvest(vectors, failed, trouble)

    def finish(self, record: JobRecord, view: JobView | None) -> int:
        """Forget a job whose vectors are stored, and delete its files; return how many could not be deleted."""
        left = 0
        for file_id in (record.file_id, *(view.result_files if view else ())):
            left += not self._deleted(file_id)
        self._ledger.remove(record)
        return left

    def _drop(self, record: JobRecord) -> None:
        self._deleted(record.file_id)
        self._ledger.remove(record)

    def _deleted(self, file_id: str) -> bool:
        try:
            if file_id:
                self._driver.delete_file(file_id)
        except RemoteFailure as failure:
            return failure.kind in _FILE_GONE
        return True

    def _checked(self, rows: dict[str, Any]) -> tuple[dict[str, Vector], dict[str, str]]:
        from notewell.embedding.checks import sound_rows  # imports NumPy

        if not rows:
            return {}, {}
        dimensions = self.identity.dimensions
        good: dict[str, Vector] = {}
        bad: dict[str, str] = {}
        keys = list(rows)
        for first in range(0, len(keys), CHECKED_AT_ONCE):
            block = keys[first : first + CHECKED_AT_ONCE]
            matrix, wrong = sound_rows([rows.pop(key) for key in block], dimensions=dimensions)
            good |= {key: matrix[at] for at, key in enumerate(block) if at not in wrong}
            bad |= {block[at]: why for at, why in wrong.items()}
        return good, bad


def _file_name(record: JobRecord) -> str:
    return f"notewell-{record.mark}.jsonl"
