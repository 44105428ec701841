"""A model hub on 127.0.0.1: it redirects from the name of a file to its content, and misbehaves when told to."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Hub:
    """What the hub holds and how it behaves; requests are recorded as (path, Range)."""

    content: bytes
    sha256: str | None = None  # None: the right one
    announce: bool = True  # the headers that name size and checksum
    drop_after: list[int] = field(default_factory=list)  # one entry a connection: bytes sent before it is cut
    hang_after: int | None = None  # bytes sent before it falls silent, until `released`
    released: threading.Event = field(default_factory=threading.Event)
    codes: list[int] = field(default_factory=list)  # one entry a connection: refuse with it
    retry_after: str = ""
    ranges: bool = True
    redirect_to: str = "{cdn}/cdn/{path}"
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)  # of the requests, names in lower case
    address: str = ""

    @property
    def announced_sha256(self) -> str:
        return self.sha256 or hashlib.sha256(self.content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub = self.server.hub
        hub.requests.append((self.path, self.headers.get("Range")))
        hub.headers.append({name.lower(): value for name, value in self.headers.items()})
        if not self.path.startswith("/cdn/"):
            self._redirect(hub)
        elif self.command == "HEAD":
            self._answer(200, [("ETag", f'"{hub.announced_sha256}"'), ("Content-Length", str(len(hub.content)))])
        elif hub.codes:
            self._answer(hub.codes.pop(0), [("Retry-After", hub.retry_after)] if hub.retry_after else [])
        else:
            self._send(hub)

    def _redirect(self, hub: Hub) -> None:
        # Another host name, as a real hub's: huggingface_hub reads the size and checksum from such a redirect.
        cdn = hub.address.replace("127.0.0.1", "localhost")
        headers = [("Location", hub.redirect_to.format(cdn=cdn, path=self.path.lstrip("/")))]
        if hub.announce:
            headers += [("X-Linked-Size", str(len(hub.content))), ("X-Linked-ETag", f'"{hub.announced_sha256}"')]
        self._answer(302, headers)

    def _send(self, hub: Hub) -> None:
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and hub.ranges else 0
        if start >= len(hub.content):
            self._answer(416, [])
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(hub.content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
        self.end_headers()
        if hub.hang_after is not None:
            self.wfile.write(hub.content[start : start + hub.hang_after])
            hub.released.wait(timeout=60)
            return
        end = start + hub.drop_after.pop(0) if hub.drop_after else len(hub.content)
        self.wfile.write(hub.content[start:end])

    def _answer(self, code: int, headers: list[tuple[str, str]]) -> None:
        self.send_response(code)
        for name, value in headers if self.command == "HEAD" else [*headers, ("Content-Length", "0")]:
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, hub: Hub) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.hub = hub

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is part of the game."""


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Let the hub answer until the end of the block; `hub.address` says where."""
    server = Server(hub)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join(timeout=10)
        server.server_close()
