"""A server on the loopback interface that answers what it is told to, in order, and then `{}`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.fakes.loopback import LoopbackServer, Reply, Request


@dataclass
class Scripted:
    """What was asked, and what will be answered."""

    planned: list[Reply] = field(default_factory=list)
    always: Reply | None = None
    requests: list[Request] = field(default_factory=list)
    url: str = ""

    def answer(self, request: Request) -> Reply:
        self.requests.append(request)
        if self.planned:
            return self.planned.pop(0)
        return self.always or Reply(body=b"{}")


@contextmanager
def serving(*planned: Reply, always: Reply | None = None) -> Iterator[Scripted]:
    """Run the server until the block ends."""
    script = Scripted(list(planned), always)
    server = LoopbackServer(script.answer)
    server.start()
    script.url = f"http://127.0.0.1:{server.port}"
    try:
        yield script
    finally:
        server.close()
