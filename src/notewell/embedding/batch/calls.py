"""The calls of batch jobs: paths and bodies come in, JSON or bytes go out, tried again where that is safe."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from notewell.embedding.http.client import Call, RemoteClient
from notewell.embedding.http.failures import FailureKind, RemoteFailure
from notewell.embedding.http.patience import Patience

if TYPE_CHECKING:
    from notewell.embedding.http.replies import Reply
    from notewell.embedding.http.service import Service

ASK_TIMEOUT_S = 60.0  # OpenClaw's for one question
TRANSFER_TIMEOUT_S = 600.0  # 64 MB at a slow 1 Mbit/s
CONNECTIONS = 2  # a job is asked after while another is uploaded

# After these the provider has surely not begun the job; after any other failure it may have, and must be looked for.
_NOT_BEGUN: frozenset[FailureKind] = frozenset({"rate_limited"})


class JobCalls:
    """A client with the timeouts and the caution that jobs need."""

    def __init__(self, service: Service, patience: Patience) -> None:
        self.title = service.title
        self.address = service.address
        self._client = RemoteClient(service, connections=CONNECTIONS)
        self._patience = patience

    def close(self) -> None:
        self._client.close()

    def json(self, method: str, path: str, body: Any = None, parameters: Mapping[str, str] | None = None) -> Any:
        """Ask and return the answer, an object; safe calls are made again after a failure that may pass."""
        call = Call(path, body, method, parameters=parameters)
        return self._object(self._client.ask_json(call, timeout_s=ASK_TIMEOUT_S, patience=self._patience))

    def json_once(self, path: str, body: Any) -> Any:
        """Ask for something that must not happen twice: only a refusal for now is tried again."""
        patience = replace(self._patience, again=_NOT_BEGUN)
        return self._object(self._client.ask_json(Call(path, body), timeout_s=ASK_TIMEOUT_S, patience=patience))

    def send_form(self, path: str, name: str, content: bytes, form: Mapping[str, str]) -> Any:
        """Send a file as a multipart form; made again after a failure, a second copy of a file costs nothing."""
        call = Call(path, files={"file": (name, content, "application/jsonl")}, form=form)
        return self._object(self._client.ask_json(call, timeout_s=TRANSFER_TIMEOUT_S, patience=self._patience))

    def send(self, path: str, content: bytes, headers: Mapping[str, str]) -> tuple[Mapping[str, str], bytes]:
        """Send bytes as they are; return headers and body of the answer."""
        call = Call(path, content=content, headers=headers)
        reply: Reply = self._client.ask(call, timeout_s=TRANSFER_TIMEOUT_S, patience=self._patience)
        return reply.headers, reply.content

    def download(self, path: str, parameters: Mapping[str, str] | None = None) -> bytes:
        call = Call(path, method="GET", parameters=parameters)
        return self._client.ask(call, timeout_s=TRANSFER_TIMEOUT_S, patience=self._patience).content

    def text(self, holder: Any, name: str) -> str:
        """Return a field that must be there; an answer without it is nonsense."""
        value = holder.get(name) if isinstance(holder, dict) else None
        if not isinstance(value, str) or not value:
            raise self.nonsense(f"no {name}")
        return value

    def nonsense(self, what: str) -> RemoteFailure:
        return RemoteFailure("nonsense", f"{self.title} answered nonsense: {what}")

    def _object(self, answer: Any) -> dict[str, Any]:
        if not isinstance(answer, dict):
            raise self.nonsense("no object")
        return answer


def objects_in(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a JSONL file; lines that are none are left out: their texts count as unanswered."""
    for line in io.BytesIO(content):  # one line at a time: all of them at once would be a second copy
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
