"""Changes single settings in a settings file, and keeps the rest of its text.

The result is parsed again and must contain exactly the intended settings; otherwise the file is not written.
"""

from __future__ import annotations

import copy
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from notewell.errors import SettingsError
from notewell.files.atomic import write_atomically
from notewell.settings.load import DEEP_KEY, text_of
from notewell.settings.model import OPTIONS
from notewell.settings.option import toml_value
from notewell.settings.workspace import user_file_of

PRIVATE = 0o600  # the user's file may contain keys


def search_conversations(folders: Sequence[Path] = ()) -> tuple[Path, tuple[str, ...]]:
    """Add conversations to `sources` and folders to `sessions.paths`; return the file and its new settings."""
    file = user_file_of(os.environ)[0]
    written = _settings_in(_parsed(file, text_of(file, required=False, follow=True) or ""))
    sessions = written.get("sessions", {})
    known = sessions.get("paths", []) if isinstance(sessions, dict) else []
    sources = list(dict.fromkeys([*written.get("sources", ["memory"]), "sessions"]))
    paths = list(dict.fromkeys([*known, *map(_below_home, folders)]))
    change_settings(file, {"sources": sources} | ({"sessions.paths": paths} if paths != known else {}), mode=PRIVATE)
    lines = (f"sources = {toml_value(sources)}", f"sessions.paths = {toml_value(paths)}")
    return file, lines if folders else lines[:1]


def switch_store(url: str) -> Path:
    """Set `store.url` in the user's file, or remove it if empty; `store.read_url` is removed, too."""
    file = user_file_of(os.environ)[0]
    change_settings(file, {"store.url": url or None, "store.read_url": None}, mode=PRIVATE)
    return file


def change_settings(file: Path, values: Mapping[str, object], *, mode: int | None = None) -> None:
    """Set settings by key, and remove those that are None; `mode` is that of a new file, or of one with secrets.

    Raises SettingsError if the file cannot be edited safely.
    """
    if file.exists() and not file.is_file():
        raise SettingsError(f"{file} is not a settings file", hint="let NOTEWELL_CONFIG name a file of your own")
    old = new = text_of(file, required=False, follow=True) or ""
    wanted = copy.deepcopy(_parsed(file, old))
    for key, value in values.items():
        new = _with(new, key, value, in_defaults="defaults" in wanted)
        _put(_settings_in(wanted), key, value)
    lines = (f"{key} = {'...' if OPTIONS[key].secret else toml_value(value)}" for key, value in values.items())
    by_hand = f"write into it: {'; '.join(lines)}"
    try:
        is_right = _filled(tomllib.loads(new)) == _filled(wanted)
    except tomllib.TOMLDecodeError:
        is_right = False  # set twice, such as by a dotted key and in a table
    if not is_right:
        raise SettingsError(f"{file} cannot be changed safely", hint=by_hand)
    if new == old:
        return
    try:
        if file.exists() and not any(OPTIONS[key].secret for key in values):
            mode = file.stat().st_mode & 0o777
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, new, mode=mode)
    except OSError as error:
        raise SettingsError(f"cannot write {file}: {error.strerror or error}", hint=by_hand) from error


def _parsed(file: Path, text: str) -> dict[str, Any]:
    if re.search(DEEP_KEY, text):
        raise SettingsError(f"{file} cannot be changed: a key has more than 20 parts", hint="fix it by hand")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"{file} cannot be changed: it is not valid TOML: {error}"
        raise SettingsError(message, hint="fix it by hand") from error


def _settings_in(values: dict[str, Any]) -> dict[str, Any]:
    """Return the table with the settings: `[defaults]`, or the top level."""
    defaults = values.get("defaults")
    return defaults if isinstance(defaults, dict) else values


def _with(text: str, key: str, value: object, *, in_defaults: bool) -> str:
    """Return the text with a setting replaced in place, or added to its table, or as a dotted key."""
    group, _, name = key.rpartition(".")
    base = "defaults" if in_defaults else ""
    places = [(f"{base}.{group}".strip("."), name), (base, key)] if group else [(base, key)]
    bodies = [(body, written) for table, written in places if (body := _body(text, table))]
    array = r"\[[^\]]*\]" if isinstance(value, list | tuple) else ""
    for (start, end), written in bodies:
        line = "" if value is None else f"{written} = {toml_value(value)}\n"
        found = re.search(
            rf"^[ \t]*{re.escape(written)}[ \t]*=[ \t]*{array}[^\n]*(\n|\Z)", text[start:end], re.MULTILINE
        )
        if found:
            return text[: start + found.start()] + line + text[start + found.end() :]
    if value is None:
        return text
    (at, _), written = bodies[0] if bodies else ((0, 0), key)
    gap = "\n" if at and text[at - 1] != "\n" else ""
    return f"{text[:at]}{gap}{written} = {toml_value(value)}\n{text[at:]}"


def _body(text: str, table: str) -> tuple[int, int] | None:
    """Return the span of a table's lines; the name of the top level is empty."""
    start = 0
    if table:
        header = re.search(rf"^[ \t]*\[[ \t]*{re.escape(table)}[ \t]*\][^\n]*(\n|\Z)", text, re.MULTILINE)
        if header is None:
            return None
        start = header.end()
    following = re.search(r"^[ \t]*\[", text[start:], re.MULTILINE)
    return start, start + following.start() if following else len(text)


def _put(values: dict[str, Any], key: str, value: object) -> None:
    *groups, name = key.split(".")
    table: Any = values
    for group in groups:
        table = table.setdefault(group, {}) if isinstance(table, dict) else None
    if isinstance(table, dict):
        table[name] = list(value) if isinstance(value, tuple) else value


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table without None values and empty tables."""
    filled = {name: _filled(value) if isinstance(value, Mapping) else value for name, value in values.items()}
    return {name: value for name, value in filled.items() if value is not None and value != {}}


def _below_home(folder: Path) -> str:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.expanduser raises where there is no home
    return f"~/{folder.relative_to(home).as_posix()}" if folder.is_relative_to(home) else str(folder)
