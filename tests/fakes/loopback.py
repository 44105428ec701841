"""A real HTTP/1.1 server on the loopback interface: requests are recorded, then answered by one function."""

from __future__ import annotations

import itertools
import json
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

Manner = Literal["whole", "hang", "hang_mid_body", "reset"]
HTML_ERROR = b"<html><head><title>502 Bad Gateway</title></head><body>upstream is not there</body></html>"


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    path: str  # without the query
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    connection: int  # the same number: the same connection
    route: str = ""  # what the provider took it for: embed, upload, create, poll, list, download, ...

    @property
    def json(self) -> Any:
        """The body, parsed; None when it is not JSON."""
        try:
            return json.loads(self.body) if self.body else None
        except ValueError:
            return None


@dataclass(frozen=True)
class Reply:
    """What the server answers, and how it behaves while it does."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    manner: Manner = "whole"
    content_type: str = "application/json"


def json_reply(value: Any, *, status: int = 200, **headers: str) -> Reply:
    """Return a reply that holds `value` as JSON; NaN and Infinity are written as Python writes them."""
    names = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status, json.dumps(value).encode(), names)


class LoopbackServer:
    """Serves every connection in a thread of its own; `close` ends them all, hanging answers included."""

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.closing = threading.Event()
        self._answer = answer
        self._sockets: dict[int, socket.socket] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def connections(self) -> int:
        """How many connections were ever opened."""
        with self._lock:
            return self._opened

    _opened = 0

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        if self.closing.is_set():
            return
        self.closing.set()
        self._server.shutdown()
        with self._lock:
            sockets = list(self._sockets.values())
        for connection in sockets:
            _hang_up(connection)
        self._server.server_close()
        self._thread.join(10)

    def answer(self, request: Request) -> Reply:
        return self._answer(request)

    def opened(self, connection: socket.socket) -> int:
        with self._lock:
            number = next(self._numbers)
            self._opened = number
            self._sockets[number] = connection
        if self.closing.is_set():
            _hang_up(connection)
        return number

    def closed(self, number: int) -> None:
        with self._lock:
            self._sockets.pop(number, None)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # joined by server_close(): no thread outlives its test
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: clients that hang up are part of the tests."""


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # the client may be quicker
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    owner: LoopbackServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body leave together: one packet, no delayed acknowledgement
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.number = self.owner.opened(self.connection)

    def finish(self) -> None:
        self.owner.closed(self.number)
        super().finish()

    def _serve(self) -> None:
        address = urlsplit(self.path)
        request = Request(
            method=self.command,
            path=address.path,
            query=dict(parse_qsl(address.query)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self._read_body(),
            connection=self.number,
        )
        self._send(self.owner.answer(request))

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _send(self, reply: Reply) -> None:
        if reply.manner == "hang":
            self.owner.closing.wait()
            self.close_connection = True
            return
        if reply.manner == "reset":
            # Linger of zero seconds: closing sends RST instead of FIN.
            self.connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
            )
            self.connection.close()
            self.close_connection = True
            return
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if reply.manner == "hang_mid_body":
            self.wfile.write(reply.body[: len(reply.body) // 2])
            self.wfile.flush()
            self.owner.closing.wait()
            self.close_connection = True
            return
        self.wfile.write(reply.body)
        self.wfile.flush()

    do_GET = do_POST = do_DELETE = do_PATCH = _serve

    def log_message(self, *_: object) -> None:
        """Keep quiet."""
