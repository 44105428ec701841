"""Embeds texts through a provider, with several concurrent requests."""

from __future__ import annotations

import json
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Literal

from notewell.embedding.http_calls import RemoteFailure
from notewell.embedding.providers.apis import Model
from notewell.errors import BadVectorError, ProviderError
from notewell.protocols import EmbeddedPart
from notewell.settings.masking import is_secret_header
from notewell.text.languages import may_be_english
from notewell.types import EmbedderIdentity, hash_text

if TYPE_CHECKING:
    from notewell.embedding.http_calls import Service
    from notewell.embedding.providers.apis import Api, Side
    from notewell.embedding.providers.requests import Bundle, Exchange
    from notewell.protocols import Matrix, Vector

COSINE_RANGE = (0.2, 0.7)  # not measured; between Granite and small OpenAI models
STORED_AT_ONCE = 4  # responses, which a kill loses
POLL_S = 0.05  # how late a deadline or Ctrl-C is noticed
COOLDOWN_S = 30.0  # how long searches do not call the provider after a lasting failure
_LASTING = {"unreachable", "timeout", "key", "quota", "missing"}
_QUOTED = {"refused", "missing", "quota"}  # with the provider's message
PROBE = "How many dimensions?"
UNKNOWN_MODEL = Model(0, 2048)  # the shortest limit among the known models


