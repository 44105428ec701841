"""Serves a memory over MCP, on stdin and stdout or on streamable HTTP."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import os
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from notewell import SettingsError
from notewell.mcp.server import MemoryServer, idle_protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping
    from types import FrameType

    from notewell.agents.tools import MemoryTools

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    Application = Callable[[Scope, Receive, Send], Awaitable[None]]

STDIO_SHUTDOWN_S = 2.0  # to finish work in progress; clients kill a server that takes much longer
HTTP_SHUTDOWN_S = 3  # for responses in progress
HTTP_PATH = "/mcp"
SESSION_IDLE_S = 1800.0  # a client that was silent for half an hour begins a new session
HEADER_TIMEOUT_S = 10.0  # to send the head of a request, and
BODY_TIMEOUT_S = 30.0  # its body: both are small, so that only a stuck or hostile client takes longer
MAX_BODY_BYTES = 1 << 20  # a query or a note of a megabyte is a mistake
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - only named here
DEFAULT_PORTS = {"http": 80, "https": 443}
MISDIRECTED, FORBIDDEN, UNAUTHORIZED = 421, 403, 401
TOO_SLOW, TOO_LARGE = 408, 413


def serve_stdio(tools: MemoryTools | None) -> None:
    """Serve until stdin ends or a signal arrives, then exit at once with code 0; without tools the server is idle."""
    from mcp.server.stdio import stdio_server

    protocol = MemoryServer(tools).protocol if tools else idle_protocol()

    ending = threading.Event()

    def close() -> None:
        ending.wait()
        if tools:
            tools.memory.close()

    # In a thread that runs already: a signal may interrupt what holds a lock that closing, or starting a thread, needs.
    closing = threading.Thread(target=close, daemon=True)
    closing.start()

    def leave(_signal: int = 0, _frame: FrameType | None = None) -> None:
        ending.set()
        closing.join(STDIO_SHUTDOWN_S)
        sys.stderr.flush()
        os._exit(0)  # a thread that waits for stdin, or a running model, would delay an ordinary exit

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await protocol.run(incoming, outgoing, protocol.create_initialization_options())

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if name in signal.Signals.__members__:  # Windows has no SIGHUP
            signal.signal(signal.Signals[name], leave)
    anyio.run(serve)
    leave()


def serve_http(
    tools: MemoryTools, *, host: str, port: int, names: Iterable[str] = (), announce: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; `announce` is given the URL once the server listens."""
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    token = tools.memory.settings.mcp.token
    if not is_loopback(host) and not token:
        raise SettingsError(
            f"listening at {host} lets other machines read the memory: that needs a token",
            hint="set mcp.token (NOTEWELL_MCP__TOKEN), or listen at 127.0.0.1",
        )
    with _listening(host, port) as listener:
        port = listener.getsockname()[1]
        own = LOOPBACK_NAMES if is_loopback(host) or host in EVERY_ADDRESS else frozenset({host.lower()})
        guard = Guard(
            MemoryServer(tools).protocol.streamable_http_app(
                streamable_http_path=HTTP_PATH,
                max_request_body_size=MAX_BODY_BYTES,
                session_idle_timeout=SESSION_IDLE_S,
                transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard does
            ),
            names=own | {name.lower() for name in names},
            port=port,
            token=token,
            any_address=host in EVERY_ADDRESS,
        )
        config = uvicorn.Config(
            guard,
            http=timed_protocol(),
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=HTTP_SHUTDOWN_S,
        )
        announce(f"http://{f'[{host}]' if ':' in host else host}:{port}{HTTP_PATH}")
        for each in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises the signal again after it has shut down
            signal.signal(each, lambda *_: None)
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            tools.memory.close()


def _listening(host: str, port: int) -> socket.socket:
    try:
        # With the protocol named: only then does asyncio set TCP_NODELAY, which saves 40 ms a response.
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name != "nt":  # there it would let two servers share one port
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(128)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(
            f"cannot listen at {host}, port {port}: {reason}",
            hint="choose another --port (0 picks a free one) or --host",
        ) from error
    return listener


