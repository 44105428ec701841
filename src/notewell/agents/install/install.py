"""A client and a server in, the change to the client's settings out: first as a plan, then made with a backup kept."""

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

from notewell.agents.install.json_edits import values_of, with_member, without_member
from notewell.agents.install.toml_edits import with_table, without_table
from notewell.errors import NotewellError, system_error
from notewell.files.atomic import write_atomically

if TYPE_CHECKING:
    from notewell.agents.install.clients import Client, Server

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what every one of the clients takes for a server's name
NEW_MODE = 0o600  # such files hold tokens of other servers sooner or later


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to one settings file; nothing when the two texts are the same."""

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
        """The change as `diff -u` shows it."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.old, self.new))
        lines = difflib.unified_diff(old, new, str(self.file), str(self.file))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def plan_install(client: Client, server: Server, file: Path, *, name: str) -> Change:
    """Return the change that makes the server known to the client under this name."""
    return _plan(client, file, name, client.entry(server))


def plan_uninstall(client: Client, file: Path, *, name: str) -> Change:
    """Return the change that takes it away again; there is none to make when it is not there."""
    return _plan(client, file, name, None)


def apply_change(change: Change) -> Path | None:
    """Write the change and return the backup of what was there before; None when there was nothing."""
    if not change.is_change:
        return None
    file = Path(os.path.realpath(change.file))  # a link to a folder of settings stays one
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _check_unchanged(change, file)
        backup = _kept(file, change.old) if change.old is not None else None
        mode = file.stat().st_mode & 0o7777 if change.old is not None else NEW_MODE
        write_atomically(file, change.new, mode=mode)
    except OSError as error:
        raise system_error(error) from error
    return backup


def _check_unchanged(change: Change, file: Path) -> None:
    if _read(file) != change.old:
        raise NotewellError(
            f"{change.file} has changed meanwhile, so nothing was written",
            hint=f"close {change.client.title} and run the command again",
        )


# --- parts ---------------------------------------------------------------------------------------


def _plan(client: Client, file: Path, name: str, entry: dict[str, Any] | None) -> Change:
    if not NAME.fullmatch(name):
        raise NotewellError(f"{name!r} cannot be a server's name", hint="use letters, digits, - and _")
    try:
        old = _read(file)
    except OSError as error:
        raise system_error(error) from error
    before = _values(client, file, old or "")
    known = _lookup(before, (*client.keys, name))
    if known is not None and not _is_ours(known):
        raise NotewellError(
            f"{client.title} has another server called {name!r} already",
            hint="choose a name of its own, such as --name notewell",
        )
    if known == entry or (known is not None and entry is not None and _same_start(known, entry)):
        return Change(client, name, file, old, old or "")
    wanted = _changed(before, (*client.keys, name), _merged(known, entry))
    try:
        new = _edited(client, old or "", name, _merged(known, entry))
        safe = _values(client, file, new) == wanted
        problem = "" if safe else "the result would say something else"
    except (ValueError, NotewellError) as error:
        new, problem = "", str(error)
    if problem:
        raise NotewellError(
            f"{file} is written in a way that cannot be changed safely: {problem}",
            hint=f"edit it by hand: {'.'.join((*client.keys, name))} = {entry}" if entry else "edit it by hand",
        )
    return Change(client, name, file, old, new)


def _merged(known: Any, entry: dict[str, Any] | None) -> dict[str, Any] | None:
    """Keep what people added to our entry, such as `env`."""
    return {**known, **entry} if entry is not None and isinstance(known, dict) else entry


def _same_start(known: Any, entry: dict[str, Any]) -> bool:
    return isinstance(known, dict) and all(known.get(key) == value for key, value in entry.items())


def _edited(client: Client, old: str, name: str, entry: dict[str, Any] | None) -> str:
    keys = (*client.keys, name)
    if client.format == "toml":
        table = (client.keys[0], name)
        return with_table(old, table, entry) if entry is not None else without_table(old, table)
    return with_member(old, keys, entry) if entry is not None else without_member(old, keys)


def _values(client: Client, file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n")) if client.format == "toml" else values_of(text)
    except ValueError as error:
        kind = "TOML" if client.format == "toml" else "JSON"
        raise NotewellError(
            f"{file} is not valid {kind}: {error}", hint="mend it by hand; nothing was changed"
        ) from error


def _lookup(values: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _changed(values: dict[str, Any], keys: tuple[str, ...], entry: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the file must say after the change; objects that are empty then go."""
    wanted = copy.deepcopy(values)
    inner = wanted
    way = []
    for key in keys[:-1]:
        way.append((inner, key))
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise NotewellError(f"{key} is no table there", hint="mend the file by hand")
    if entry is not None:
        inner[keys[-1]] = entry
        return wanted
    inner.pop(keys[-1], None)
    while way and not inner:
        inner, key = way.pop()
        del inner[key]
    return wanted


def _is_ours(entry: Any) -> bool:
    """Say whether an entry starts notewell's server, wherever that is installed."""
    if not isinstance(entry, dict) or not isinstance(entry.get("args"), list):
        return False
    words = [str(entry.get("command") or ""), *map(str, entry["args"])]
    program = re.split(r"[\\/]", words[0])[-1].lower().removesuffix(".exe")
    runs_module = words[1:3] == ["-m", "notewell"]
    return (program == "notewell" or runs_module) and "mcp" in words


def _read(file: Path) -> str | None:
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise NotewellError(f"{file} is not written in UTF-8", hint="save it as UTF-8 and try again") from error


def _kept(file: Path, text: str) -> Path:
    """Write a copy of what was there beside it, under a name that is free."""
    stem = f"{file.name}.{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    for number in range(1000):  # as many in one second are no person's doing
        backup = file.with_name(f"{stem}{f'-{number}' if number else ''}.bak")
        with contextlib.suppress(FileExistsError):
            handle = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file.stat().st_mode & 0o7777)
            with os.fdopen(handle, "wb") as copied:
                copied.write(text.encode())
            return backup
    raise NotewellError(f"no backup of {file} could be made", hint="remove old files that end in .bak")
