"""Rerankers behind an HTTP API (Cohere, Jina, Voyage): a query and texts come in, one checked score a text goes out.

A key never appears in a message: neither what was sent nor what the provider says about it is quoted.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from recollect.errors import RerankerError

if TYPE_CHECKING:
    import httpx

    from recollect.protocols import Reranker
    from recollect.settings import Settings

TIMEOUT_S = 10.0  # somebody waits for the search; the providers answer 20 texts in well under a second
TRIES = 3  # as for embedding providers
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 8.0  # a provider that asks for more gets no second call: the search answers without it

INSTALL_HINT = 'run `pip install "recollect[remote]"`'


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
    """Return Cohere's reranker; the entry point `cohere` of the group `recollect.rerankers`."""
    return _opened("cohere", settings)


def open_jina(settings: Settings) -> Reranker:
    """Return Jina's reranker; the entry point `jina` of the group `recollect.rerankers`."""
    return _opened("jina", settings)


def open_voyage(settings: Settings) -> Reranker:
    """Return Voyage's reranker; the entry point `voyage` of the group `recollect.rerankers`."""
    return _opened("voyage", settings)


def _opened(provider: str, settings: Settings) -> HttpReranker:
    api, wanted = APIS[provider], settings.query.rerank
    if find_spec("httpx") is None:
        raise RerankerError(f"{api.title} needs httpx, not installed here", hint=INSTALL_HINT)
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


class _PassingError(Exception):
    """A failure that another try may mend; `wait_s` is what the provider asked for."""

    def __init__(self, error: RerankerError, wait_s: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.wait_s = wait_s


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
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api = APIS[provider]
        self._provider = provider
        self._model = model or self._api.model
        self._url = (base_url or self._api.base_url).rstrip("/") + self._api.path
        self._key = key
        self._timeout_s = timeout_s
        self._pause = pause

    @property
    def name(self) -> str:
        return f"{self._provider}/{self._model}"

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        if not texts:
            return []
        answer = self._answer(
            {
                "model": self._model,
                "query": _sendable(query),
                "documents": [_sendable(text) for text in texts],
                self._api.count_field: len(texts),
            }
        )
        return self._scores(answer, len(texts))

    def _answer(self, request: dict[str, Any]) -> Any:
        """Ask up to three times.

        A loop of our own: retry libraries announce their waits through hooks of the whole process, and one that is set
        to print would put its lines into the command's answer.
        """
        import httpx

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        content = json.dumps(request).encode("ascii")
        with httpx.Client(headers=headers, timeout=self._timeout_s) as client:
            for attempt in range(TRIES):
                try:
                    return self._asked(client, content)
                except _PassingError as failure:
                    wait_s = _backoff(attempt) if failure.wait_s is None else failure.wait_s
                    if attempt == TRIES - 1 or wait_s > LONGEST_WAIT_S:
                        raise failure.error from failure.__cause__
                self._pause(wait_s)
        raise AssertionError("the last try returns or raises")

    def _asked(self, client: httpx.Client, content: bytes) -> Any:
        import httpx

        title = self._api.title
        try:
            response = client.post(self._url, content=content)
        except httpx.TimeoutException as error:
            raise RerankerError(
                f"{title} did not answer within {self._timeout_s:g} s", hint="try again, or search without --rerank"
            ) from error
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            raise _PassingError(RerankerError(f"{title} broke off the connection", hint="try again later")) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RerankerError(
                f"{title} cannot be reached: {type(error).__name__}", hint="check the network and query.rerank.base_url"
            ) from error
        self._check_status(response)
        try:
            return response.json()
        except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or nested without end
            raise self._nonsense("no JSON") from error

    def _check_status(self, response: httpx.Response) -> None:
        status, title = response.status_code, self._api.title
        if status == 200:
            return
        if status == 429 or status >= 500:
            what = "has had too many requests" if status == 429 else "failed"
            wait_s = _retry_after_s(response.headers.get("Retry-After", ""))
            later = "try again later" if wait_s is None else f"try again in {math.ceil(wait_s)} s"
            raise _PassingError(RerankerError(f"{title} {what} ({status})", hint=later), wait_s)
        if status in {401, 403}:
            raise RerankerError(
                f"{title} refused the API key ({status})",
                hint=f"check {self._api.key_variable} or query.rerank.api_key",
            )
        raise RerankerError(
            f"{title} refused the request ({status})", hint="check query.rerank.model and query.rerank.base_url"
        )

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


def _sendable(text: str) -> str:
    """Return `text` with lone surrogates replaced: they are no text to anybody else."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _backoff(attempt: int) -> float:
    spread = random.uniform(0.5, 1.0)  # noqa: S311 - keeps agents that failed together from asking together again
    return FIRST_WAIT_S * float(2**attempt) * spread


def _retry_after_s(header: str) -> float | None:
    """Return the seconds that the header asks for, which writes them as a number or as a date."""
    if header.strip().isdecimal():
        return float(header.strip()[:9])  # no more than 30 years
    try:
        when = parsedate_to_datetime(header)
    except ValueError:
        return None
    now = datetime.now(UTC)
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds())
