"""Calls providers over HTTP, with retries, on an event loop in a background thread.

A task of an event loop can be cancelled, a thread that waits in a socket cannot: so Ctrl-C and deadlines end a call at
once. Messages contain no keys: neither headers nor addresses with a login are quoted.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from notewell.embedding import apply_retry_hooks
from notewell.embedding.http_calls import (
    RemoteFailure,
    Reply,
    RetryPolicy,
    Service,
    invalid_response,
)

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

CONNECTIONS = 4  # concurrent requests, as in OpenClaw
MAX_REPLY_BYTES = 512 * 2**20  # the results of a batch job of 50,000 texts are smaller
POLL_S = 0.25  # on Windows a wait without a timeout does not see Ctrl-C


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `path` is relative to the base URL, or a full URL on the same host."""

    path: str
    body: Any = None  # sent as JSON
    method: str = "POST"
    content: bytes | None = None  # sent as it is, in place of `body`
    files: Mapping[str, Any] | None = None  # a multipart form, as httpx takes it, with `form`
    form: Mapping[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] | None = None


class RemoteClient:
    """Calls one service over a few persistent connections. Safe to use from several threads."""

    def __init__(self, service: Service, *, connections: int = CONNECTIONS) -> None:
        self.service = service
        self._connections = connections
        self._client: httpx.AsyncClient | None = None
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, call: Call, *, timeout_s: float, retries: RetryPolicy) -> Reply:
        """Make the call and wait for the response; raise RemoteFailure. Ctrl-C ends it at once."""
        return result_of(self.submit(self.answer(call, timeout_s=timeout_s, retries=retries, read=lambda reply: reply)))

    def ask_json(self, call: Call, *, timeout_s: float, retries: RetryPolicy) -> Any:
        """Make the call and return the JSON of the response."""
        title = self.service.title
        answer = self.answer(call, timeout_s=timeout_s, retries=retries, read=lambda reply: reply.json(title))
        return result_of(self.submit(answer))

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine such as `answer(...)` on the client's thread; cancelling the future cancels it."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_loop, args=(self._loop,), name="notewell-remote", daemon=True
                )
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def answer(self, call: Call, *, timeout_s: float, retries: RetryPolicy, read: Callable[[Reply], T]) -> T:
        """Make the call, with retries; `read` turns the response into a value, or raises RemoteFailure.

        Runs on the client's own thread only: see `submit`.
        """
        import stamina

        apply_retry_hooks()
        async for attempt in stamina.retry_context(
            on=retries.decide,
            attempts=retries.attempts,
            timeout=None,
            wait_initial=retries.first_wait_s,
            wait_max=retries.max_wait_s,
            wait_jitter=retries.jitter_s,
        ):
            with attempt:
                return read(await self._reply(call, timeout_s))
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Cancel pending calls and close the connections; a later call opens them again."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        try:
            result_of(asyncio.run_coroutine_threadsafe(self._finish(), loop))
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    async def _finish(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _reply(self, call: Call, timeout_s: float) -> Reply:
        import httpx

        title, address = self.service.title, self.service.address
        try:
            async with asyncio.timeout(timeout_s):  # for the whole response: httpx limits only gaps between bytes
                reply = await self._exchange(call)
        except TimeoutError:
            raise RemoteFailure("timeout", f"{title} did not respond within {timeout_s:g} s") from None
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError, httpx.DecodingError):
            raise RemoteFailure("connection_lost", f"{title} closed the connection early") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.CookieConflict, ValueError, OSError) as error:
            # ValueError: an invalid port or host. The text of these errors may quote the address with its login.
            reason = type(error).__name__
            raise RemoteFailure("unreachable", f"{title} cannot be reached at {address}: {reason}") from None
        failure = reply.failure(title, self.service.secrets)
        if failure is not None:
            raise failure
        return reply

    async def _exchange(self, call: Call) -> Reply:
        async with self._opened().stream(
            call.method,
            self._url(call.path),
            json=call.body,
            content=call.content,
            files=call.files,
            data=call.form,
            params=call.parameters,
            headers=dict(call.headers),
        ) as response:
            content = bytearray()
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > MAX_REPLY_BYTES:
                    raise invalid_response(self.service.title, "the body is too large")
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Reply(response.status_code, headers, bytes(content))

    def _url(self, path: str) -> str:
        """Return the full URL; one that a provider sent must be on its own host, because it gets the key."""
        own = urlsplit(self.service.address)
        _ = own.port  # raises ValueError when the port is invalid
        if "://" not in path:
            return self.service.address + path
        sent = urlsplit(path)
        if (own.scheme, own.netloc) != (sent.scheme.lower(), sent.netloc.lower()):
            raise invalid_response(self.service.title, "an address on another host")
        return path

    def _opened(self) -> httpx.AsyncClient:
        import httpx

        if self._client is None:
            limits = httpx.Limits(
                max_connections=self._connections, max_keepalive_connections=self._connections, keepalive_expiry=30.0
            )
            self._client = httpx.AsyncClient(
                headers={"Accept": "application/json", "User-Agent": "notewell"} | self.service.all_headers,
                timeout=None,  # noqa: S113 - `_reply` limits the whole exchange
                limits=limits,
                trust_env=not self.service.is_loopback,  # no proxy between two programs of one machine
            )
        return self._client


def result_of(future: Future[T]) -> T:
    """Wait for the result; an interruption, such as Ctrl-C, cancels the work."""
    try:
        while True:
            try:
                return future.result(timeout=POLL_S)
            except TimeoutError:
                if future.done():
                    raise
    except BaseException:
        future.cancel()
        raise


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
