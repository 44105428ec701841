"""Opens rerankers, and calls those behind an HTTP API: Cohere, Jina and Voyage.

A key never appears in a message: neither what was sent nor what the provider says about it is quoted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from notewell.embedding.http_calls import (
    INSTALL_HINT,
    INTERACTIVE,
    RemoteFailure,
    Service,
    invalid_response,
    missing_packages,
)
from notewell.embedding.selection import load_plug_in
from notewell.errors import RerankerError
from notewell.text import valid_unicode

if TYPE_CHECKING:
    from notewell.protocols import Reranker
    from notewell.settings import Settings

ENTRY_POINT_GROUP = "notewell.rerankers"

# As for embedders: looking up entry points takes 55 ms in a cold process, so it is done only for other names.
BUILT_IN: Mapping[str, str] = {
    "cohere": "notewell.search.rerankers:open_cohere",
    "jina": "notewell.search.rerankers:open_jina",
    "voyage": "notewell.search.rerankers:open_voyage",
}
TIMEOUT_S = 10.0  # somebody is waiting for the search; the providers need well under a second for 20 texts


def open_reranker(settings: Settings) -> Reranker:
    """Return the reranker of `query.rerank.provider`; raise RerankerError when there is none or it cannot run."""
    name = settings.query.rerank.provider
    if not name:
        raise RerankerError(
            "no reranker is configured",
            hint=f"set query.rerank.provider to {', '.join(BUILT_IN)} or the name of a plug-in",
        )
    opened: Reranker = load_plug_in(
        name,
        group=ENTRY_POINT_GROUP,
        built_in=BUILT_IN,
        kind="reranker",
        setting="query.rerank.provider",
        error=RerankerError,
    )(settings)
    return opened


@dataclass(frozen=True, slots=True)
class Api:
    """What one provider calls things."""

    title: str
    base_url: str
    path: str
    key_variable: str
    default_model: str
    count_field: str  # how many results are wanted
    results_field: str  # where they are in the response


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


def _open(provider: str, settings: Settings) -> HttpReranker:
    api, wanted = APIS[provider], settings.query.rerank
    if missing := missing_packages():
        raise RerankerError(f"{api.title} needs {' and '.join(missing)} (not installed)", hint=INSTALL_HINT)
    # The embedder's key is used only for the same provider: no provider gets to see another's.
    embedder_key = settings.remote.api_key if settings.provider == provider else ""
    key = (wanted.api_key or os.environ.get(api.key_variable, "") or embedder_key).strip()
    if not key and not wanted.base_url:  # a server of your own may need none
        raise RerankerError(
            f"{api.title} needs an API key",
            hint=f"set {api.key_variable}, or query.rerank.api_key in your own settings",
        )
    if not (key.isascii() and key.isprintable()):
        raise RerankerError(
            f"the API key for {api.title} contains characters that cannot be sent", hint=f"check {api.key_variable}"
        )
    return HttpReranker(provider, model=wanted.model, base_url=wanted.base_url, key=key)


# The entry points of `notewell.rerankers`.
open_cohere = partial(_open, "cohere")
open_jina = partial(_open, "jina")
open_voyage = partial(_open, "voyage")


class HttpReranker:
    """Calls one provider. Safe to use from several threads; nothing stays open between calls."""

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
        self._model = model or self._api.default_model
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._service = Service(self._api.title, base_url or self._api.base_url, headers)
        self._timeout_s = timeout_s

    @property
    def name(self) -> str:
        return f"{self._provider}/{self._model}"

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        if not texts:
            return []
        from notewell.embedding.http_client import Call, RemoteClient  # imports asyncio

        body = {
            "model": self._model,
            "query": valid_unicode(query),
            "documents": [valid_unicode(text) for text in texts],
            self._api.count_field: len(texts),
        }
        try:
            with RemoteClient(self._service, connections=1) as client:
                answer = client.ask_json(Call(self._api.path, body), timeout_s=self._timeout_s, retries=INTERACTIVE)
            return self._scores(answer, len(texts))
        except RemoteFailure as failure:
            raise self._error(failure) from None

    def _scores(self, answer: Any, count: int) -> list[float]:
        results = answer.get(self._api.results_field) if isinstance(answer, dict) else None
        if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
            raise self._invalid(f"no list in {self._api.results_field}")
        if len(results) != count:
            raise self._invalid(f"{len(results)} scores for {count} texts")
        scores: dict[int, float] = {}
        for result in results:
            index, score = result.get("index"), _number(result.get("relevance_score"))
            if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count or index in scores:
                raise self._invalid("an index is out of range or repeated")
            if score is None:
                raise self._invalid("a score is not a number")
            scores[index] = score
        return [scores[index] for index in range(count)]

    def _invalid(self, reason: str) -> RemoteFailure:
        return invalid_response(self._api.title, reason)

    def _error(self, failure: RemoteFailure) -> RerankerError:
        wait_s = failure.retry_after_s
        later = "try again later" if wait_s is None else f"try again in {math.ceil(wait_s)} s"
        hints = {
            "unreachable": "check the network and query.rerank.base_url",
            "timeout": "try again, or search without --rerank",
            "key": f"check {self._api.key_variable} or query.rerank.api_key",
            "quota": "check the plan and billing of the account, or search without --rerank",
            "connection_lost": later,
            "rate_limited": later,
            "server": later,
        }
        hint = hints.get(failure.kind, "check query.rerank.model and query.rerank.base_url")
        return RerankerError(failure.message, hint=hint)


def _number(value: object) -> float | None:
    """Return a finite number; JSON as Python reads it also has NaN, infinity and integers beyond any float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
