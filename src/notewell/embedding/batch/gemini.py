"""Batch jobs of Gemini: a resumable upload, a job that is found by its display name, one file with all answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit, urlunsplit

from notewell.embedding.batch.calls import JobCalls, objects_in
from notewell.embedding.batch.driver import JobState, JobView, LineAnswer
from notewell.embedding.providers.api import Nonsense, Question
from notewell.embedding.providers.gemini import model_name, one_request
from notewell.errors import BadVectorError

if TYPE_CHECKING:
    from notewell.embedding.providers.embedder import RemoteEmbedder

PREFIX = "notewell-"  # of display names
PAGE = 100
MOST_PAGES = 10  # a job that was begun and not recorded is among the newest
KIND = "application/jsonl"

STATES: Mapping[str, JobState] = {
    "BATCH_STATE_SUCCEEDED": "done",
    "BATCH_STATE_FAILED": "failed",
    "BATCH_STATE_EXPIRED": "expired",
    "BATCH_STATE_CANCELLED": "cancelled",
}


class GeminiJobs:
    """Implements `JobDriver`."""

    inputs_a_job = 50_000  # Google names 2 GB a file and no number of lines; as many as with OpenAI
    bytes_a_number = 22.0  # a written float32 with its sign, exponent and comma

    def __init__(self, calls: JobCalls, embedder: RemoteEmbedder) -> None:
        self._calls = calls
        self._api = embedder.api
        self._model = model_name(embedder.model)
        self._dimensions = embedder.asked_dimensions

    def line(self, custom_id: str, text: str) -> dict[str, Any]:
        request = one_request(Question(self._model, [text], "document", self._dimensions), text)
        return {"key": custom_id, "request": {name: value for name, value in request.items() if name != "model"}}

    def upload(self, name: str, content: bytes) -> str:
        folder, _, version = self._calls.address.rpartition("/")
        start = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(len(content)),
            "X-Goog-Upload-Header-Content-Type": KIND,
            "Content-Type": "application/json",
        }
        about = f'{{"file": {{"displayName": "{name}"}}}}'.encode()
        headers, _ = self._calls.send(f"{folder}/upload/{version}/files", about, start)
        address = headers.get("x-goog-upload-url", "")
        if not address:
            raise self._calls.nonsense("no address for the upload")
        finish = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0", "Content-Type": KIND}
        _, answer = self._calls.send(self._on_our_host(address), content, finish)
        file = next(objects_in(answer.replace(b"\n", b" ")), {}).get("file")
        return self._calls.text(file, "name")

    def create(self, file_id: str, mark: str) -> JobView:
        path = f"/models/{quote(self._model, safe='')}:asyncBatchEmbedContent"
        batch = {"displayName": PREFIX + mark, "inputConfig": {"fileName": file_id}}
        return self._view(self._calls.json_once(path, {"batch": batch}))

    def find(self, mark: str) -> JobView | None:
        parameters = {"pageSize": str(PAGE)}
        for _ in range(MOST_PAGES):
            answer = self._calls.json("GET", "/batches", parameters=parameters)
            for job in answer.get("operations") or []:
                metadata = job.get("metadata") if isinstance(job, dict) else None
                if isinstance(metadata, dict) and metadata.get("displayName") == PREFIX + mark:
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
        found = (file for file in listed if isinstance(file, dict) and file.get("displayName") == name)
        return next((self._calls.text(file, "name") for file in found), "")

    def delete_file(self, file_id: str) -> None:
        self._calls.json("DELETE", f"/{quote(file_id)}")

    def close(self) -> None:
        self._calls.close()

    def _on_our_host(self, address: str) -> str:
        """Return the upload's address on the host that was configured: behind a gateway Google names its own."""
        own, named = urlsplit(self._calls.address), urlsplit(address)
        return urlunsplit((own.scheme, own.netloc, named.path, named.query, ""))

    def _view(self, job: dict[str, Any]) -> JobView:
        metadata = job.get("metadata")
        if not isinstance(metadata, dict):
            raise self._calls.nonsense("a job without metadata")
        said = self._calls.text(metadata, "state")
        output = metadata.get("output")
        file = output.get("responsesFile") if isinstance(output, dict) else None
        error = job.get("error")
        return JobView(
            id=self._calls.text(job, "name"),
            state=STATES.get(said, "running"),
            said=said,
            reason=str(error.get("message") or "") if isinstance(error, dict) else "",
            result_files=(file,) if isinstance(file, str) and file else (),
        )

    def _answer(self, key: str, line: dict[str, Any]) -> LineAnswer:
        response = line.get("response")
        embedding = response.get("embedding") if isinstance(response, dict) else None
        if not isinstance(embedding, dict):
            error = line.get("error")
            message = error.get("message") if isinstance(error, dict) else None
            return LineAnswer(key, reason=str(message or "no answer"))
        try:
            return LineAnswer(key, self._api.rows({"embeddings": [embedding]})[0])
        except (Nonsense, BadVectorError) as error:
            return LineAnswer(key, reason=str(error))
