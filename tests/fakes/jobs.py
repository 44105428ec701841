"""Files and batch jobs as a fake provider keeps them: a job runs when somebody has looked at it often enough."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.loopback import Request

Line = dict[str, Any]
RunLine = Callable[[Line, "Job", int], tuple[int, Any]]  # a line, its job and position in; status and answer out
WriteLine = Callable[[str, int, Any], Line]  # custom id, status, answer


@dataclass
class StoredFile:
    """One uploaded or written file."""

    id: str
    name: str
    purpose: str
    content: bytes
    created: int = field(default_factory=lambda: int(time.time()))


@dataclass
class Job:
    """One batch job and how far it is."""

    id: str
    request: dict[str, Any]  # what it was created with
    lines: list[Line]
    fault: str = ""
    state: str = "running"  # running, done, failed, expired, cancelled, unknown
    polls: int = 0
    output: str | None = None
    errors: str | None = None
    succeeded: int = 0
    failed: int = 0
    created: int = field(default_factory=lambda: int(time.time()))


class JobBook:
    """Every file and job of one provider."""

    def __init__(self, name_file: Callable[[int], str], name_job: Callable[[int], str]) -> None:
        self.files: dict[str, StoredFile] = {}
        self.jobs: dict[str, Job] = {}
        self.lock = threading.RLock()
        self._name_file = name_file
        self._name_job = name_job
        self._numbers = itertools.count(1)

    def keep(self, name: str, purpose: str, content: bytes) -> StoredFile:
        with self.lock:
            file = StoredFile(self._name_file(next(self._numbers)), name, purpose, content)
            self.files[file.id] = file
            return file

    def create(self, request: dict[str, Any], lines: list[Line], fault: str) -> Job:
        with self.lock:
            job = Job(self._name_job(next(self._numbers)), request, lines, fault)
            if fault == "batch_unknown_state":
                job.state = "unknown"
            self.jobs[job.id] = job
            return job

    def newest_first(self) -> list[Job]:
        with self.lock:
            return list(self.jobs.values())[::-1]

    def cancel(self, job: Job) -> None:
        with self.lock:
            if job.state in {"running", "unknown"}:
                job.state = "cancelled"

    def look(self, job: Job, *, polls_until_done: int, run: RunLine, write: WriteLine, id_field: str) -> None:
        """Let the job come as far as it does between two looks."""
        with self.lock:
            job.polls += 1
            if job.state != "running" or job.fault == "batch_stuck" or job.polls <= polls_until_done:
                return
            ends = {"batch_failed": "failed", "batch_cancelled": "cancelled", "batch_expired": "expired"}
            job.state = ends.get(job.fault, "done")
            if job.state in {"done", "expired"}:
                self._finish(job, run, write, id_field)

    def _finish(self, job: Job, run: RunLine, write: WriteLine, id_field: str) -> None:
        good: list[Line] = []
        bad: list[Line] = []
        for at, line in enumerate(job.lines):
            custom_id = str(line[id_field])
            if at % 2 and job.fault == "batch_expired":
                bad.append(
                    write(custom_id, 0, "This request could not be executed before the completion window expired.")
                )
                continue
            status, answer = (
                (500, "The server had an error") if at % 2 and job.fault == "batch_partial" else run(line, job, at)
            )
            (good if status == 200 else bad).append(write(custom_id, status, answer))
        job.succeeded, job.failed = len(good), len(bad)
        good.reverse()  # providers promise no order
        content = _output(job.fault, good, id_field)
        if good:
            job.output = self.keep("output.jsonl", "batch_output", content).id
            if job.fault == "batch_output_missing":
                del self.files[job.output]
        if bad:
            job.errors = self.keep("errors.jsonl", "batch_output", _jsonl(bad)).id


def _output(fault: str, good: list[Line], id_field: str) -> bytes:
    if fault == "batch_output_garbled":
        return b'{"custom_id": "1", "resp\n<html>'
    if fault == "batch_missing_lines":
        good = good[::2]
    elif fault == "batch_strange_ids" and good:
        good = [{**good[0], id_field: "nobody-asked"}, good[0], *good]
    return _jsonl(good)


def _jsonl(lines: list[Line]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def parse_lines(content: bytes) -> list[Line]:
    """Return the JSON objects of a JSONL file; a ValueError names the first line that is none."""
    lines = []
    for number, text in enumerate(content.decode().splitlines(), start=1):
        line = json.loads(text)
        if not isinstance(line, dict):
            raise ValueError(f"line {number} is not an object")  # noqa: TRY004  # one kind for all bad lines
        lines.append(line)
    return lines


def multipart_fields(request: Request) -> dict[str, tuple[str, bytes]]:
    """Return the fields of a form: name to file name ("" for a plain field) and content."""
    boundary = request.headers["content-type"].split("boundary=")[1].strip('"').encode()
    fields = {}
    for part in request.body.split(b"--" + boundary)[1:-1]:
        head, _, content = part.strip(b"\r\n").partition(b"\r\n\r\n") if b"\r\n\r\n" in part else (part, b"", b"")
        disposition = next(
            line for line in head.decode().splitlines() if line.lower().startswith("content-disposition")
        )
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', disposition))
        fields[attributes["name"]] = (attributes.get("filename", ""), content)
    return fields
