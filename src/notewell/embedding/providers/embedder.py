"""A provider behind HTTP as an embedder: texts come in, several requests at once go out, unit vectors come back."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Literal

from notewell.embedding.http.failures import RemoteFailure
from notewell.embedding.latin import is_mostly_latin
from notewell.embedding.providers.api import Model
from notewell.embedding.providers.messages import provider_error
from notewell.embedding.providers.naming import provider_key
from notewell.errors import BadVectorError, ProviderError
from notewell.protocols import EmbeddedPart
from notewell.types import EmbedderIdentity

if TYPE_CHECKING:
    from notewell.embedding.http.service import Service
    from notewell.embedding.providers.api import Api, Side
    from notewell.embedding.providers.exchange import Exchange
    from notewell.embedding.providers.packing import Bundle
    from notewell.protocols import Matrix, Vector

COSINE_RANGE = (0.2, 0.7)  # no provider could be measured here; between what Granite and small OpenAI models show
STORED_AT_ONCE = 4  # answers: a kill loses no more than those and what is under way
POLL_S = 0.05  # how late a deadline or Ctrl-C is seen
REST_S = 30.0  # a provider that failed a search is left alone by the next ones for so long: they answer at once
_LASTING = {"unreachable", "timeout", "key", "quota", "missing"}
PROBE = "How many dimensions?"
UNKNOWN_MODEL = Model(0, 2048)  # the shortest limit among the models that are known


class RemoteEmbedder:
    """Embeds through one provider. Safe to call from several threads; nothing is opened before the first text."""

    def __init__(
        self,
        api: Api,
        service: Service,
        *,
        model: str = "",
        dimensions: int = 0,
        named_headers: Mapping[str, str] | None = None,
        concurrency: int = 4,
        query_timeout_s: float = 60.0,
        index_timeout_s: float = 120.0,
    ) -> None:
        self.api = api
        self.service = service
        self.model = model or api.default_model
        self.facts = api.model(self.model) or UNKNOWN_MODEL
        self.asked_dimensions = 0 if dimensions == self.facts.dimensions else dimensions
        self._key = provider_key(
            api, service, self.model, self.facts, dimensions=self.asked_dimensions, headers=named_headers or {}
        )
        self._dimensions = dimensions or self.facts.dimensions  # 0: not known yet
        self._concurrency = concurrency
        self._timeouts_s: Mapping[Side, float] = {"query": query_timeout_s, "document": index_timeout_s}
        self._lock = threading.Lock()
        self._opened: Exchange | None = None
        self._pid = 0  # whose process `_opened` belongs to
        self._failed: tuple[float, ProviderError] | None = None  # when, and how

    @property
    def known_identity(self) -> EmbedderIdentity | None:
        """The identity if it can be told without a call."""
        if not self._dimensions:
            return None
        return EmbedderIdentity(self.api.name, self.model, self._key, self._dimensions)

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity; for a model that nobody knows the first time costs a call. Raises ProviderError."""
        known = self.known_identity
        if known is None:
            self._dimensions = len(self._embedded_alone(PROBE, dimensions=0))
            known = self.known_identity
        assert known is not None
        return known

    def recall(self, identity: EmbedderIdentity | None) -> None:
        """Take the length of the vectors from an identity that was stored, if it is this embedder's own."""
        if identity and not self._dimensions and self.is_named_by(identity):
            self._dimensions = identity.dimensions

    def is_named_by(self, identity: EmbedderIdentity) -> bool:
        """Say whether a stored identity is this embedder's, as far as that can be told without a call."""
        return (identity.provider, identity.model, identity.key) == (self.api.name, self.model, self._key)

    @property
    def quantization(self) -> Literal["bits", "int8"]:
        return "bits"

    @property
    def cosine_range(self) -> tuple[float, float]:
        return COSINE_RANGE

    def knows(self, text: str) -> bool:
        return not self.facts.english_only or is_mostly_latin(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        rows = np.empty((len(texts), self.identity.dimensions if texts else self._dimensions), dtype=np.float32)
        for part in self.stream_documents(texts):
            for reason in part.failed.values():
                raise BadVectorError(reason, hint="the other texts can be embedded without it")
            rows[list(part.positions)] = part.vectors
        return rows

    def embed_query(self, text: str) -> Vector:
        return self._embedded_alone(text, dimensions=self.identity.dimensions)

    def stream_documents(
        self, texts: Iterable[str], *, is_over: Callable[[], bool] | None = None, hurried: bool = False
    ) -> Generator[EmbeddedPart]:
        """Yield vectors as they come in; see `StreamingEmbedder`.

        Before the first answer only one request is under way: a wrong key or a used-up quota costs one call, not four.
        """
        if hurried:
            self._check_rested()
        exchange = self._exchange()
        run = exchange.run("document", self._timeouts_s["document"], self.identity.dimensions, hurried=hurried)
        bundles = self._bundles(texts)
        arrived: queue.SimpleQueue[Future[EmbeddedPart]] = queue.SimpleQueue()
        under_way: set[Future[EmbeddedPart]] = set()
        try:
            while True:
                # Twice as many as can be sent: the next ones are ready when an answer comes while we are storing.
                room = 2 * self._concurrency if exchange.proven else 1
                while len(under_way) < room and (bundle := next(bundles, None)):
                    future = exchange.begin(bundle, run)
                    under_way.add(future)
                    future.add_done_callback(arrived.put)
                if not under_way:
                    return
                done = _next_of(arrived, is_over)
                if not done:
                    return
                under_way.difference_update(done)
                yield from self._results(done)
        finally:
            run.stopped = True
            for future in under_way:
                future.cancel()

    def close(self) -> None:
        """End what is under way and close the connections; a later call opens them again."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened:
            opened.close()

    def _exchange(self) -> Exchange:
        with self._lock:
            if self._opened is None or self._pid != os.getpid():  # a forked child has no thread to wait for
                self._pid = os.getpid()
                from notewell.embedding.providers.exchange import (
                    Exchange,  # asyncio and NumPy: not before they are used
                )

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
        from notewell.embedding.providers.packing import bundled

        return bundled(
            texts,
            inputs=self.api.inputs_a_request,
            input_tokens=self.facts.input_tokens,
            request_tokens=self.api.tokens_a_request,
        )

    def _embedded_alone(self, text: str, *, dimensions: int) -> Vector:
        self._check_rested()
        exchange = self._exchange()
        run = exchange.run("query", self._timeouts_s["query"], dimensions, hurried=True)
        (bundle,) = self._bundles([text])
        part = self._outcome(exchange.begin(bundle, run))
        self._failed = None
        for reason in part.failed.values():
            raise BadVectorError(reason, hint="the query can be answered by its words")
        vector: Any = part.vectors[0]
        return vector  # type: ignore[no-any-return]

    def _results(self, done: Sequence[Future[EmbeddedPart]]) -> Iterator[EmbeddedPart]:
        """Yield what came in as one part; a failure is raised after what was paid for is handed on."""
        parts = [future.result() for future in done if not future.cancelled() and not future.exception()]
        if parts:
            self._failed = None
            yield _joined(parts)
        for future in sorted(done, key=Future.cancelled):  # those were given up because of one that failed
            self._outcome(future)

    def _outcome(self, future: Future[EmbeddedPart]) -> EmbeddedPart:
        """Return the result, or raise what went wrong as an error of ours."""
        from notewell.embedding.http.background import waited

        try:
            return waited(future)
        except RemoteFailure as failure:
            raise self._error(failure) from None
        except CancelledError:
            raise ProviderError(f"{self.api.title} was closed while it embedded", hint="try again") from None

    def _error(self, failure: RemoteFailure) -> ProviderError:
        error = provider_error(self.api, self.model, failure)
        if failure.kind in _LASTING:
            self._failed = (time.monotonic(), error)
        return error

    def _check_rested(self) -> None:
        """Raise what the last call ended with, if that was a moment ago and would be no different now."""
        if self._failed is not None and time.monotonic() - self._failed[0] < REST_S:
            error = self._failed[1]
            raise ProviderError(error.message, hint=error.hint, reason=error.reason)


def _next_of(
    arrived: queue.SimpleQueue[Future[EmbeddedPart]], is_over: Callable[[], bool] | None
) -> list[Future[EmbeddedPart]]:
    """Return those that are done, at least one, a few if storing is slower than the provider; none when time is up."""
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
