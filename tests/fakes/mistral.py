"""Mistral's embeddings, files and batch jobs, with its own states, limits and error bodies."""

from __future__ import annotations

import time
from typing import Any, ClassVar
from uuid import NAMESPACE_URL, uuid5

from tests.fakes.faults import BATCH_FAULTS, STATUS_FAULTS
from tests.fakes.jobs import Job, JobBook, StoredFile, parse_lines
from tests.fakes.loopback import Reply, Request
from tests.fakes.openai import FakeOpenAI, spoil_answer
from tests.fakes.provider import ApiFailure, retry_header
from tests.fakes.vectors import token_count

MAX_INPUTS = 512
MAX_INPUT_TOKENS = 8192
MAX_REQUEST_TOKENS = 16_384
MAX_BATCH_INPUTS = 1_000_000


def problem(message: str, *, kind: str = "invalid_request_error", code: str | None = None) -> dict[str, Any]:
    """Return an error in Mistral's envelope."""
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


class FakeMistral(FakeOpenAI):
    """`POST /v1/embeddings`, `/v1/files` and `/v1/batch/jobs`."""

    name = "mistral"
    default_dimensions = 1024
    key_prefix = ""
    batches_path = "/batch/jobs"
    states: ClassVar = {
        "running": "RUNNING",
        "done": "SUCCESS",
        "failed": "FAILED",
        "expired": "TIMEOUT_EXCEEDED",
        "cancelled": "CANCELLED",
        "unknown": "PONDERING",
    }

    def __init__(self, *, latency: float = 0.0, dimensions: int | None = None) -> None:
        super().__init__(latency=latency, dimensions=dimensions)
        self.book = JobBook(lambda number: _uuid("file", number), lambda number: _uuid("job", number))

    def refusal(self, given: str | None) -> ApiFailure:
        return ApiFailure(401, {"detail": "Unauthorized"})

    def failure(self, fault: str, retry_after: str | None) -> ApiFailure:
        bodies: dict[str, Any] = {
            "rate_limited": problem("Rate limit exceeded", kind="rate_limited", code="1300"),
            "quota": problem("Monthly usage limit reached: quota exceeded", kind="insufficient_quota", code="1302"),
            "unauthorized": {"detail": "Unauthorized"},
            "bad_request": problem("Invalid request", kind="invalid_request_prompt", code="3200"),
            "500": problem("Service error", kind="internal_server_error", code="3000"),
            "503": problem("Service unavailable.", kind="internal_server_error", code="3505"),
        }
        return ApiFailure(STATUS_FAULTS[fault], bodies[fault], **retry_header(retry_after))

    def respond(self, request: Request) -> Reply:
        if not self.route_of(request):
            raise ApiFailure(404, {"message": "no Route matched with those values"})
        try:
            return super().respond(request)
        except ApiFailure as failure:
            body = parse_lines(failure.reply.body)[0]
            if "error" not in body:
                raise
            raise ApiFailure(failure.reply.status, problem(body["error"]["message"])) from failure

    def inputs(self, body: dict[str, Any]) -> list[str]:
        for name in ("model", "input"):
            if not body.get(name):
                missing = {"type": "missing", "loc": ["body", name], "msg": "Field required", "input": {}}
                raise ApiFailure(422, {"detail": [missing]})
        return super().inputs(body)

    def check_limits(self, texts: list[str], body: dict[str, Any]) -> None:
        if self.poisoned(texts):
            raise ApiFailure(400, problem("Invalid input", kind="invalid_request_prompt", code="3200"))
        if len(texts) > MAX_INPUTS:
            message = "Too many inputs in request, split into more batches."
            raise ApiFailure(400, problem(message, kind="invalid_request_prompt", code="3210"))
        counts = [token_count(text) for text in texts]
        if max(counts) > MAX_INPUT_TOKENS:
            at = counts.index(max(counts))
            message = f"Input id {at} has {counts[at]} tokens, exceeding max {MAX_INPUT_TOKENS} tokens."
            raise ApiFailure(400, problem(message, kind="invalid_request_prompt", code="3051"))
        if sum(counts) > MAX_REQUEST_TOKENS:
            message = f"Too many tokens in batch. Max is {MAX_REQUEST_TOKENS} got {sum(counts)}"
            raise ApiFailure(400, problem(message))

    def size_asked(self, body: dict[str, Any]) -> int:
        asked = body.get("output_dimension")
        if asked is None:
            return self.dimensions
        if body["model"] == "mistral-embed" or not isinstance(asked, int) or not 1 <= asked <= 3072:
            raise ApiFailure(
                400, problem("This model does not support output_dimension.", kind="invalid_request_prompt")
            )
        return asked

    def embeddings(self, body: dict[str, Any], texts: Any, vectors: Any, order: str) -> Any:
        answer = super().embeddings(body, texts, vectors, order)
        return {"id": "embd-1", **answer, "usage": {**answer["usage"], "completion_tokens": 0}}

    # --- files and jobs --------------------------------------------------------------------------

    def file_object(self, file: StoredFile) -> dict[str, Any]:
        return {
            "id": file.id,
            "object": "file",
            "bytes": len(file.content),
            "created_at": file.created,
            "filename": file.name,
            "purpose": "batch",
            "sample_type": "batch_request",
            "num_lines": file.content.count(b"\n"),
            "source": "upload",
            "deleted": False,
        }

    def _create(self, request: Request) -> Any:
        body = request.json or {}
        for name in ("endpoint", "input_files"):
            if not body.get(name):
                missing = {"type": "missing", "loc": ["body", name], "msg": "Field required", "input": {}}
                raise ApiFailure(422, {"detail": [missing]})
        if body["endpoint"] != "/v1/embeddings" or not body.get("model"):
            raise ApiFailure(400, problem("A job for /v1/embeddings needs its endpoint and a model."))
        lines = [line for name in body["input_files"] for line in self.job_lines(self._stored(name).content)]
        return self.job_object(self.book.create(body, lines, self.take_fault("create", BATCH_FAULTS)))

    def job_lines(self, content: bytes) -> list[dict[str, Any]]:
        try:
            lines = parse_lines(content)
            ids = [line["custom_id"] for line in lines]
            bodies = [line["body"]["input"] for line in lines]
        except (ValueError, KeyError) as error:
            raise ApiFailure(422, problem(f"Invalid file format: {error}")) from error
        if len(set(ids)) < len(ids) or len(bodies) > MAX_BATCH_INPUTS:
            raise ApiFailure(422, problem("Invalid file format: custom_id must be unique, at most 1000000 lines."))
        return lines

    def run_line(self, line: dict[str, Any], job: Job, at: int) -> tuple[int, Any]:
        try:
            answer = self.embed({"model": job.request["model"], **line["body"]}, in_job=True)
        except ApiFailure as failure:
            return failure.reply.status, parse_lines(failure.reply.body)[0]
        spoil_answer(job.fault, answer["data"], odd=at % 2 == 1)
        return 200, answer

    def _list(self, request: Request) -> Any:
        jobs = self.book.newest_first()
        size = min(100, int(request.query.get("page_size", 100)))
        page = int(request.query.get("page", 0))
        shown = [self.job_object(job) for job in jobs[page * size : (page + 1) * size]]
        return {"object": "list", "data": shown, "total": len(jobs)}

    def job_object(self, job: Job) -> dict[str, Any]:
        failed = job.state == "failed"
        ended = job.state not in {"running", "unknown"}
        return {
            "id": job.id,
            "object": "batch",
            "input_files": job.request["input_files"],
            "endpoint": job.request["endpoint"],
            "model": job.request.get("model"),
            "metadata": job.request.get("metadata"),
            "errors": [{"message": "The job could not be started.", "count": 1}] if failed else [],
            "status": self.states[job.state],
            "output_file": job.output,
            "error_file": job.errors,
            "created_at": job.created,
            "started_at": job.created,
            "completed_at": int(time.time()) if ended else None,
            "total_requests": len(job.lines),
            "completed_requests": job.succeeded + job.failed,
            "succeeded_requests": job.succeeded,
            "failed_requests": job.failed,
        }


def _uuid(kind: str, number: int) -> str:
    return str(uuid5(NAMESPACE_URL, f"{kind}/{number}"))