def timed_protocol() -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol with a time limit for the head of a request, which uvicorn has none for."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedProtocol(H11Protocol):
        head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expect_head()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before:
                self._head_arrived()
            elif self.head_timer is None and (self.cycle is None or self.cycle.response_complete):
                self._expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._head_arrived()
            super().connection_lost(exc)

        def _expect_head(self) -> None:
            self.head_timer = self.loop.call_later(HEADER_TIMEOUT_S, self.transport.abort)

        def _head_arrived(self) -> None:
            if self.head_timer is not None:
                self.head_timer.cancel()
                self.head_timer = None

    return TimedProtocol


@dataclass(frozen=True, slots=True)
class Guard:
    """Passes on a request only if its Host is this server, its Origin is not another web page and its token is right.

    A web page can make a browser send requests here (DNS rebinding); the page's name is then in Host or Origin.
    """

    application: Application
    names: frozenset[str]  # lower case, without port
    port: int
    token: str = ""
    any_address: bool = False  # listening at every address: any IP address is ours, no other name is

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # policy violation
        elif refusal := self._refusal(scope.get("headers", ())):
            await _refuse(send, *refusal)
        else:
            await self._pass_on(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body within its time and size, then let the application answer."""
        body = b""
        with anyio.move_on_after(BODY_TIMEOUT_S) as limit:
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return  # the client is gone
                body += message.get("body", b"")
                if len(body) > MAX_BODY_BYTES:
                    await _refuse(send, TOO_LARGE, f"the body is larger than {MAX_BODY_BYTES:,} bytes")
                    return
                if not message.get("more_body"):
                    break
        if limit.cancelled_caught:
            await _refuse(send, TOO_SLOW, f"the body did not arrive within {BODY_TIMEOUT_S:g} s")
            return
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> MutableMapping[str, Any]:
            return waiting.pop() if waiting else await receive()

        await self.application(scope, replay, send)

    def _refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """Return why the request is refused; a repeated Host or Authorization header is refused too."""
        sent: dict[bytes, list[str]] = {b"host": [], b"origin": [], b"authorization": []}
        for name, value in headers:
            if name.lower() in sent:
                sent[name.lower()].append(value.decode("latin-1"))
        if len(sent[b"host"]) != 1 or not self._is_ours(f"//{sent[b'host'][0]}"):
            return MISDIRECTED, "this Host is not served here; see --allow-host"
        if any(not self._is_own_origin(origin, sent[b"host"][0]) for origin in sent[b"origin"]):
            return FORBIDDEN, "this Origin may not use the memory"
        if self.token and not self._is_authorized(sent[b"authorization"]):
            return UNAUTHORIZED, "send `Authorization: Bearer <token>` with the token in the setting mcp.token"
        return None

    def _is_ours(self, address: str) -> bool:
        try:
            parts = urlsplit(address)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            return False
        if not host or parts.username is not None or parts.path or parts.query or parts.fragment:
            return False
        if port is not None and port != self.port and is_loopback(host):
            return False
        return host in self.names or (self.any_address and _ip_address(host) is not None)

    def _is_own_origin(self, origin: str, host: str) -> bool:
        scheme, _, rest = origin.partition(":")
        port = DEFAULT_PORTS.get(scheme.lower())
        if port is None or not self._is_ours(rest):
            return False
        page = urlsplit(rest)
        if page.port is not None or not is_loopback(page.hostname or ""):
            return True
        # Without a port it is a page of another server on this machine, unless that one is a proxy for this one.
        return urlsplit(f"//{host}").port in {None, port}

    def _is_authorized(self, sent: list[str]) -> bool:
        if len(sent) != 1:
            return False
        scheme, _, given = sent[0].partition(" ")
        given_bytes = given.strip().encode("latin-1")  # as they were sent
        return scheme.lower() == "bearer" and hmac.compare_digest(given_bytes, self.token.encode())


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"error": {"kind": "refused", "message": reason}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status in {TOO_SLOW, TOO_LARGE}:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    if status == UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach what listens at `host`."""
    address = _ip_address(host)
    return address.is_loopback if address else host.lower() == "localhost"


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
