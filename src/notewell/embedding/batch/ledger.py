"""Records pending batch jobs on disk, so that they survive a crash.

There is one file per job. It names the texts by their hashes; the texts themselves stay in the index.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from notewell.errors import system_error
from notewell.files.atomic import DRAFT_SUFFIX, write_atomically
from notewell.types import EmbedderIdentity

FOLDER = "batch-jobs"
FAILURES = "batch-failures.json"
_ENDING = ".json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job, from the intention to create it until its vectors are stored."""

    mark: str  # ours; the job carries it, so that it is found even if its id could not be recorded
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
        self._folder = state_folder / FOLDER
        self._failures = state_folder / FAILURES

    def failures(self) -> JobFailures:
        """Return the failures of the last run; none where they are not recorded."""
        try:
            value = json.loads(self._failures.read_text(encoding="utf-8"))
            return JobFailures(int(value["count"]), str(value["last_error"]), str(value["last_provider"]))
        except (OSError, ValueError, TypeError, KeyError):
            return JobFailures()

    def record_failures(self, failures: JobFailures) -> None:
        """Keep the failures of a run for `status`; one that cannot be written changes nothing for the run."""
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
        """Return the names of records that cannot be read: their jobs are not collected."""
        return [path.name for path in self._files() if _read(path) is None]

    def _files(self) -> list[Path]:
        try:
            return sorted(entry for entry in self._folder.iterdir() if entry.suffix == _ENDING)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise system_error(error) from error

    def write(self, record: JobRecord) -> None:
        """Store a record, in place of an older one of the same job; it is durable when this returns."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(record), json.dumps(_as_json(record)))
        except OSError as error:
            raise system_error(error) from error

    def remove(self, record: JobRecord) -> None:
        """Forget a job whose vectors are stored, or that will give none."""
        try:
            self._path(record).unlink(missing_ok=True)
        except OSError as error:
            raise system_error(error) from error
        with suppress(OSError):  # only when it is empty
            self._folder.rmdir()

    def tidy(self) -> None:
        """Delete drafts that a killed process has left, and the folder when it is empty.

        Only for the holder of the write lock: a draft that is being written looks the same.
        """
        with suppress(OSError):
            for entry in self._folder.iterdir():
                if entry.suffix == DRAFT_SUFFIX:
                    entry.unlink(missing_ok=True)
            self._folder.rmdir()

    def forget(self, hashes: Collection[str]) -> int:
        """Stop waiting for the vectors of these texts; return how many were pending.

        Only for the holder of the write lock. The job itself continues: the next run stores no vector of these texts,
        and cancels the job if nothing else is wanted from it.
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
    """Return a record; None for a file that is gone, corrupt or written by a newer release."""
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
