"""Rerankers behind an HTTP API (Cohere, Jina, Voyage): a query and texts come in, one checked score a text goes out.

A key never appears in a message: neither what was sent nor what the provider says about it is quoted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from notewell.embedding.http.failures import EXTRA_HINT, RemoteFailure
from notewell.embedding.http.service import Service, missing_packages
from notewell.errors import RerankerError

if TYPE_CHECKING:
    from notewell.protocols import Reranker
    from notewell.settings import Settings

TIMEOUT_S = 10.0  # somebody waits for the search; the providers answer 20 texts in well under a second


@dataclass(frozen=True, slots=True)
class Api:
    """What one provider calls things."""

    title: str
    base_url: str
    path: str
    key_variable: str
    model: str  # the default
    count_field: str  # how many results are wanted
    results_field: str  # where they are in the answer


APIS = {
    "cohere": Api(
        "Cohere", "https://api.cohere.com", "/v2/rerank", "COHERE_API_KEY", "rerank-v3.5", "top_n", "results"
    ),
    "jina": Api(
        "Jina",
        "https://api.jina.ai",
        "/v1/rerank",
        "JINA_API_KEY",
        "jina-reranker-v2-base-multilingual",
        "top_n",
        "results",
    ),
    "voyage": Api("Voyage", "https://api.voyageai.com", "/v1/rerank", "VOYAGE_API_KEY", "rerank-2.5", "top_k", "data"),
}


def open_cohere(settings: Settings) -> Reranker:
    """Return Cohere's reranker; the entry point `cohere` of the group `notewell.rerankers`."""
    return _opened("cohere", settings)


def open_jina(settings: Settings) -> Reranker:
    """Return Jina's reranker; the entry point `jina` of the group `notewell.rerankers`."""
    return _opened("jina", settings)


def open_voyage(settings: Settings) -> Reranker:
    """Return Voyage's reranker; the entry point `voyage` of the group `notewell.rerankers`."""
    return _opened("voyage", settings)


def _opened(provider: str, settings: Settings) -> HttpReranker:
    api, wanted = APIS[provider], settings.query.rerank
    absent = missing_packages()
    if absent:
        raise RerankerError(f"{api.title} needs {' and '.join(absent)}, not installed here", hint=EXTRA_HINT)
    # The embedder's key serves here only if it is the same provider's: no provider gets to see another's.
    embedder_key = settings.remote.api_key if settings.provider == provider else ""
    key = (wanted.api_key or os.environ.get(api.key_variable, "") or embedder_key).strip()
    if not key and not wanted.base_url:  # a server of your own may ask for none
        raise RerankerError(
            f"{api.title} needs an API key",
            hint=f"set {api.key_variable}, or query.rerank.api_key in your own settings",
        )
    if not (key.isascii() and key.isprintable()):
        raise RerankerError(
            f"the API key for {api.title} holds characters that no key has", hint=f"check {api.key_variable}"
        )
    return HttpReranker(provider, model=wanted.model, base_url=wanted.base_url, key=key)


class HttpReranker:
    """Asks one provider. Safe to call from several threads; nothing stays open between calls."""

    def __init__(
        self,
        provider: str,
        *,
        model: str = "",
        base_url: str = "",
        key: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._api = APIS[provider]
        self._provider = provider
        self._model = model or self._api.model
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._service = Service(self._api.title, base_url or self._api.base_url, headers)
        self._timeout_s = timeout_s

    @property
    def name(self) -> str:
        return f"{self._provider}/{self._model}"

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        if not texts:
            return []
        from notewell.embedding.http.client import Call, RemoteClient  # asyncio: not before it is used
        from notewell.embedding.http.patience import HURRIED
        from notewell.embedding.http.replies import sendable

        body = {
            "model": self._model,
            "query": sendable(query),
            "documents": [sendable(text) for text in texts],
            self._api.count_field: len(texts),
        }
        with RemoteClient(self._service, connections=1) as client:
            try:
                answer = client.ask_json(Call(self._api.path, body), timeout_s=self._timeout_s, patience=HURRIED)
            except RemoteFailure as failure:
                raise self._error(failure) from None
        return self._scores(answer, len(texts))

    def _error(self, failure: RemoteFailure) -> RerankerError:
        wait_s = failure.wait_s
        hints = {
            "unreachable": "check the network and query.rerank.base_url",
            "timeout": "try again, or search without --rerank",
            "key": f"check {self._api.key_variable} or query.rerank.api_key",
            "quota": "check the plan and billing of the account, or search without --rerank",
            "broken_off": "try again later",
            "rate_limited": "try again later" if wait_s is None else f"try again in {math.ceil(wait_s)} s",
            "server": "try again later" if wait_s is None else f"try again in {math.ceil(wait_s)} s",
        }
        hint = hints.get(failure.kind, "check query.rerank.model and query.rerank.base_url")
        return RerankerError(failure.message, hint=hint)

    def _scores(self, answer: Any, count: int) -> list[float]:
        results = answer.get(self._api.results_field) if isinstance(answer, dict) else None
        if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
            raise self._nonsense(f"no list of {self._api.results_field}")
        if len(results) != count:
            raise self._nonsense(f"{len(results)} scores for {count} texts")
        scores: dict[int, float] = {}
        for result in results:
            index, score = result.get("index"), _number(result.get("relevance_score"))
            if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count or index in scores:
                raise self._nonsense("an index that is out of range or there twice")
            if score is None:
                raise self._nonsense("a score that is no number")
            scores[index] = score
        return [scores[index] for index in range(count)]

    def _nonsense(self, what: str) -> RerankerError:
        return RerankerError(
            f"{self._api.title} answered nonsense: {what}", hint="check query.rerank.model and query.rerank.base_url"
        )


def _number(value: object) -> float | None:
    """Return a finite number; JSON as Python reads it also knows NaN, infinity and integers beyond any float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
