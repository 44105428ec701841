"""Calls the batch APIs of OpenAI, Voyage, Mistral and Gemini."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlsplit, urlunsplit

from notewell.embedding.http_calls import FailureKind, RemoteFailure, RetryPolicy, invalid_response
from notewell.embedding.http_client import Call, RemoteClient
from notewell.embedding.jobs import JobState, JobView, LineAnswer
from notewell.embedding.providers.apis import InvalidResponse, Question, gemini_content, gemini_model
from notewell.errors import BadVectorError

if TYPE_CHECKING:
    from notewell.embedding.http_calls import Service
    from notewell.embedding.providers.apis import Api
    from notewell.embedding.providers.embedder import RemoteEmbedder

REQUEST_TIMEOUT_S = 60.0  # OpenClaw's
TRANSFER_TIMEOUT_S = 600.0  # 64 MB at a slow 1 Mbit/s
CONNECTIONS = 2  # a job is polled while another is uploaded
PAGE = 100  # jobs a page, the most that all providers return
MAX_PAGES = 10  # a job that was created but not recorded is among the newest
MARK = "notewell"  # the metadata key of our mark
JSONL = "application/jsonl"

# After these failures no job was created; after any other it must be looked for.
_NOT_CREATED: frozenset[FailureKind] = frozenset({"rate_limited"})

STATES: Mapping[str, JobState] = {  # anything else is running, up to the deadline
    # OpenAI's and Voyage's
    "completed": "done",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
    # Mistral's, which also shares some of those above
    "success": "done",
    "timeout_exceeded": "expired",
    # Gemini's
    "batch_state_succeeded": "done",
    "batch_state_failed": "failed",
    "batch_state_expired": "expired",
    "batch_state_cancelled": "cancelled",
}


class JobCalls:
    """Calls one provider with the timeouts and retries of jobs."""

    def __init__(self, service: Service) -> None:
        self.address = service.address
        self._title = service.title
        self._client = RemoteClient(service, connections=CONNECTIONS)

    def close(self) -> None:
        self._client.close()

    def json(self, method: str, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        """Make a call that may be retried; return the JSON object of the response."""
        return self._object(Call(path, method=method, parameters=parameters), REQUEST_TIMEOUT_S)

    def json_once(self, path: str, body: Any) -> Any:
        """Make a call that must not succeed twice: it is retried only if the provider rejected it."""
        return self._object(Call(path, body), REQUEST_TIMEOUT_S, RetryPolicy(retry_on=_NOT_CREATED))

    def send_form(self, path: str, name: str, content: bytes, form: Mapping[str, str]) -> Any:
        """Upload a file as a multipart form; it may be retried, because a second copy costs nothing."""
        call = Call(path, files={"file": (name, content, JSONL)}, form=form)
        return self._object(call, TRANSFER_TIMEOUT_S)

    def send(self, path: str, content: bytes, headers: Mapping[str, str]) -> tuple[Mapping[str, str], bytes]:
        """Send bytes; return headers and body of the response."""
        call = Call(path, content=content, headers=headers)
        reply = self._client.ask(call, timeout_s=TRANSFER_TIMEOUT_S, retries=RetryPolicy())
        return reply.headers, reply.content

    def download(self, path: str, parameters: Mapping[str, str] | None = None) -> bytes:
        call = Call(path, method="GET", parameters=parameters)
        return self._client.ask(call, timeout_s=TRANSFER_TIMEOUT_S, retries=RetryPolicy()).content

    def text(self, holder: Any, name: str) -> str:
        """Return a required field."""
        value = _get(holder, name)
        if not isinstance(value, str) or not value:
            raise self.invalid(f"no {name}")
        return value

    def invalid(self, reason: str) -> RemoteFailure:
        return invalid_response(self._title, reason)

    def _object(self, call: Call, timeout_s: float, retries: RetryPolicy | None = None) -> dict[str, Any]:
        answer = self._client.ask_json(call, timeout_s=timeout_s, retries=retries or RetryPolicy())
        if not isinstance(answer, dict):
            raise self.invalid("not a JSON object")
        return answer


def objects_in(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a JSONL file without unreadable lines."""
    for line in io.BytesIO(content):  # splitting would copy the content
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


@dataclass(frozen=True, slots=True)
class Dialect:
    """The names and limits of a provider of the OpenAI family."""

    jobs: str  # path
    output: str  # field
    errors: str  # field
    inputs_a_job: int
    bytes_a_number: float
    pages: Literal["after", "number"]


DIALECTS: Mapping[str, Dialect] = {
    # Base64 takes 4/3 of 4 bytes a number; a written float32 up to 22 with its sign, exponent and comma.
    "openai": Dialect("/batches", "output_file_id", "error_file_id", 50_000, 5.4, "after"),
    "voyage": Dialect("/batches", "output_file_id", "error_file_id", 100_000, 22, "after"),
    "mistral": Dialect("/batch/jobs", "output_file", "error_file", 1_000_000, 22, "number"),
}


