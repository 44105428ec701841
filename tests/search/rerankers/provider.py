"""A reranking provider on the loopback interface: it answers as the real ones do, or fails as it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATHS = {"cohere": "/v2/rerank", "jina": "/v1/rerank", "voyage": "/v1/rerank"}
RESULTS = {"cohere": "results", "jina": "results", "voyage": "data"}
COUNTS = {"cohere": "top_n", "jina": "top_n", "voyage": "top_k"}


@dataclass(frozen=True)
class Reply:
    """What the provider answers once."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut_short: bool = False  # announce more than is sent, then hang up


@dataclass
class Provider:
    """What was asked, and what will be answered: first the planned replies, then honest ones."""

    name: str
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    planned: list[Reply] = field(default_factory=list)
    held: threading.Event | None = None  # answers wait until it is set

    def reply_to(self, request: dict[str, Any]) -> Reply:
        return self.planned.pop(0) if self.planned else Reply(body=json.dumps(self.honest(request)).encode())

    def honest(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the documents best first, scored by the share of the query's words they hold."""
        words = set(request["query"].lower().split())
        scores = [len(words & set(text.lower().split())) / len(words) for text in request["documents"]]
        order = sorted(range(len(scores)), key=lambda at: -scores[at])[: request[COUNTS[self.name]]]
        results = [{"index": at, "relevance_score": scores[at]} for at in order]
        return {"id": "1", RESULTS[self.name]: results}


@contextmanager
def running(name: str) -> Iterator[Provider]:
    """Run a provider until the block ends."""
    provider = Provider(name)

    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1  # headers and body leave in one packet: no wait for a delayed acknowledgement
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            provider.requests.append(request)
            provider.headers.append(dict(self.headers))
            provider.paths.append(self.path)
            if provider.held:
                provider.held.wait(10)
            reply = provider.reply_to(request)
            self.send_response(reply.status)
            for header, value in reply.headers.items():
                self.send_header(header, value)
            self.send_header("Content-Length", str(len(reply.body) + (100 if reply.cut_short else 0)))
            self.end_headers()
            self.wfile.write(reply.body)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    provider.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield provider
    finally:
        if provider.held:
            provider.held.set()
        server.shutdown()
        thread.join()
        server.server_close()
