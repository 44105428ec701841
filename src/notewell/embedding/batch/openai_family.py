"""Batch jobs of OpenAI, Voyage and Mistral: the same files and lines, in three dialects of creating and asking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from notewell.embedding.batch.calls import JobCalls, objects_in
from notewell.embedding.batch.driver import JobState, JobView, LineAnswer
from notewell.embedding.providers.api import Api, Nonsense, Question
from notewell.errors import BadVectorError

if TYPE_CHECKING:
    from notewell.embedding.providers.embedder import RemoteEmbedder

MARK = "notewell"  # the key of our metadata; its value is the mark of the job
PAGE = 100  # jobs a page, the most that all three give
MOST_PAGES = 10  # a job that was begun and not recorded is among the newest

STATES: Mapping[str, JobState] = {
    "completed": "done",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
    # Mistral's words
    "success": "done",
    "timeout_exceeded": "expired",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where a provider keeps its jobs and what it calls their parts."""

    jobs: str
    output: str
    errors: str
    inputs_a_job: int
    bytes_a_number: float
    pages: Literal["after", "number"]


DIALECTS: Mapping[str, Dialect] = {
    # Base64 has 4/3 of 4 bytes a number; a written float32 has up to 22 with its sign, exponent and comma.
    "openai": Dialect("/batches", "output_file_id", "error_file_id", 50_000, 5.4, "after"),
    "voyage": Dialect("/batches", "output_file_id", "error_file_id", 100_000, 22, "after"),
    "mistral": Dialect("/batch/jobs", "output_file", "error_file", 1_000_000, 22, "number"),
}


class OpenAIFamilyJobs:
    """Implements `JobDriver` for the three."""

    def __init__(self, calls: JobCalls, embedder: RemoteEmbedder) -> None:
        self._calls = calls
        self._api: Api = embedder.api
        self._model = embedder.model
        self._dimensions = embedder.asked_dimensions
        self._dialect = DIALECTS[embedder.api.name]

    @property
    def inputs_a_job(self) -> int:
        return self._dialect.inputs_a_job

    @property
    def bytes_a_number(self) -> float:
        return self._dialect.bytes_a_number

    def line(self, custom_id: str, text: str) -> dict[str, Any]:
        body = self._body([text])
        if self._api.name == "openai":
            return {"custom_id": custom_id, "method": "POST", "url": "/v1/embeddings", "body": body}
        own = ("input",) if self._api.name == "voyage" else ("input", "output_dimension")  # the job itself has the rest
        return {"custom_id": custom_id, "body": {name: body[name] for name in own if name in body}}

    def upload(self, name: str, content: bytes) -> str:
        return self._calls.text(self._calls.send_form("/files", name, content, {"purpose": "batch"}), "id")

    def create(self, file_id: str, mark: str) -> JobView:
        return self._view(self._calls.json_once(self._dialect.jobs, self._creation(file_id, mark)))

    def find(self, mark: str) -> JobView | None:
        for page in self._listed():
            for job in page:
                metadata = job.get("metadata") if isinstance(job, dict) else None
                if isinstance(metadata, dict) and metadata.get(MARK) == mark:
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
        found = (file for file in listed if isinstance(file, dict) and file.get("filename") == name)
        return next((self._calls.text(file, "id") for file in found), "")

    def delete_file(self, file_id: str) -> None:
        self._calls.json("DELETE", f"/files/{quote(file_id, safe='')}")

    def close(self) -> None:
        self._calls.close()

    def _body(self, texts: list[str]) -> dict[str, Any]:
        return self._api.ask(Question(self._model, texts, "document", self._dimensions))[1]

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
        for number in range(MOST_PAGES):
            answer = self._calls.json("GET", self._dialect.jobs, parameters=parameters)
            page = answer.get("data") or []
            if not isinstance(page, list):
                raise self._calls.nonsense("no list of jobs")
            yield page
            if len(page) < PAGE:
                return
            if self._dialect.pages == "after":
                parameters = {**parameters, "after": self._calls.text(page[-1], "id")}
            else:
                parameters = {**parameters, "page": str(number + 1)}

    def _view(self, job: dict[str, Any]) -> JobView:
        said = self._calls.text(job, "status")
        files = (job.get(self._dialect.output), job.get(self._dialect.errors))
        return JobView(
            id=self._calls.text(job, "id"),
            state=STATES.get(said.lower(), "running"),
            said=said,
            reason=_first_message(job.get("errors")),
            result_files=tuple(file for file in files if isinstance(file, str) and file),
        )

    def _answer(self, custom_id: str, line: dict[str, Any]) -> LineAnswer:
        response = line.get("response")
        if not isinstance(response, dict):
            return LineAnswer(custom_id, reason=_first_message(line.get("error")) or "no answer")
        body = response.get("body")
        if response.get("status_code", 200) != 200:
            message = _first_message(body.get("error", body) if isinstance(body, dict) else body)
            return LineAnswer(custom_id, reason=message or f"status {response.get('status_code')}")
        try:
            rows = self._api.rows(body)
        except (Nonsense, BadVectorError) as error:
            return LineAnswer(custom_id, reason=str(error))
        return LineAnswer(custom_id, rows[0]) if len(rows) == 1 else LineAnswer(custom_id, reason="not one vector")


def _first_message(errors: Any) -> str:
    """Return the first sentence of an error in any of the shapes that the three give it."""
    for _ in range(3):
        if isinstance(errors, dict):
            errors = errors.get("data") or errors.get("message") or errors.get("detail")
        elif isinstance(errors, list):
            errors = errors[0] if errors else ""
    return errors if isinstance(errors, str) else ""
