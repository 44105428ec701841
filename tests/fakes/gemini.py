"""Gemini's embeddings, resumable uploads and batches, with google.rpc errors; version v1 answers as v1beta does."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import numpy as np

from tests.fakes.faults import BATCH_FAULTS, STATUS_FAULTS
from tests.fakes.jobs import Job, JobBook, parse_lines
from tests.fakes.loopback import Reply, Request, json_reply
from tests.fakes.provider import ApiFailure, FakeProvider, retry_header

MAX_REQUESTS = 100
MAX_TEXT_BYTES = 36_000  # "Request payload size exceeds the limit"; measured on the text here
MAX_DIMENSIONS = 3072
TASK_TYPES = {
    "RETRIEVAL_QUERY",
    "RETRIEVAL_DOCUMENT",
    "SEMANTIC_SIMILARITY",
    "CLASSIFICATION",
    "CLUSTERING",
    "QUESTION_ANSWERING",
    "FACT_VERIFICATION",
    "CODE_RETRIEVAL_QUERY",
    "TASK_TYPE_UNSPECIFIED",
}
STATES = {
    "running": "BATCH_STATE_RUNNING",
    "done": "BATCH_STATE_SUCCEEDED",
    "failed": "BATCH_STATE_FAILED",
    "expired": "BATCH_STATE_EXPIRED",
    "cancelled": "BATCH_STATE_CANCELLED",
    "unknown": "BATCH_STATE_PONDERING",
}
ROUTES = (
    ("POST", r"/v1(?:beta)?/models/[^/:]+:batchEmbedContents", "embed"),
    ("POST", r"/v1(?:beta)?/models/[^/:]+:embedContent", "embed"),
    ("POST", r"/v1(?:beta)?/models/[^/:]+:asyncBatchEmbedContent", "create"),
    ("POST", r"/upload/v1(?:beta)?/files", "upload"),
    ("GET", r"/v1(?:beta)?/batches", "list"),
    ("GET", r"/v1(?:beta)?/batches/[^/:]+", "poll"),
    ("POST", r"/v1(?:beta)?/batches/[^/:]+:cancel", "cancel"),
    ("GET", r"/v1(?:beta)?/files/[^/:]+:download", "download"),
    ("GET", r"/v1(?:beta)?/files/[^/:]+", "file"),
    ("DELETE", r"/v1(?:beta)?/files/[^/:]+", "delete_file"),
    ("GET", r"/v1(?:beta)?/files", "files"),
)


def problem(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    """Return an error as google.rpc writes it."""
    return {
        "error": {"code": code, "message": message, "status": status, **({"details": list(details)} if details else {})}
    }


def invalid(message: str) -> ApiFailure:
    return ApiFailure(400, problem(400, "INVALID_ARGUMENT", message))


class FakeGemini(FakeProvider):
    """`:batchEmbedContents`, `:embedContent`, `/upload/v1beta/files` and `:asyncBatchEmbedContent`."""

    name = "gemini"
    prefix = "/v1beta"
    default_dimensions = 3072
    key_prefix = "AIza"
    numbered = False

    def __init__(self, *, latency: float = 0.0, dimensions: int | None = None) -> None:
        super().__init__(latency=latency, dimensions=dimensions)
        self.book = JobBook(lambda number: f"files/f{number:08x}", lambda number: f"batches/b{number:08x}")
        self._uploads: dict[str, tuple[str, str]] = {}  # upload id: display name, announced size

    def route_of(self, request: Request) -> str:
        for method, pattern, route in ROUTES:
            if request.method == method and re.fullmatch(pattern, unquote(request.path)):
                return route
        return ""

    def check_key(self, request: Request) -> None:
        if request.query.get("upload_id") in self._uploads:
            return  # the upload address itself is the permission
        given = request.headers.get("x-goog-api-key") or request.query.get("key")
        if given != self.key:
            raise self.refusal(given)

    def refusal(self, given: str | None) -> ApiFailure:
        if not given:
            message = "Method doesn't allow unregistered callers (callers without established identity)."
            return ApiFailure(403, problem(403, "PERMISSION_DENIED", message))
        reason = {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
        }
        message = "API key not valid. Please pass a valid API key."
        return ApiFailure(400, problem(400, "INVALID_ARGUMENT", message, reason))

    def failure(self, fault: str, retry_after: str | None) -> ApiFailure:
        per_day = {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "EmbedContentRequestsPerDayPerProjectPerModel-FreeTier"}],
        }
        per_minute = {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "EmbedContentRequestsPerMinutePerProjectPerModel"}],
        }
        exceeded = "You exceeded your current quota, please check your plan and billing details."
        bodies = {
            "rate_limited": problem(
                429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", per_minute
            ),
            "quota": problem(429, "RESOURCE_EXHAUSTED", exceeded, per_day),
            "unauthorized": problem(401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
            "bad_request": problem(400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
            "500": problem(500, "INTERNAL", "An internal error has occurred. Please retry."),
            "503": problem(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        }
        return ApiFailure(STATUS_FAULTS[fault], bodies[fault], **retry_header(retry_after))

    def respond(self, request: Request) -> Reply:
        route = self.route_of(request)
        if not route:
            return Reply(404, b"<!DOCTYPE html><title>Error 404 (Not Found)!!1</title>", content_type="text/html")
        result = getattr(self, f"_{route}")(request)
        return result if isinstance(result, Reply) else json_reply(result)

    # --- embeddings ------------------------------------------------------------------------------

    def _embed(self, request: Request) -> Any:
        model = _model_of(request)
        body = request.json
        if not isinstance(body, dict):
            raise invalid("Invalid JSON payload received.")
        if request.path.endswith(":embedContent"):
            (vector,) = self._embedded([body], model) or [np.zeros(0)]
            return {"embedding": {"values": vector.tolist()}}
        requests = body.get("requests")
        if not isinstance(requests, list) or not requests:
            raise invalid("* BatchEmbedContentsRequest.requests: must not be empty")
        if len(requests) > MAX_REQUESTS:
            raise invalid("* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch")
        for at, entry in enumerate(requests):
            if entry.get("model") != f"models/{model}":
                raise invalid(
                    f"* BatchEmbedContentsRequest.requests[{at}].model: model must match the model of the URL"
                )
        return {"embeddings": [{"values": vector.tolist()} for vector in self._embedded(requests, model)]}

    def _embedded(self, requests: list[dict[str, Any]], model: str, *, in_job: bool = False) -> list[np.ndarray]:
        texts = [_text_of(entry) for entry in requests]
        if self.poisoned(texts):
            raise invalid("Request contains an invalid argument.")
        size = self._size_asked(requests)
        sides = {_option(entry, "taskType", "task_type") or "" for entry in requests}
        if len(sides) > 1:
            raise invalid("This fake wants one taskType in a request.")
        if not sides <= TASK_TYPES | {""}:
            raise invalid(f'Invalid value at "taskType" (TypeTaskType), "{next(iter(sides))}"')
        vectors = self.vectors(texts, size, side=next(iter(sides)), model=model, in_job=in_job)
        # Only vectors of full length come normalised.
        return vectors if size == MAX_DIMENSIONS else [vector * np.float32(0.69) for vector in vectors]

    def _size_asked(self, requests: list[dict[str, Any]]) -> int:
        asked = _option(requests[0], "outputDimensionality", "output_dimensionality")
        if asked is None:
            return self.dimensions
        if not isinstance(asked, int) or not 1 <= asked <= MAX_DIMENSIONS:
            raise invalid("* EmbedContentRequest.output_dimensionality: must be between 1 and 3072")
        return asked

    # --- files -----------------------------------------------------------------------------------

    def _upload(self, request: Request) -> Any:
        commands = {part.strip() for part in request.headers.get("x-goog-upload-command", "").split(",")}
        if commands == {"start"}:
            upload = f"u{len(self._uploads) + 1}"
            name = ((request.json or {}).get("file") or {}).get("displayName", "")
            self._uploads[upload] = (name, request.headers.get("x-goog-upload-header-content-length", ""))
            address = f"{self.root_url}{request.path}?upload_id={upload}&upload_protocol=resumable"
            return Reply(200, b"", {"X-Goog-Upload-URL": address, "X-Goog-Upload-Status": "active"})
        name, size = self._uploads.get(request.query.get("upload_id", ""), ("", ""))
        if commands != {"upload", "finalize"} or request.headers.get("x-goog-upload-offset") != "0":
            raise invalid("This fake wants the upload whole: upload, finalize at offset 0.")
        if size != str(len(request.body)):
            raise invalid(f"Upload of {len(request.body)} bytes, {size} were announced.")
        file = self.book.keep(name, "batch", request.body)
        return json_reply({"file": self._file_object(file.id)}, X_Goog_Upload_Status="final")

    def _file_object(self, file_id: str) -> dict[str, Any]:
        file = self._stored(file_id)
        return {
            "name": file.id,
            "displayName": file.name,
            "mimeType": "application/jsonl",
            "sizeBytes": str(len(file.content)),
            "uri": f"{self.base_url}/{file.id}",
            "state": "ACTIVE",
            "source": "UPLOADED" if file.purpose == "batch" else "GENERATED",
        }

    def _file(self, request: Request) -> Any:
        return self._file_object(_name_in(request))

    def _files(self, request: Request) -> Any:
        return {"files": [self._file_object(name) for name in reversed(self.book.files)]}

    def _delete_file(self, request: Request) -> Any:
        del self.book.files[self._stored(_name_in(request)).id]
        return {}

    def _download(self, request: Request) -> Reply:
        if request.query.get("alt") != "media":
            raise invalid("alt=media is required.")
        file = self._stored(_name_in(request).removesuffix(":download"))
        return Reply(200, file.content, content_type="application/jsonl")

    def _stored(self, file_id: str) -> Any:
        if file_id not in self.book.files:
            message = "You do not have permission to access the File or it may not exist."
            raise ApiFailure(403, problem(403, "PERMISSION_DENIED", message))
        return self.book.files[file_id]

    # --- batch jobs ------------------------------------------------------------------------------

    def _create(self, request: Request) -> Any:
        batch = (request.json or {}).get("batch") or {}
        source = batch.get("inputConfig") or batch.get("input_config") or {}
        name = source.get("fileName") or source.get("file_name")
        if not name or not (batch.get("displayName") or batch.get("display_name")):
            raise invalid("batch.display_name and batch.input_config.file_name are required")
        try:
            lines = parse_lines(self._stored(name).content)
            keys = [line["key"] for line in lines]
            for line in lines:
                _text_of(line["request"])
        except (ValueError, KeyError) as error:
            raise invalid(f"The input file is not valid: {error}") from error
        if len(set(keys)) < len(keys):
            raise invalid("Each key must be unique.")
        asked = {"model": _model_of(request), "name": batch.get("displayName") or batch.get("display_name")}
        return self._job_object(self.book.create(asked, lines, self.take_fault("create", BATCH_FAULTS)))

    def _poll(self, request: Request) -> Any:
        job = self._job(_name_in(request))
        if not self.hold_jobs:
            self.book.look(
                job, polls_until_done=self.polls_until_done, run=self._run_line, write=self._write_line, id_field="key"
            )
        return self._job_object(job)

    def _run_line(self, line: dict[str, Any], job: Job, at: int) -> tuple[int, Any]:
        try:
            (vector,) = self._embedded([line["request"]], job.request["model"], in_job=True)
        except ApiFailure as failure:
            return failure.reply.status, parse_lines(failure.reply.body)[0]["error"]
        if job.fault == "batch_bad_vectors" and at % 2:
            vector = vector * np.nan
        elif job.fault == "batch_wrong_dimensions":
            vector = vector[:-1]
        return 200, {"embedding": {"values": vector.tolist()}, "usageMetadata": {"promptTokenCount": 1}}

    def _write_line(self, custom_id: str, status: int, answer: Any) -> dict[str, Any]:
        if status == 200:
            return {"key": custom_id, "response": answer}
        error = answer if isinstance(answer, dict) else {"code": 13, "message": answer, "status": "INTERNAL"}
        return {"key": custom_id, "error": error}

    def _cancel(self, request: Request) -> Any:
        self.book.cancel(self._job(_name_in(request).removesuffix(":cancel")))
        return {}

    def _list(self, request: Request) -> Any:
        jobs = self.book.newest_first()
        start = int(request.query.get("pageToken") or 0)
        size = min(100, int(request.query.get("pageSize", 50)))
        more = {"nextPageToken": str(start + size)} if len(jobs) > start + size else {}
        return {"operations": [self._job_object(job) for job in jobs[start : start + size]], **more}

    def _job(self, name: str) -> Job:
        if name not in self.book.jobs:
            raise ApiFailure(404, problem(404, "NOT_FOUND", "Requested entity was not found."))
        return self.book.jobs[name]

    def _job_object(self, job: Job) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.EmbedContentBatch",
            "model": f"models/{job.request['model']}",
            "displayName": job.request["name"],
            "name": job.id,
            "state": STATES[job.state],
            "createTime": "2026-11-16T09:00:00.000000000Z",
            "updateTime": "2026-11-16T09:00:01.000000000Z",
            "batchStats": {"requestCount": str(len(job.lines)), "pendingRequestCount": str(len(job.lines))},
        }
        answer: dict[str, Any] = {"name": job.id, "metadata": metadata}
        if job.state == "failed":
            return {**answer, "done": True, "error": {"code": 13, "message": "The job could not be run."}}
        # Lines that failed stand beside the others: the one file holds both.
        if job.state == "done":
            answer |= {"done": True}
            metadata["output"] = {"responsesFile": self._joined(job)}
        return answer

    def _joined(self, job: Job) -> str:
        name = job.output or job.errors or "files/none"
        if job.output and job.errors and job.output in self.book.files:
            errors = self.book.files.pop(job.errors)
            self.book.files[job.output].content += errors.content
            job.errors = None
        return name


def _name_in(request: Request) -> str:
    """Return the name of the resource that a path stands for, `files/x` or `batches/x`."""
    return unquote(request.path).split("/", 2)[2]


def _model_of(request: Request) -> str:
    return unquote(request.path).split("/models/")[1].split(":")[0]


def _text_of(entry: dict[str, Any]) -> str:
    parts = (entry.get("content") or {}).get("parts")
    if not parts or not isinstance(parts[0].get("text"), str) or not parts[0]["text"]:
        raise invalid("* EmbedContentRequest.content: contents is not specified or empty")
    text: str = parts[0]["text"]
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise invalid(f"Request payload size exceeds the limit: {MAX_TEXT_BYTES} bytes.")
    return text


def _option(entry: dict[str, Any], camel: str, snake: str) -> Any:
    """Return an option: the API reads both spellings, and inside a config object, too."""
    config = entry.get("embedContentConfig") or {}
    for holder in (entry, config):
        for name in (camel, snake):
            if holder.get(name) is not None:
                return holder[name]
    return None