class OpenAIFamilyJobs:
    """Implements `JobDriver` for OpenAI, Voyage and Mistral."""

    def __init__(self, calls: JobCalls, embedder: RemoteEmbedder) -> None:
        self._calls = calls
        self._api = embedder.api
        self._model = embedder.model
        self._dimensions = embedder.asked_dimensions
        self._dialect = DIALECTS[embedder.api.name]
        self.inputs_a_job, self.bytes_a_number = self._dialect.inputs_a_job, self._dialect.bytes_a_number

    def line(self, custom_id: str, text: str) -> dict[str, Any]:
        body = self._body([text])
        if self._api.name == "openai":
            return {"custom_id": custom_id, "method": "POST", "url": "/v1/embeddings", "body": body}
        own = ("input",) if self._api.name == "voyage" else ("input", "output_dimension")  # the job has the rest
        return {"custom_id": custom_id, "body": {name: body[name] for name in own if name in body}}

    def upload(self, name: str, content: bytes) -> str:
        return self._calls.text(self._calls.send_form("/files", name, content, {"purpose": "batch"}), "id")

    def create(self, file_id: str, mark: str) -> JobView:
        return self._view(self._calls.json_once(self._dialect.jobs, self._creation(file_id, mark)))

    def find(self, mark: str) -> JobView | None:
        for page in self._listed():
            for job in page:
                if _get(job, "metadata", MARK) == mark:
                    return self._view(job)
        return None

    def look(self, job_id: str) -> JobView:
        return self._view(self._calls.json("GET", f"{self._dialect.jobs}/{quote(job_id, safe='')}"))

    def cancel(self, job_id: str) -> None:
        self._calls.json("POST", f"{self._dialect.jobs}/{quote(job_id, safe='')}/cancel")

    def answers(self, file_id: str) -> Iterator[LineAnswer]:
        for line in objects_in(self._calls.download(f"/files/{quote(file_id, safe='')}/content")):
            custom_id = line.get("custom_id")
            if isinstance(custom_id, str):
                yield self._answer(custom_id, line)

    def find_file(self, name: str) -> str:
        listed = self._calls.json("GET", "/files", parameters={"purpose": "batch"}).get("data") or []
        return next((self._calls.text(file, "id") for file in listed if _get(file, "filename") == name), "")

    def delete_file(self, file_id: str) -> None:
        self._calls.json("DELETE", f"/files/{quote(file_id, safe='')}")

    def close(self) -> None:
        self._calls.close()

    def _body(self, texts: list[str]) -> dict[str, Any]:
        return self._api.request(Question(self._model, texts, "document", self._dimensions))[1]

    def _creation(self, file_id: str, mark: str) -> dict[str, Any]:
        shared = {"endpoint": "/v1/embeddings", "metadata": {MARK: mark}}
        if self._api.name == "mistral":
            return {**shared, "input_files": [file_id], "model": self._model, "timeout_hours": 24}
        window = "24h" if self._api.name == "openai" else "12h"
        creation = {**shared, "input_file_id": file_id, "completion_window": window}
        if self._api.name == "voyage":
            body = self._body([])
            named = ("model", "input_type", "output_dimension")
            creation["request_params"] = {name: body[name] for name in named if name in body}
        return creation

    def _listed(self) -> Iterator[list[Any]]:
        parameters = {"limit": str(PAGE)} if self._dialect.pages == "after" else {"page_size": str(PAGE)}
        for number in range(MAX_PAGES):
            answer = self._calls.json("GET", self._dialect.jobs, parameters=parameters)
            page = answer.get("data") or []
            if not isinstance(page, list):
                raise self._calls.invalid("no list in data")
            yield page
            if len(page) < PAGE:
                return
            if self._dialect.pages == "after":
                parameters = {**parameters, "after": self._calls.text(page[-1], "id")}
            else:
                parameters = {**parameters, "page": str(number + 1)}

    def _view(self, job: dict[str, Any]) -> JobView:
        state = self._calls.text(job, "status")
        files = (job.get(self._dialect.output), job.get(self._dialect.errors))
        return JobView(
            id=self._calls.text(job, "id"),
            state=STATES.get(state.lower(), "running"),
            provider_state=state,
            reason=_first_message(job.get("errors")),
            result_files=tuple(file for file in files if isinstance(file, str) and file),
        )

    def _answer(self, custom_id: str, line: dict[str, Any]) -> LineAnswer:
        response = line.get("response")
        if not isinstance(response, dict):
            return LineAnswer(custom_id, reason=_first_message(line.get("error")) or "no result")
        body = response.get("body")
        if response.get("status_code", 200) != 200:
            message = _first_message(body.get("error", body) if isinstance(body, dict) else body)
            return LineAnswer(custom_id, reason=message or f"status {response.get('status_code')}")
        return _row(self._api, custom_id, body)


