"""The door of the HTTP server: every request's Host, Origin and token in, the request itself or a refusal out."""

from __future__ import annotations

import hmac
import ipaddress
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
MISDIRECTED, FORBIDDEN, UNAUTHORIZED = 421, 403, 401


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach what listens at `host`."""
    address = _address(host)
    return address.is_loopback if address else host.lower() == "localhost"


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets a request through only if it was meant for this server, comes from no foreign web page and knows the token.

    A web page can make a browser send requests here (DNS rebinding): its name is then in Host or Origin.
    """

    application: Application
    names: frozenset[str]  # lower case, without port
    port: int
    token: str = ""
    any_address: bool = False  # listening at every address: any IP address is one of ours, no name is

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
            return
        refusal = self._refusal(scope.get("headers", ()))
        if refusal is None and scope["type"] == "http":
            await self.application(scope, receive, send)
        elif scope["type"] == "http":
            await _refuse(send, *(refusal or (FORBIDDEN, "no such protocol here")))
        else:
            await send({"type": "websocket.close", "code": 1008})  # policy violation

    def _refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """Return why the request is refused; a header that should come once and comes twice is refused, too."""
        sent: dict[bytes, list[str]] = {b"host": [], b"origin": [], b"authorization": []}
        for name, value in headers:
            if name.lower() in sent:
                sent[name.lower()].append(value.decode("latin-1"))
        if len(sent[b"host"]) != 1 or not self._is_ours(f"//{sent[b'host'][0]}"):
            return MISDIRECTED, "this Host is not served here; see --allow-host"
        if any(not self._is_own_origin(origin) for origin in sent[b"origin"]):
            return FORBIDDEN, "this Origin may not use the memory"
        if self.token and not self._knows_token(sent[b"authorization"]):
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
        return host in self.names or (self.any_address and _address(host) is not None)

    def _is_own_origin(self, origin: str) -> bool:
        scheme, colon, rest = origin.partition(":")
        return bool(colon) and scheme.lower() in {"http", "https"} and self._is_ours(rest)

    def _knows_token(self, sent: list[str]) -> bool:
        if len(sent) != 1:
            return False
        scheme, _, given = sent[0].partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self.token.encode())


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"error": {"kind": "refused", "message": reason}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
