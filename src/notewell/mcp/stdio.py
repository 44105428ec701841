"""A memory in, an MCP server on this process's stdin and stdout out; it ends when the client goes or asks it to."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

from notewell.mcp.server import MemoryServer

if TYPE_CHECKING:
    from types import FrameType

    from notewell.agents.tools import MemoryTools

PATIENCE_S = 2.0  # to end work under way; clients kill a server that takes much longer


def serve_stdio(tools: MemoryTools) -> None:
    """Serve until stdin ends or the process is asked to end, then leave at once with exit code 0."""
    server = MemoryServer(tools)

    def leave(_signal: int = 0, _frame: FrameType | None = None) -> None:
        # From a thread: the one that was interrupted may hold what closing needs.
        closing = threading.Thread(target=tools.memory.close, daemon=True)
        closing.start()
        closing.join(PATIENCE_S)
        sys.stderr.flush()
        os._exit(0)  # a thread that waits for stdin, or a model at work, would hold up an ordinary exit

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows knows no SIGHUP
            signal.signal(getattr(signal, name), leave)
    anyio.run(_serve, server)
    leave()


async def _serve(server: MemoryServer) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.protocol.run(incoming, outgoing, server.protocol.create_initialization_options())
