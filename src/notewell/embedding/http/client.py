"""One HTTP client for every provider: calls come in, whole answers go out, tried again where that may help.

What a message says never holds a key: neither headers nor addresses with a login are quoted anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from notewell.embedding.http import retry_hooks
from notewell.embedding.http.background import Background, waited
from notewell.embedding.http.failures import RemoteFailure
from notewell.embedding.http.patience import Patience
from notewell.embedding.http.replies import Reply, failure_of
from notewell.embedding.http.service import Service

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

CONNECTIONS = 4  # requests at once, as in OpenClaw
LONGEST_REPLY = 512 * 2**20  # bytes; the results of a batch job of 50,000 texts stay below


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `path` follows the base URL, or is a whole address on the same host."""

    path: str
    body: Any = None  # sent as JSON
    method: str = "POST"
    content: bytes | None = None  # sent as it is, in place of `body`
    files: Mapping[str, Any] | None = None  # a multipart form, as httpx takes it, with `form`
    form: Mapping[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] | None = None


def as_reply(reply: Reply) -> Reply:
    """Return the answer as it came."""
    return reply


class RemoteClient:
    """Calls one service over a few connections that are kept open. Safe to use from several threads."""

    def __init__(self, service: Service, *, connections: int = CONNECTIONS) -> None:
        self.service = service
        self._connections = connections
        self._background = Background()
        self._client: httpx.AsyncClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self,
        call: Call,
        *,
        timeout_s: float,
        patience: Patience,
        read: Callable[[Reply], T] = as_reply,  # type: ignore[assignment]  # T is Reply then
    ) -> T:
        """Make the call and wait for the answer; raise RemoteFailure. Ctrl-C ends it at once."""
        return waited(self.submit(self.answer(call, timeout_s=timeout_s, patience=patience, read=read)))

    def ask_json(self, call: Call, *, timeout_s: float, patience: Patience) -> Any:
        """Make the call and return the answer's JSON."""
        title = self.service.title
        return self.ask(call, timeout_s=timeout_s, patience=patience, read=lambda reply: reply.json(title))

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin a coroutine, such as `answer(...)`, on the client's own thread."""
        return self._background.submit(work)

    async def answer(
        self,
        call: Call,
        *,
        timeout_s: float,
        patience: Patience,
        read: Callable[[Reply], T] = as_reply,  # type: ignore[assignment]
    ) -> T:
        """Make the call, again if `patience` says so; `read` makes a value of the answer, or raises RemoteFailure.

        Runs on the client's own thread only: see `submit`.
        """
        import stamina

        retry_hooks.apply()
        async for attempt in stamina.retry_context(
            on=patience.verdict,
            attempts=patience.tries,
            timeout=None,
            wait_initial=patience.first_wait_s,
            wait_max=patience.longest_wait_s,
            wait_jitter=patience.jitter_s,
        ):
            with attempt:
                return read(await self._reply(call, timeout_s))
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """End what is under way and let go of the connections; a later call opens them again."""
        self._background.close(self._close_client())

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _reply(self, call: Call, timeout_s: float) -> Reply:
        import asyncio

        import httpx

        title, address = self.service.title, self.service.address
        try:
            async with asyncio.timeout(timeout_s):  # of the whole answer: httpx counts only the silence between bytes
                reply = await self._exchange(call)
        except TimeoutError:
            raise RemoteFailure("timeout", f"{title} did not answer within {timeout_s:g} s") from None
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError, httpx.DecodingError):
            raise RemoteFailure("broken_off", f"{title} broke off the connection") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.CookieConflict, ValueError, OSError) as error:
            # ValueError: a port or a host that is none. The text of these errors may quote the address with its login.
            reason = type(error).__name__
            raise RemoteFailure("unreachable", f"{title} cannot be reached at {address}: {reason}") from None
        failure = failure_of(title, reply, self.service.secrets)
        if failure is not None:
            raise failure
        return reply

    async def _exchange(self, call: Call) -> Reply:
        client = self._opened()
        async with client.stream(
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
                if len(content) > LONGEST_REPLY:
                    raise RemoteFailure("nonsense", f"{self.service.title} answered nonsense: without an end")
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Reply(response.status_code, headers, bytes(content))

    def _url(self, path: str) -> str:
        """Return the whole address; one that a provider named itself must be its own, as it gets the key."""
        own = urlsplit(self.service.address)
        _ = own.port  # raises ValueError for a port that is none
        if "://" not in path:
            return self.service.address + path
        named = urlsplit(path)
        if (own.scheme, own.netloc) != (named.scheme.lower(), named.netloc.lower()):
            raise RemoteFailure("nonsense", f"{self.service.title} answered nonsense: an address of somebody else")
        return path

    def _opened(self) -> httpx.AsyncClient:
        import httpx

        if self._client is None:
            limits = httpx.Limits(
                max_connections=self._connections, max_keepalive_connections=self._connections, keepalive_expiry=30.0
            )
            self._client = httpx.AsyncClient(
                headers={"Accept": "application/json", "User-Agent": "notewell"} | self.service.all_headers,
                timeout=None,  # noqa: S113 - `_reply` bounds the whole exchange
                limits=limits,
                trust_env=not self.service.is_loopback,  # a proxy has no business between two programs of one machine
            )
        return self._client
