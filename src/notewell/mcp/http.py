"""A memory and an address in, an MCP server on streamable HTTP at that address out, until the process is stopped."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from notewell import SettingsError
from notewell.mcp.guard import LOOPBACK_NAMES, Guard, is_loopback
from notewell.mcp.server import MemoryServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from notewell.agents.tools import MemoryTools

PATH = "/mcp"
EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - only named here
LARGEST_BODY = 1 << 20  # bytes; a query or a note of a megabyte is a mistake
PATIENCE_S = 3  # for answers under way when the server is stopped


def serve_http(
    tools: MemoryTools, *, host: str, port: int, names: Iterable[str] = (), announce: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; `announce` is given the address once it listens."""
    token = tools.memory.settings.mcp.token
    if not is_loopback(host) and not token:
        raise SettingsError(
            f"listening at {host} lets other machines read the memory: that needs a token",
            hint="set mcp.token (NOTEWELL_MCP__TOKEN), or listen at 127.0.0.1",
        )
    with _listening(host, port) as listener:
        port = listener.getsockname()[1]
        server = MemoryServer(tools)
        guard = Guard(
            server.protocol.streamable_http_app(
                streamable_http_path=PATH,
                max_request_body_size=LARGEST_BODY,
                transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard does
            ),
            names=_names(host, names),
            port=port,
            token=token,
            any_address=host in EVERY_ADDRESS,
        )
        config = uvicorn.Config(
            guard, log_level="error", access_log=False, server_header=False, timeout_graceful_shutdown=PATIENCE_S
        )
        shown = f"[{host}]" if ":" in host else host
        announce(f"http://{shown}:{port}{PATH}")
        try:
            _serve(uvicorn.Server(config), listener)
        finally:
            tools.memory.close()


def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serve until a signal, which uvicorn raises once more when it has ended: then it must not end the process."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: None)
    server.run(sockets=[listener])


def _names(host: str, more: Iterable[str]) -> frozenset[str]:
    own = LOOPBACK_NAMES if is_loopback(host) or host in EVERY_ADDRESS else frozenset({host.lower()})
    return own | {name.lower() for name in more}


def _listening(host: str, port: int) -> socket.socket:
    try:
        # With the protocol named: asyncio turns off the delay of small answers (40 ms each) only then.
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name != "nt":  # there it would let two servers have one port
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