class RemoteEmbedder:
    """Embeds through one provider. Safe to call from several threads; nothing is opened before the first text."""

    quantization: Literal["bits", "int8"] = "bits"
    cosine_range = COSINE_RANGE

    def __init__(
        self,
        api: Api,
        service: Service,
        *,
        model: str = "",
        dimensions: int = 0,
        extra_headers: Mapping[str, str] | None = None,
        concurrency: int = 4,
        query_timeout_s: float = 60.0,
        index_timeout_s: float = 120.0,
    ) -> None:
        self.api = api
        self.service = service
        self.provider = api.name
        self.model = model or api.default_model
        self.facts = api.model(self.model) or UNKNOWN_MODEL
        self.asked_dimensions = 0 if dimensions == self.facts.dimensions else dimensions
        self._key = self._identity_key(extra_headers or {})
        self._dimensions = dimensions or self.facts.dimensions  # 0: not known yet
        self._concurrency = concurrency
        self._timeouts_s: Mapping[Side, float] = {"query": query_timeout_s, "document": index_timeout_s}
        self._lock = threading.Lock()
        self._opened: Exchange | None = None
        self._pid = 0  # the process that `_opened` belongs to
        self._failed: tuple[float, ProviderError] | None = None  # when, and how

    def _identity_key(self, headers: Mapping[str, str]) -> str:
        """Return the hash of everything that changes a vector, which the API key and the workspace do not."""
        public = {name.lower(): value for name, value in headers.items() if not is_secret_header(name, value)}
        named = {
            "provider": self.api.name,
            "address": self.service.address,
            "model": self.model,
            "dimensions": self.asked_dimensions,
            "prefixes": [self.facts.query_prefix, self.facts.document_prefix],
            "headers": public,
        }
        return hash_text(json.dumps(named, sort_keys=True))

    @property
    def known_identity(self) -> EmbedderIdentity | None:
        """The identity, if it is known without a call."""
        if not self._dimensions:
            return None
        return EmbedderIdentity(self.provider, self.model, self._key, self._dimensions)

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity; for an unknown model the first access takes a call. Raises ProviderError."""
        if not self._dimensions:
            self._dimensions = len(self._embed_alone(PROBE, dimensions=0))
        return EmbedderIdentity(self.provider, self.model, self._key, self._dimensions)

    def recall(self, identity: EmbedderIdentity | None) -> None:
        """Take the dimensions from a stored identity, if it is this embedder's own."""
        own = (self.provider, self.model, self._key)
        if identity and not self._dimensions and (identity.provider, identity.model, identity.key) == own:
            self._dimensions = identity.dimensions

    def knows(self, text: str) -> bool:
        return not self.facts.english_only or may_be_english(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        rows = np.empty((len(texts), self.identity.dimensions if texts else self._dimensions), dtype=np.float32)
        for part in self.stream_documents(texts):
            for reason in part.failed.values():
                raise BadVectorError(reason, hint="the other texts can be embedded without it")
            rows[list(part.positions)] = part.vectors
        return rows

    def embed_query(self, text: str) -> Vector:
        return self._embed_alone(text, dimensions=self.identity.dimensions)

    def stream_documents(
        self, texts: Iterable[str], *, is_over: Callable[[], bool] | None = None, hurried: bool = False
    ) -> Generator[EmbeddedPart]:
        """Yield vectors as they arrive; see `StreamingEmbedder`.

        Until the first response there is only one request, so that a wrong key costs one call, not four.
        """
        if hurried:
            self._check_cooldown()
        exchange = self._exchange()
        run = exchange.run("document", self._timeouts_s["document"], self.identity.dimensions, interactive=hurried)
        bundles = self._bundles(texts)
        arrived: queue.SimpleQueue[Future[EmbeddedPart]] = queue.SimpleQueue()
        pending: set[Future[EmbeddedPart]] = set()
        try:
            while True:
                # Twice as many as can be sent, so that the next ones are ready while vectors are stored.
                room = 2 * self._concurrency if exchange.proven else 1
                while len(pending) < room and (bundle := next(bundles, None)):
                    future = exchange.begin(bundle, run)
                    pending.add(future)
                    future.add_done_callback(arrived.put)
                done = _next_of(arrived, is_over) if pending else []
                if not done:
                    return
                pending.difference_update(done)
                yield from self._results(done)
        finally:
            run.stopped = True
            for future in pending:
                future.cancel()

    def close(self) -> None:
        """Cancel pending requests and close the connections; a later call opens them again."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened:
            opened.close()

    def _exchange(self) -> Exchange:
        from notewell.embedding.providers.requests import Exchange  # imports asyncio and NumPy

        with self._lock:
            if self._opened is None or self._pid != os.getpid():  # a forked child lacks the thread
                self._pid = os.getpid()
                self._opened = Exchange(
                    self.api,
                    self.service,
                    self.model,
                    self.facts,
                    dimensions=self.asked_dimensions,
                    concurrency=self._concurrency,
                )
            return self._opened

    def _bundles(self, texts: Iterable[str]) -> Iterator[Bundle]:
        from notewell.embedding.providers.requests import pack_texts

        return pack_texts(
            texts,
            inputs=self.api.inputs_a_request,
            input_tokens=self.facts.input_tokens,
            request_tokens=self.api.tokens_a_request,
        )

    def _embed_alone(self, text: str, *, dimensions: int) -> Vector:
        self._check_cooldown()
        exchange = self._exchange()
        run = exchange.run("query", self._timeouts_s["query"], dimensions, interactive=True)
        (bundle,) = self._bundles([text])
        part = self._outcome(exchange.begin(bundle, run))
        self._failed = None
        for reason in part.failed.values():
            raise BadVectorError(reason, hint="keyword search can still answer the query")
        vector: Vector = part.vectors[0]
        return vector

    def _results(self, done: Sequence[Future[EmbeddedPart]]) -> Iterator[EmbeddedPart]:
        """Yield the results as one part, before raising a failure: they are paid for."""
        parts = [future.result() for future in done if not future.cancelled() and not future.exception()]
        if parts:
            self._failed = None
            yield _joined(parts)
        for future in sorted(done, key=Future.cancelled):  # the failed one first, which cancelled the others
            self._outcome(future)

    def _outcome(self, future: Future[EmbeddedPart]) -> EmbeddedPart:
        """Return the result, or raise the failure as a ProviderError."""
        from notewell.embedding.http_client import result_of

        try:
            return result_of(future)
        except RemoteFailure as failure:
            error = provider_error(self.api, self.model, failure)
            if failure.kind in _LASTING:
                self._failed = (time.monotonic(), error)
            raise error from None
        except CancelledError:
            raise ProviderError(f"{self.api.title} was closed while embedding", hint="try again") from None

    def _check_cooldown(self) -> None:
        """Raise the error of the last call again if it was recent and lasting."""
        if self._failed is not None and time.monotonic() - self._failed[0] < COOLDOWN_S:
            error = self._failed[1]
            raise ProviderError(error.message, hint=error.hint, reason=error.reason)


def provider_error(api: Api, model: str, failure: RemoteFailure) -> ProviderError:
    """Return the error for a failed call, with a hint for each kind of failure."""
    when = "later" if failure.retry_after_s is None else f"in {math.ceil(failure.retry_after_s)} s"
    hints = {
        "unreachable": api.unreachable_hint,
        "timeout": "try again later, or raise remote.query_timeout_seconds or remote.index_timeout_seconds",
        "connection_lost": "try again later; `notewell index` continues where it stopped",
        "rate_limited": f"run `notewell index` again {when}, or lower remote.concurrency",
        "quota": "check the plan and billing of the account, or choose another provider",
        "key": f"check {' or '.join((*api.key_variables, 'remote.api_key'))}",
        "refused": "check model, remote.dimensions and remote.base_url",
        "missing": api.missing_hint.format(model=model),
        "server": f"try again {when}; `notewell index` continues where it stopped",
        "invalid_response": "check remote.base_url: another kind of server may be listening there",
        "wrong_dimensions": "set remote.dimensions to the length that the model returns, then run `notewell index`",
    }
    quoted = f": {failure.detail}" if failure.kind in _QUOTED and failure.detail else ""
    return ProviderError(f"{failure.message}{quoted}", hint=hints[failure.kind], reason=failure.kind)


def _next_of(
    arrived: queue.SimpleQueue[Future[EmbeddedPart]], is_over: Callable[[], bool] | None
) -> list[Future[EmbeddedPart]]:
    """Return finished requests: at least one, several if storing is slower than the provider, none when time is up."""
    while is_over is None or not is_over():
        try:
            done = [arrived.get(timeout=POLL_S)]
        except queue.Empty:
            continue
        while len(done) < STORED_AT_ONCE and not arrived.empty():
            done.append(arrived.get())
        return done
    return []


def _joined(parts: Sequence[EmbeddedPart]) -> EmbeddedPart:
    if len(parts) == 1:
        return parts[0]
    import numpy as np

    filled = [part for part in parts if len(part.positions)]
    return EmbeddedPart(
        [position for part in filled for position in part.positions],
        np.concatenate([part.vectors for part in filled]) if filled else parts[0].vectors,
        {position: reason for part in parts for position, reason in part.failed.items()},
        [position for part in parts for position in part.split],
    )
