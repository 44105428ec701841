"""Ollama's `/api/embed` as its server answers it: no key, no batch jobs, no numbered vectors."""

from __future__ import annotations

from typing import Any

from tests.fakes.faults import STATUS_FAULTS
from tests.fakes.loopback import Reply, Request, json_reply
from tests.fakes.provider import ApiFailure, FakeProvider, retry_header
from tests.fakes.vectors import token_count

CONTEXT_TOKENS = 2048  # of nomic-embed-text
ROUTES = {
    ("POST", "/api/embed"): "embed",
    ("GET", "/api/tags"): "models",
    ("GET", "/api/version"): "version",
    ("POST", "/api/show"): "show",
}


class FakeOllama(FakeProvider):
    """`POST /api/embed`; `models` are those that were pulled."""

    name = "ollama"
    prefix = ""
    default_dimensions = 768
    numbered = False
    has_batches = False

    def __init__(
        self, *, latency: float = 0.0, dimensions: int | None = None, models: tuple[str, ...] = ("nomic-embed-text",)
    ) -> None:
        super().__init__(latency=latency, dimensions=dimensions)
        self.models = models

    def route_of(self, request: Request) -> str:
        return ROUTES.get((request.method, request.path), "")

    def check_key(self, request: Request) -> None:
        """Let everybody in: a local server has no keys."""

    def failure(self, fault: str, retry_after: str | None) -> ApiFailure:
        messages = {
            "rate_limited": "too many requests, please try again later",
            "quota": "you've reached your hourly usage limit, please upgrade to continue: quota exceeded",
            "unauthorized": "unauthorized",
            "bad_request": "invalid input type",
            "500": "do embedding request: EOF",
            "503": "server busy, please try again. maximum pending requests exceeded",
        }
        return ApiFailure(STATUS_FAULTS[fault], {"error": messages[fault]}, **retry_header(retry_after))

    def respond(self, request: Request) -> Reply:
        route = self.route_of(request)
        if not route:
            return Reply(404, b"404 page not found", content_type="text/plain")
        return json_reply(getattr(self, f"_{route}")(request))

    def _embed(self, request: Request) -> Any:
        body = request.json
        if not isinstance(body, dict):
            raise ApiFailure(400, {"error": "missing request body"})
        model = self._model(body)
        given = body.get("input")
        texts = [given] if isinstance(given, str) else given
        if texts is None:
            texts = []
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ApiFailure(400, {"error": "invalid input type"})
        if self.poisoned(texts):
            raise ApiFailure(400, {"error": "the input cannot be processed"})
        if body.get("truncate") is False and any(token_count(text) > CONTEXT_TOKENS for text in texts):
            raise ApiFailure(400, {"error": "the input length exceeds the context length"})
        size = body.get("dimensions") or self.dimensions
        vectors = self.vectors(texts, min(size, self.dimensions), model=model) if texts else []
        return {
            "model": body["model"],
            "embeddings": [vector.tolist() for vector in vectors],
            "total_duration": 14_143_917,
            "load_duration": 1_019_500,
            "prompt_eval_count": sum(map(token_count, texts)),
        }

    def _model(self, body: dict[str, Any]) -> str:
        if not body.get("model"):
            raise ApiFailure(400, {"error": "model is required"})
        name = str(body["model"]).removesuffix(":latest")
        if name not in self.models:
            raise ApiFailure(404, {"error": f'model "{body["model"]}" not found, try pulling it first'})
        return name

    def _models(self, request: Request) -> Any:
        return {"models": [{"name": f"{name}:latest", "model": f"{name}:latest"} for name in self.models]}

    def _version(self, request: Request) -> Any:
        return {"version": "0.12.6"}

    def _show(self, request: Request) -> Any:
        self._model(request.json or {})
        return {"model_info": {"general.architecture": "bert", "bert.embedding_length": self.dimensions}}
