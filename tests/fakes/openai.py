"""OpenAI's embeddings, files and batches as its API answers them; compatible servers answer alike."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from tests.fakes.faults import BATCH_FAULTS, INDEX_FAULTS, STATUS_FAULTS, spoil_order
from tests.fakes.jobs import Job, JobBook, StoredFile, multipart_fields, parse_lines
from tests.fakes.loopback import Reply, Request, json_reply
from tests.fakes.provider import ApiFailure, FakeProvider, retry_header
from tests.fakes.vectors import as_base64, token_count

MAX_INPUTS = 2048
MAX_INPUT_TOKENS = 8192
MAX_REQUEST_TOKENS = 300_000
MAX_BATCH_INPUTS = 50_000
MAX_FILE_BYTES = 200_000_000
FULL_DIMENSIONS = {"text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}


def problem(
    message: str, *, kind: str = "invalid_request_error", param: str | None = None, code: str | None = None
) -> Any:
    """Return an error in OpenAI's envelope."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


class FakeOpenAI(FakeProvider):
    """`POST /v1/embeddings`, `/v1/files` and `/v1/batches`."""

    name = "openai"
    default_dimensions = 1536
    key_prefix = "sk-proj-"
    completion_window = "24h"
    batches_path = "/batches"
    states: ClassVar = {
        "running": "in_progress",
        "done": "completed",
        "failed": "failed",
        "expired": "expired",
        "cancelled": "cancelled",
        "unknown": "pondering",
    }

    def __init__(self, *, latency: float = 0.0, dimensions: int | None = None) -> None:
        super().__init__(latency=latency, dimensions=dimensions)
        self.book = JobBook(lambda number: f"file-{number:08x}", lambda number: f"batch_{number:08x}")

    # --- routes ----------------------------------------------------------------------------------

    def route_of(self, request: Request) -> str:
        path = request.path.removeprefix(self.prefix)
        if path == "/embeddings" and request.method == "POST":
            return "embed"
        if path.startswith("/files"):
            return self._file_route(request.method, path)
        if path.startswith(self.batches_path):
            rest = path.removeprefix(self.batches_path)
            if not rest:
                return "create" if request.method == "POST" else "list"
            return "cancel" if rest.endswith("/cancel") else "poll"
        return "models" if path == "/models" else ""

    @staticmethod
    def _file_route(method: str, path: str) -> str:
        if path.endswith("/content"):
            return "download"
        if path == "/files":
            return "upload" if method == "POST" else "files"
        return "delete_file" if method == "DELETE" else "file"

    def respond(self, request: Request) -> Reply:
        route = self.route_of(request)
        answer = getattr(self, f"_{route}", None) if route else None
        if answer is None:
            raise ApiFailure(404, problem(f"Invalid URL ({request.method} {request.path})"))
        result = answer(request)
        return result if isinstance(result, Reply) else json_reply(result)

    def refusal(self, given: str | None) -> ApiFailure:
        if not given:
            return ApiFailure(
                401,
                problem("You didn't provide an API key in an Authorization header using Bearer auth."),
            )
        key = given.removeprefix("Bearer ")
        shown = f"{key[:8]}{'*' * 24}{key[-4:]}"
        return ApiFailure(401, problem(f"Incorrect API key provided: {shown}.", code="invalid_api_key"))

    def failure(self, fault: str, retry_after: str | None) -> ApiFailure:
        bodies = {
            "rate_limited": problem(
                "Rate limit reached for text-embedding-3-small in organization org-1 on tokens per min (TPM): "
                "Limit 1000000, Used 999000, Requested 8000. Please try again in 420ms.",
                kind="tokens",
                code="rate_limit_exceeded",
            ),
            "quota": problem(
                "You exceeded your current quota, please check your plan and billing details.",
                kind="insufficient_quota",
                code="insufficient_quota",
            ),
            "unauthorized": problem("Incorrect API key provided.", code="invalid_api_key"),
            "bad_request": problem("'$.input' is invalid. Please check the API reference.", param="input"),
            "500": problem(
                "The server had an error while processing your request. Sorry about that!", kind="server_error"
            ),
            "503": problem("The engine is currently overloaded, please try again later.", kind="service_unavailable"),
        }
        return ApiFailure(STATUS_FAULTS[fault], bodies[fault], **retry_header(retry_after))

    # --- embeddings ------------------------------------------------------------------------------

    def _embed(self, request: Request) -> Any:
        body = request.json
        if not isinstance(body, dict):
            raise ApiFailure(400, problem("We could not parse the JSON body of your request."))
        return self.embed(body)

    def embed(self, body: dict[str, Any], *, in_job: bool = False) -> Any:
        """Answer one embeddings request, on its own or as a line of a batch."""
        texts = self.inputs(body)
        self.check_limits(texts, body)
        size = self.size_asked(body)
        vectors = self.vectors(texts, size, side=self.side_of(body), model=body["model"], in_job=in_job)
        order = "" if in_job else self.take_fault("embed", INDEX_FAULTS)
        return self.embeddings(body, texts, vectors, order)

    def embeddings(self, body: dict[str, Any], texts: list[str], vectors: list[np.ndarray], order: str) -> Any:
        in_base64 = body.get("encoding_format") == "base64"
        rows = [
            {"object": "embedding", "index": at, "embedding": as_base64(vector) if in_base64 else vector.tolist()}
            for at, vector in enumerate(vectors)
        ]
        tokens = sum(map(token_count, texts))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": spoil_order(order, rows), "model": body["model"], "usage": usage}

    def inputs(self, body: dict[str, Any]) -> list[str]:
        if not body.get("model"):
            raise ApiFailure(400, problem("you must provide a model parameter"))
        given = body.get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            raise ApiFailure(400, problem("'$.input' is invalid. Please check the API reference.", param="input"))
        return texts

    def check_limits(self, texts: list[str], body: dict[str, Any]) -> None:
        if self.poisoned(texts):
            raise ApiFailure(400, problem("'$.input' is invalid. Please check the API reference.", param="input"))
        if len(texts) > MAX_INPUTS:
            message = (
                f"Invalid 'input': array too long. Expected an array with maximum length {MAX_INPUTS}, "
                f"but got an array with length {len(texts)} instead."
            )
            raise ApiFailure(400, problem(message, param="input", code="array_above_max_length"))
        counts = [token_count(text) for text in texts]
        if max(counts) > MAX_INPUT_TOKENS:
            message = (
                f"This model's maximum context length is {MAX_INPUT_TOKENS} tokens, however you requested "
                f"{max(counts)} tokens ({max(counts)} in your prompt; 0 for the completion). Please reduce your prompt."
            )
            raise ApiFailure(400, problem(message))
        if sum(counts) > MAX_REQUEST_TOKENS:
            message = f"Requested {sum(counts)} tokens, max {MAX_REQUEST_TOKENS} tokens per request"
            kind = "max_tokens_per_request"
            raise ApiFailure(400, problem(message, kind=kind, code=kind))

    def size_asked(self, body: dict[str, Any]) -> int:
        full = (
            FULL_DIMENSIONS.get(body["model"], self.dimensions)
            if self.dimensions == self.default_dimensions
            else self.dimensions
        )
        asked = body.get("dimensions")
        if asked is None:
            return full
        if body["model"] == "text-embedding-ada-002":
            raise ApiFailure(400, problem("This model does not support specifying dimensions.", param="dimensions"))
        if not isinstance(asked, int) or not 1 <= asked <= full:
            raise ApiFailure(
                400, problem(f"Invalid value for 'dimensions' = {asked}. Must be at most {full}.", param="dimensions")
            )
        return asked

    def side_of(self, body: dict[str, Any]) -> str:
        """Return which side of retrieval the vectors are for; OpenAI's have none."""
        return ""

    def _models(self, request: Request) -> Any:
        return {"object": "list", "data": [{"id": "text-embedding-3-small", "object": "model", "owned_by": "system"}]}

    # --- files -----------------------------------------------------------------------------------

    def _upload(self, request: Request) -> Any:
        fields = multipart_fields(request)
        purpose = fields.get("purpose", ("", b""))[1].decode()
        if purpose != "batch":
            raise ApiFailure(
                400, problem(f"'{purpose}' is not one of ['fine-tune', 'batch'] - 'purpose'", param="purpose")
            )
        if "file" not in fields or not fields["file"][1]:
            raise ApiFailure(400, problem("'file' is a required property", param="file"))
        name, content = fields["file"]
        if len(content) > MAX_FILE_BYTES:
            raise ApiFailure(413, problem("Maximum content size limit exceeded."))
        return self.file_object(self.book.keep(name, purpose, content))

    def file_object(self, file: StoredFile) -> dict[str, Any]:
        return {
            "id": file.id,
            "object": "file",
            "bytes": len(file.content),
            "created_at": file.created,
            "filename": file.name,
            "purpose": file.purpose,
            "status": "processed",
        }

    def _file(self, request: Request) -> Any:
        return self.file_object(self._stored(request.path.rsplit("/", 1)[1]))

    def _files(self, request: Request) -> Any:
        return {
            "object": "list",
            "data": [self.file_object(file) for file in reversed(self.book.files.values())],
            "has_more": False,
        }

    def _delete_file(self, request: Request) -> Any:
        file = self._stored(request.path.rsplit("/", 1)[1])
        del self.book.files[file.id]
        return {"id": file.id, "object": "file", "deleted": True}

    def _download(self, request: Request) -> Reply:
        file = self._stored(request.path.split("/")[-2])
        return Reply(200, file.content, content_type="application/octet-stream")

    def _stored(self, file_id: str) -> StoredFile:
        if file_id not in self.book.files:
            raise ApiFailure(404, problem(f"No such File object: {file_id}", param="id"))
        return self.book.files[file_id]

    # --- batch jobs ------------------------------------------------------------------------------

    def _create(self, request: Request) -> Any:
        body = request.json or {}
        self.check_job(body)
        lines = self.job_lines(self._stored(body["input_file_id"]).content)
        fault = self.take_fault("create", BATCH_FAULTS)
        return self.job_object(self.book.create(body, lines, fault))

    def check_job(self, body: dict[str, Any]) -> None:
        for name in ("input_file_id", "endpoint", "completion_window"):
            if not body.get(name):
                raise ApiFailure(
                    400,
                    problem(f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter"),
                )
        if body["endpoint"] != "/v1/embeddings":
            raise ApiFailure(
                400, problem(f"Invalid value: '{body['endpoint']}'.", param="endpoint", code="invalid_value")
            )
        if body["completion_window"] != self.completion_window:
            raise ApiFailure(
                400,
                problem(f"Invalid value. Supported values are: '{self.completion_window}'.", param="completion_window"),
            )
        metadata = body.get("metadata") or {}
        if len(metadata) > 16 or any(len(str(key)) > 64 or len(str(value)) > 512 for key, value in metadata.items()):
            raise ApiFailure(
                400, problem("Invalid 'metadata': at most 16 pairs of 64 and 512 characters.", param="metadata")
            )

    def job_lines(self, content: bytes) -> list[dict[str, Any]]:
        try:
            lines = parse_lines(content)
            ids = [line["custom_id"] for line in lines]
            inputs = sum(
                len(self.inputs(self.line_body(line))) if not isinstance(self.line_body(line)["input"], str) else 1
                for line in lines
            )
        except (ValueError, KeyError) as error:
            raise ApiFailure(
                400, problem(f"The input file is not valid JSONL: {error}", code="invalid_json_line")
            ) from error
        if len(set(ids)) < len(ids):
            raise ApiFailure(400, problem("The custom_id of a line was used before.", code="duplicate_custom_id"))
        if inputs > MAX_BATCH_INPUTS:
            raise ApiFailure(400, problem("The batch has more than 50000 embedding inputs.", code="too_many_tasks"))
        return lines

    def line_body(self, line: dict[str, Any]) -> dict[str, Any]:
        if line.get("method") != "POST" or line.get("url") != "/v1/embeddings":
            raise ValueError("every line needs method POST and the url of the endpoint")
        return dict(line["body"])

    def run_line(self, line: dict[str, Any], job: Job, at: int) -> tuple[int, Any]:
        body = self.line_body(line)
        try:
            answer = self.embed(body, in_job=True)
        except ApiFailure as failure:
            return failure.reply.status, parse_lines(failure.reply.body)[0]
        spoil_answer(job.fault, answer["data"], odd=at % 2 == 1)
        return 200, answer

    def write_line(self, custom_id: str, status: int, answer: Any) -> dict[str, Any]:
        line: dict[str, Any] = {"id": f"batch_req_{custom_id}", "custom_id": custom_id, "response": None, "error": None}
        if not status:
            return {**line, "error": {"code": "batch_expired", "message": answer}}
        body = answer if isinstance(answer, dict) else problem(answer, kind="server_error")
        return {**line, "response": {"status_code": status, "request_id": f"req_{custom_id}", "body": body}}

    def _poll(self, request: Request) -> Any:
        job = self._job(request.path.rsplit("/", 1)[1])
        self.advance(job)
        return self.job_object(job)

    def advance(self, job: Job) -> None:
        if not self.hold_jobs:
            self.book.look(
                job,
                polls_until_done=self.polls_until_done,
                run=self.run_line,
                write=self.write_line,
                id_field="custom_id",
            )

    def _cancel(self, request: Request) -> Any:
        job = self._job(request.path.split("/")[-2])
        self.book.cancel(job)
        return self.job_object(job)

    def _list(self, request: Request) -> Any:
        jobs = self.book.newest_first()
        after = request.query.get("after")
        if after:
            jobs = jobs[[job.id for job in jobs].index(after) + 1 :]
        limit = min(100, int(request.query.get("limit", 20)))
        page = [self.job_object(job) for job in jobs[:limit]]
        edges = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
        return {"object": "list", "data": page, "has_more": len(jobs) > limit, **edges}

    def _job(self, job_id: str) -> Job:
        if job_id not in self.book.jobs:
            raise ApiFailure(404, problem(f"No batch found with id '{job_id}'."))
        return self.book.jobs[job_id]

    def job_object(self, job: Job) -> dict[str, Any]:
        failed = job.state == "failed"
        errors = {
            "object": "list",
            "data": [
                {
                    "code": "token_limit_exceeded",
                    "message": "Enqueued token limit reached.",
                    "line": None,
                    "param": None,
                }
            ],
        }
        return {
            "id": job.id,
            "object": "batch",
            "endpoint": job.request["endpoint"],
            "errors": errors if failed else None,
            "input_file_id": job.request.get("input_file_id"),
            "completion_window": self.completion_window,
            "status": self.states[job.state],
            "output_file_id": job.output,
            "error_file_id": job.errors,
            "created_at": job.created,
            "in_progress_at": job.created,
            "expires_at": job.created + 86_400,
            "completed_at": int(time.time()) if job.state == "done" else None,
            "request_counts": {"total": len(job.lines), "completed": job.succeeded, "failed": job.failed},
            "metadata": job.request.get("metadata"),
        }


def spoil_answer(fault: str, rows: list[dict[str, Any]], *, odd: bool) -> None:
    """Put into a batch line what the fate of its job says."""
    for row in rows:
        if fault == "batch_bad_vectors" and odd:
            row["embedding"] = [float("nan")] * 8
        elif fault == "batch_wrong_dimensions":
            row["embedding"] = row["embedding"][:-4]
