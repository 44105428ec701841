"""Installs the MCP server into other programs by editing their settings.

A change is planned first, then written, with a backup of the file.
"""

from __future__ import annotations

import contextlib
import copy
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from notewell.errors import NotewellError, system_error
from notewell.files.atomic import write_atomically

Format = Literal["json", "toml"]  # json: also with comments, or JSON5
Environ = Mapping[str, str]

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # server names that every client accepts
NEW_MODE = 0o600  # such files often hold tokens of other servers
MAX_BACKUPS = 1000  # in one second


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
    project_variable: str = ""  # expands to the project's folder
    next_step: str = ""
    beside: str = ""  # a note on the program's own memory


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
            "codex", "Codex", "toml", _codex, ("mcp_servers",), next_step="restart Codex; `codex mcp list` shows it"
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
) -> dict[str, Any]:
    """Return the entry in the client's settings with which it starts the server.

    Desktop programs often have a different PATH than the shell, so the user's settings contain the full path. A
    project's settings are shared with others: they say `notewell`, and the project's folder if that is the workspace.
    """
    args = ["mcp"]
    if project is not None and workspace == project:
        args += ["--workspace", client.project_variable] if client.project_variable else []
    else:
        args += ["--workspace", str(workspace)]
    args += ["--agent", agent] if agent != "main" else []
    args += ["--read-only"] if read_only else []
    command = "notewell" if project is not None else str(program or _own_program() or "")
    if not command:
        command, args = sys.executable, ["-m", "notewell", *args]
    return ({"type": "stdio"} if client.typed else {}) | {"command": command, "args": args}


def _own_program() -> Path | None:
    """Return the `notewell` command of this Python, if it is installed."""
    path = Path(sys.executable).parent / ("notewell.exe" if os.name == "nt" else "notewell")
    return path if path.is_file() else None


# --- changing settings ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """The planned change of a settings file, which may be none."""

    client: Client
    name: str
    file: Path
    old: str | None  # None: there is no such file
    new: str

    @property
    def is_change(self) -> bool:
        return (self.old or "") != self.new

    @property
    def diff(self) -> str:
        """The change in the format of `diff -u`."""
        import difflib

        old, new = ((text or "").splitlines(keepends=True) for text in (self.old, self.new))
        lines = difflib.unified_diff(old, new, str(self.file), str(self.file))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def plan_change(client: Client, file: Path, *, name: str, entry: dict[str, Any] | None) -> Change:
    """Return the change that adds the entry to the client's settings; None removes it.

    The edited text is parsed again and must contain exactly the intended change; otherwise an error is raised.
    """
    if not NAME.fullmatch(name):
        raise NotewellError(f"{name!r} cannot be a server's name", hint="use letters, digits, - and _")
    try:
        old = _read(file)
    except OSError as error:
        raise system_error(error) from error
    keys = (*client.keys, name)
    before = _values(client, file, old or "")
    known: Any = before
    for key in keys:
        known = known.get(key) if isinstance(known, dict) else None
    if known is not None and not _is_ours(known):
        raise NotewellError(
            f"{client.title} already has another server called {name!r}",
            hint="choose another name, such as --name notewell",
        )
    if entry is not None and isinstance(known, dict):
        entry = {**known, **entry}  # keep what people added, such as `env`
    if known == entry:
        return Change(client, name, file, old, old or "")
    wanted = _with_entry(before, keys, entry)
    try:
        new = _edited(client, old or "", keys, entry)
        problem = "" if _values(client, file, new) == wanted else "the edit would change something else"
    except (ValueError, NotewellError) as error:
        problem = str(error)
    if problem:
        raise NotewellError(
            f"{file} cannot be changed safely: {problem}",
            hint=f"edit it by hand: {'.'.join(keys)} = {entry}" if entry else "edit it by hand",
        )
    return Change(client, name, file, old, new)


def apply_change(change: Change) -> Path | None:
    """Write the change and return the backup of the old file; None if there was none."""
    if not change.is_change:
        return None
    file = Path(os.path.realpath(change.file))  # a link to the settings stays a link
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if _read(file) != change.old:
            raise NotewellError(
                f"{change.file} has changed meanwhile, so nothing was written",
                hint=f"close {change.client.title} and run the command again",
            )
        if change.old is None:
            write_atomically(file, change.new, mode=NEW_MODE)
            return None
        mode = file.stat().st_mode & 0o7777
        backup = _back_up(file, change.old, mode)
        write_atomically(file, change.new, mode=mode)
    except OSError as error:
        raise system_error(error) from error
    return backup


def _values(client: Client, file: Path, text: str) -> dict[str, Any]:
    import tomllib  # only a change needs it

    from notewell.agents.editing import values_of

    try:
        return tomllib.loads(text.replace("\r\n", "\n")) if client.format == "toml" else values_of(text)
    except ValueError as error:
        kind = "TOML" if client.format == "toml" else "JSON"
        raise NotewellError(
            f"{file} is not valid {kind}: {error}", hint="fix it by hand; nothing was changed"
        ) from error


def _with_entry(values: dict[str, Any], keys: tuple[str, ...], entry: dict[str, Any] | None) -> dict[str, Any]:
    """Return the values with the entry set, or removed along with tables that become empty."""
    wanted = copy.deepcopy(values)
    table = wanted
    way = []
    for key in keys[:-1]:
        way.append((table, key))
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise NotewellError(f"{key} is not a table", hint="fix the file by hand")
    if entry is not None:
        table[keys[-1]] = entry
        return wanted
    table.pop(keys[-1], None)
    while way and not table:
        table, key = way.pop()
        del table[key]
    return wanted


def _edited(client: Client, old: str, keys: tuple[str, ...], entry: dict[str, Any] | None) -> str:
    from notewell.agents import editing

    if client.format == "toml":
        table = (keys[0], keys[-1])
        return editing.with_table(old, table, entry) if entry is not None else editing.without_table(old, table)
    return editing.with_member(old, keys, entry) if entry is not None else editing.without_member(old, keys)


def _is_ours(entry: Any) -> bool:
    """Return whether an entry starts notewell's server, wherever it is installed."""
    if not isinstance(entry, dict) or not isinstance(entry.get("args"), list):
        return False
    words = [str(entry.get("command") or ""), *map(str, entry["args"])]
    program = re.split(r"[\\/]", words[0])[-1].lower().removesuffix(".exe")
    runs_module = words[1:3] == ["-m", "notewell"]
    return (program == "notewell" or runs_module) and "mcp" in words


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise NotewellError(f"{file} is not valid UTF-8", hint="save it as UTF-8 and try again") from error


def _back_up(file: Path, text: str, mode: int) -> Path:
    stem = f"{file.name}.{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    for number in range(MAX_BACKUPS):
        backup = file.with_name(f"{stem}{f'-{number}' if number else ''}.bak")
        with contextlib.suppress(FileExistsError):
            write_atomically(backup, text, mode=mode, overwrite=False)
            return backup
    raise NotewellError(f"{file} could not be backed up", hint="remove old files that end in .bak")
