"""The programs that notewell can be installed into: where their settings are, and how they start an MCP server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Format = Literal["json", "toml"]  # json: also with comments, or JSON5
Environ = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Server:
    """How a program starts the MCP server."""

    command: str
    args: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Client:
    """A program, and where and how its settings list MCP servers."""

    name: str  # as on the command line
    title: str
    format: Format
    user_file: Callable[[Environ], Path]
    keys: tuple[str, ...]  # of the table of servers
    project_file: str = ""  # relative to the project; empty: none
    typed: bool = False  # an entry has `"type": "stdio"`
    project_variable: str = ""  # stands for the project's folder
    next_step: str = ""
    beside: str = ""  # what of the program's own the server stands beside

    def entry(self, server: Server) -> dict[str, Any]:
        """Return the server's entry in this program's settings."""
        head: dict[str, Any] = {"type": "stdio"} if self.typed else {}
        return head | {"command": server.command, "args": list(server.args)}


def _home(environ: Environ) -> Path:
    named = environ.get("USERPROFILE") if os.name == "nt" else environ.get("HOME")
    return Path(named) if named else Path.home()


def _claude_code(environ: Environ) -> Path:
    return Path(environ.get("CLAUDE_CONFIG_DIR") or _home(environ)) / ".claude.json"


def _claude_desktop(environ: Environ) -> Path:
    return _application_data(environ) / "Claude" / "claude_desktop_config.json"


def _codex(environ: Environ) -> Path:
    return Path(environ.get("CODEX_HOME") or _home(environ) / ".codex") / "config.toml"


def _openclaw(environ: Environ) -> Path:
    if environ.get("OPENCLAW_CONFIG_PATH"):
        return Path(environ["OPENCLAW_CONFIG_PATH"]).expanduser()
    home = Path(environ.get("OPENCLAW_HOME") or _home(environ)).expanduser()
    return Path(environ.get("OPENCLAW_STATE_DIR") or home / ".openclaw").expanduser() / "openclaw.json"


def _cursor(environ: Environ) -> Path:
    return _home(environ) / ".cursor" / "mcp.json"


def _vscode(environ: Environ) -> Path:
    return _application_data(environ) / "Code" / "User" / "mcp.json"


def _application_data(environ: Environ) -> Path:
    """Return where desktop programs keep their settings."""
    home = _home(environ)
    return {
        "darwin": home / "Library" / "Application Support",
        "win32": Path(environ.get("APPDATA") or home / "AppData" / "Roaming"),
    }.get(sys.platform, Path(environ.get("XDG_CONFIG_HOME") or home / ".config"))


CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            "Claude Code",
            "json",
            _claude_code,
            ("mcpServers",),
            project_file=".mcp.json",
            typed=True,
            next_step="restart Claude Code; `claude mcp list` shows whether it connects",
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            "json",
            _claude_desktop,
            ("mcpServers",),
            next_step="quit Claude Desktop and start it again; its settings list the server under Developer",
        ),
        Client(
            "codex",
            "Codex",
            "toml",
            _codex,
            ("mcp_servers",),
            next_step="restart Codex; `codex mcp list` shows it",
        ),
        Client(
            "openclaw",
            "OpenClaw",
            "json",
            _openclaw,
            ("mcp", "servers"),
            next_step="`openclaw mcp probe` shows whether it connects",
            beside="OpenClaw's own memory tools stay beside these, and the agent sees both; to leave it only these, "
            "run `openclaw config set plugins.slots.memory none`; to leave it only its own, `notewell install openclaw "
            "--uninstall`",
        ),
        Client(
            "cursor",
            "Cursor",
            "json",
            _cursor,
            ("mcpServers",),
            project_file=".cursor/mcp.json",
            project_variable="${workspaceFolder}",
            next_step="restart Cursor; its settings list the server under MCP",
        ),
        Client(
            "vscode",
            "Visual Studio Code",
            "json",
            _vscode,
            ("servers",),
            project_file=".vscode/mcp.json",
            typed=True,
            project_variable="${workspaceFolder}",
            next_step="run `MCP: List Servers` in the command palette and start it",
        ),
    )
}


def server_for(
    client: Client,
    workspace: Path,
    *,
    project: Path | None = None,
    agent: str = "main",
    read_only: bool = False,
    program: Path | None = None,
) -> Server:
    """Return how the client starts the server.

    Desktop programs often have another PATH than the shell, so the user's settings name our program by its full path.
    A project's settings are shared with others: they say `notewell`, and the project's folder if that is the workspace.
    """
    args = ["mcp"]
    if project is not None and workspace == project:
        args += ["--workspace", client.project_variable] if client.project_variable else []
    else:
        args += ["--workspace", str(workspace)]
    args += ["--agent", agent] if agent != "main" else []
    args += ["--read-only"] if read_only else []
    if project is not None:
        return Server("notewell", tuple(args))
    found = program or _own_program()
    return Server(str(found), tuple(args)) if found else Server(sys.executable, ("-m", "notewell", *args))


def _own_program() -> Path | None:
    """Return the `notewell` command of this Python, if it is installed."""
    path = Path(sys.executable).parent / ("notewell.exe" if os.name == "nt" else "notewell")
    return path if path.is_file() else None