def _row(api: Api, custom_id: str, body: Any) -> LineAnswer:
    try:
        rows = api.rows(body)
    except (InvalidResponse, BadVectorError) as error:
        return LineAnswer(custom_id, reason=str(error))
    return LineAnswer(custom_id, rows[0]) if len(rows) == 1 else LineAnswer(custom_id, reason="expected one vector")


def _get(value: Any, *names: str) -> Any:
    """Return a nested field; None where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _first_message(errors: Any) -> str:
    """Return the message of an error in the form of any of the three providers."""
    for _ in range(3):
        if isinstance(errors, dict):
            errors = errors.get("data") or errors.get("message") or errors.get("detail")
        elif isinstance(errors, list):
            errors = errors[0] if errors else ""
    return errors if isinstance(errors, str) else ""


class GeminiJobs:
    """Implements `JobDriver` for Gemini, with a resumable upload and one file for all results."""

    inputs_a_job = 50_000  # OpenAI's limit; Google limits only the size, to 2 GB
    bytes_a_number = 22.0  # a written float32 with its sign, exponent and comma

    def __init__(self, calls: JobCalls, embedder: RemoteEmbedder) -> None:
        self._calls = calls
        self._api = embedder.api
        self._model = gemini_model(embedder.model)
        self._dimensions = embedder.asked_dimensions

    def line(self, custom_id: str, text: str) -> dict[str, Any]:
        request = gemini_content(Question(self._model, [text], "document", self._dimensions), text)
        return {"key": custom_id, "request": {name: value for name, value in request.items() if name != "model"}}

    def upload(self, name: str, content: bytes) -> str:
        folder, _, version = self._calls.address.rpartition("/")
        start = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(len(content)),
            "X-Goog-Upload-Header-Content-Type": JSONL,
            "Content-Type": "application/json",
        }
        about = f'{{"file": {{"displayName": "{name}"}}}}'.encode()
        headers, _ = self._calls.send(f"{folder}/upload/{version}/files", about, start)
        address = headers.get("x-goog-upload-url", "")
        if not address:
            raise self._calls.invalid("no upload address")
        finish = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0", "Content-Type": JSONL}
        _, answer = self._calls.send(self._on_our_host(address), content, finish)
        file = next(objects_in(answer.replace(b"\n", b" ")), {}).get("file")
        return self._calls.text(file, "name")

    def create(self, file_id: str, mark: str) -> JobView:
        path = f"/models/{quote(self._model, safe='')}:asyncBatchEmbedContent"
        batch = {"displayName": f"{MARK}-{mark}", "inputConfig": {"fileName": file_id}}
        return self._view(self._calls.json_once(path, {"batch": batch}))

    def find(self, mark: str) -> JobView | None:
        parameters = {"pageSize": str(PAGE)}
        for _ in range(MAX_PAGES):
            answer = self._calls.json("GET", "/batches", parameters=parameters)
            for job in answer.get("operations") or []:
                if _get(job, "metadata", "displayName") == f"{MARK}-{mark}":
                    return self._view(job)
            token = answer.get("nextPageToken")
            if not token:
                return None
            parameters = {**parameters, "pageToken": str(token)}
        return None

    def look(self, job_id: str) -> JobView:
        return self._view(self._calls.json("GET", f"/{quote(job_id)}"))

    def cancel(self, job_id: str) -> None:
        self._calls.json("POST", f"/{quote(job_id)}:cancel")

    def answers(self, file_id: str) -> Iterator[LineAnswer]:
        for line in objects_in(self._calls.download(f"/{quote(file_id)}:download", {"alt": "media"})):
            key = line.get("key")
            if isinstance(key, str):
                yield self._answer(key, line)

    def find_file(self, name: str) -> str:
        listed = self._calls.json("GET", "/files", parameters={"pageSize": str(PAGE)}).get("files") or []
        return next((self._calls.text(file, "name") for file in listed if _get(file, "displayName") == name), "")

    def delete_file(self, file_id: str) -> None:
        self._calls.json("DELETE", f"/{quote(file_id)}")

    def close(self) -> None:
        self._calls.close()

    def _on_our_host(self, address: str) -> str:
        """Return the upload URL on the configured host: behind a gateway, Google still sends its own host."""
        own, sent = urlsplit(self._calls.address), urlsplit(address)
        return urlunsplit((own.scheme, own.netloc, sent.path, sent.query, ""))

    def _view(self, job: dict[str, Any]) -> JobView:
        state = self._calls.text(job.get("metadata"), "state")
        file = _get(job, "metadata", "output", "responsesFile")
        return JobView(
            id=self._calls.text(job, "name"),
            state=STATES.get(state.lower(), "running"),
            provider_state=state,
            reason=str(_get(job, "error", "message") or ""),
            result_files=(file,) if isinstance(file, str) and file else (),
        )

    def _answer(self, key: str, line: dict[str, Any]) -> LineAnswer:
        embedding = _get(line, "response", "embedding")
        if not isinstance(embedding, dict):
            return LineAnswer(key, reason=str(_get(line, "error", "message") or "no result"))
        return _row(self._api, key, {"embeddings": [embedding]})
