"""`notewell mcp`: offer the memory to agents over the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from notewell import NotewellError
from notewell.agents.tools import MemoryTools
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_notes
from notewell.mcp.sdk import lean_imports

if TYPE_CHECKING:
    from notewell.sources.privacy import Chat

DEFAULT_PORT = 8765


@click.command("mcp", epilog="Example: notewell mcp --workspace .")
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP instead of stdin and stdout.")
@click.option("--host", default="127.0.0.1", metavar="HOST", help="Where to listen.  [default: 127.0.0.1]")
@click.option("--port", type=int, default=DEFAULT_PORT, metavar="N", help="0 picks a free one.  [default: 8765]")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="Another name this server is reached by.")
@click.option("--chat", type=click.Choice(["direct", "group"]), default="direct", help="Who listens to the agent.")
@click.option("--append", is_flag=True, help="Offer memory_append as well, which adds to notes.")
@common_options
def command(
    *, over_http: bool, host: str, port: int, names: tuple[str, ...], chat: Chat, append: bool, chosen: Chosen
) -> None:
    """Serve the memory as MCP tools, on stdin and stdout or over HTTP, until the client goes or Ctrl-C."""
    if chosen.as_json:
        raise click.UsageError("--json: a server prints no document.")
    memory = chosen.memory()
    tools = MemoryTools(memory, chat=chat, append=append or None)
    try:
        with lean_imports():
            if over_http:
                from notewell.mcp.http import serve_http
            else:
                from notewell.mcp.stdio import serve_stdio
    except ImportError as error:
        raise NotewellError(
            f"the MCP server needs a package that is missing: {error.name}", hint="pip install 'notewell[mcp]'"
        ) from error
    if over_http:
        serve_http(tools, host=host, port=port, names=names, announce=lambda url: print_notes([f"serving {url}"]))
    else:
        serve_stdio(tools)
