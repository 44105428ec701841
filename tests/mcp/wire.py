"""The protocol by hand: lines of JSON to a server's stdin and from its stdout, in both generations."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .conftest import COMMAND, server_environment

PATIENCE_S = 60  # a loaded machine; nothing here takes a second
CLIENT = {"name": "by-hand", "version": "1"}
MODERN = "2026-07-28"


class Wire:
    """One server process; every line that it prints must be one message of the protocol."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr
        self.envelope: dict[str, Any] = {}
        self.notifications: list[dict[str, Any]] = []
        self._ids = iter(range(1, 1_000_000))
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def send(self, message: dict[str, Any]) -> None:
        self.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.stdin.flush()

    def ask(self, method: str, params: dict[str, Any] | None = None, *, meta: dict[str, Any] | None = None) -> Any:
        """Send a request and return the answer to it, a result or an error."""
        number = next(self._ids)
        merged = {**(params or {})}
        if self.envelope or meta:
            merged["_meta"] = {**self.envelope, **(meta or {})}
        self.send({"id": number, "method": method, "params": merged})
        while True:
            line = self._lines.get(timeout=PATIENCE_S)
            assert line, f"the server ended: {self.stderr.read().decode()}"
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == number:
                return message
            self.notifications.append(message)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return the result."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def shake_hands(self, version: str = "2025-11-25") -> dict[str, Any]:
        """Begin as clients before 2026-07-28 do, and return what the server said."""
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
        result: dict[str, Any] = self.ask("initialize", params)["result"]
        self.send({"method": "notifications/initialized"})
        return result

    def discover(self) -> dict[str, Any]:
        """Begin as clients since 2026-07-28 do: every request says who asks and what they speak."""
        self.envelope = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": CLIENT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        result: dict[str, Any] = self.ask("server/discover")["result"]
        return result

    def end(self) -> tuple[int, list[bytes], str]:
        """Close stdin as a client does that goes; return the exit code, what else was printed, and stderr."""
        self.stdin.close()
        code = self.process.wait(PATIENCE_S)
        self._reader.join()
        rest = []
        while line := self._lines.get_nowait():
            rest.append(line)
        return code, rest, self.stderr.read().decode()


@contextmanager
def wire(workspace: Path, *words: str, **environ: str) -> Iterator[Wire]:
    """Run `notewell mcp` and yield the line to it; it is gone at the end."""
    process = subprocess.Popen(
        [*COMMAND, "-w", str(workspace), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=server_environment(**environ),
        cwd=workspace.parent,
    )
    line = Wire(process)
    try:
        yield line
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        line._reader.join()
        for stream in (line.stdin, line.stdout, line.stderr):
            with suppress(BrokenPipeError):
                stream.close()
