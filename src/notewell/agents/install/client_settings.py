"""Changes the settings file of a client: plans the change first, then writes it and keeps a backup."""

from __future__ import annotations

import contextlib
import copy
import difflib
import os
import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notewell.agents.install.editing import values_of, with_member, with_table, without_member, without_table
from notewell.errors import NotewellError, system_error
from notewell.files.atomic import write_atomically

if TYPE_CHECKING:
    from notewell.agents.install.clients import Client, Server

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # server names that every client accepts
NEW_MODE = 0o600  # such files often hold tokens of other servers
MAX_BACKUPS = 1000  # in one second


@dataclass(frozen=True, slots=True)
class Change:
    """The planned change of one settings file; no change when both texts are the same."""

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
        old, new = ((text or "").splitlines(keepends=True) for text in (self.old, self.new))
        lines = difflib.unified_diff(old, new, str(self.file), str(self.file))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def plan_change(client: Client, file: Path, *, name: str, server: Server | None) -> Change:
    """Return the change that adds the server to the client's settings under this name; None removes it.

    The edited text is parsed again and must say exactly what was intended; otherwise nothing is changed.
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
    entry = client.entry(server) if server else None
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
    """Write the change and return the backup of the old file; None when there was none."""
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


# --- values --------------------------------------------------------------------------------------


def _values(client: Client, file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n")) if client.format == "toml" else values_of(text)
    except ValueError as error:
        kind = "TOML" if client.format == "toml" else "JSON"
        raise NotewellError(
            f"{file} is not valid {kind}: {error}", hint="fix it by hand; nothing was changed"
        ) from error


def _with_entry(values: dict[str, Any], keys: tuple[str, ...], entry: dict[str, Any] | None) -> dict[str, Any]:
    """Return the values with the entry set, or removed together with tables that would be left empty."""
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
    if client.format == "toml":
        table = (keys[0], keys[-1])
        return with_table(old, table, entry) if entry is not None else without_table(old, table)
    return with_member(old, keys, entry) if entry is not None else without_member(old, keys)


def _is_ours(entry: Any) -> bool:
    """Say whether an entry starts notewell's server, wherever it is installed."""
    if not isinstance(entry, dict) or not isinstance(entry.get("args"), list):
        return False
    words = [str(entry.get("command") or ""), *map(str, entry["args"])]
    program = re.split(r"[\\/]", words[0])[-1].lower().removesuffix(".exe")
    runs_module = words[1:3] == ["-m", "notewell"]
    return (program == "notewell" or runs_module) and "mcp" in words


# --- files ---------------------------------------------------------------------------------------


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
