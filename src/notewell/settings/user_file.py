"""Turns on the search of conversations in the user's settings file; everything else in it stays as it is."""

from __future__ import annotations

import copy
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from notewell.errors import SettingsError, system_error
from notewell.files.atomic import write_atomically
from notewell.settings.workspace import user_file_of

NEW_MODE = 0o600  # it may hold keys
_DEFAULTS = re.compile(r"^[ \t]*\[[ \t]*defaults[ \t]*\].*\n?", re.MULTILINE)
_SOURCES = re.compile(r"^[ \t]*sources[ \t]*=[ \t]*\[[^\]]*\][^\n]*\n?", re.MULTILINE)
_PATHS = re.compile(r"^[ \t]*(?P<key>(?:sessions\.)?paths)[ \t]*=[ \t]*\[[^\]]*\][^\n]*\n?", re.MULTILINE)
_SESSIONS = re.compile(r"^[ \t]*\[[ \t]*(?:defaults\.)?sessions[ \t]*\].*\n?", re.MULTILINE)


def search_conversations(environ: Mapping[str, str], folders: Sequence[Path] = ()) -> tuple[Path, tuple[str, ...]]:
    """Let `sources` name conversations, and `sessions.paths` these folders; return the file and what it says now.

    The edited text is parsed again and must say exactly that; otherwise SettingsError tells what to write by hand.
    """
    file = user_file_of(environ)[0]
    try:
        old = file.read_text(encoding="utf-8-sig") if file.exists() else ""
        if file.exists() and not file.is_file():
            raise SettingsError(f"{file} is no settings file", hint="let NOTEWELL_CONFIG name a file of your own")
        values = tomllib.loads(old)
        settings = _settings_in(values)
        sources = list(dict.fromkeys([*settings.get("sources", ["memory"]), "sessions"]))
        sessions = settings.get("sessions", {})
        known = sessions.get("paths", []) if isinstance(sessions, dict) else []
        paths = list(dict.fromkeys([*known, *map(_below_home, folders)]))
        new = _with_line(old, _SOURCES, f"sources = {_array(sources)}\n")
        if paths != known:
            new = _with_paths(new, f"{_array(paths)}\n")
        wanted = copy.deepcopy(values)
        _settings_in(wanted)["sources"] = sources
        if paths:
            _settings_in(wanted).setdefault("sessions", {})["paths"] = paths
        lines = (f"sources = {_array(sources)}", *((f"sessions.paths = {_array(paths)}",) if folders else ()))
        if tomllib.loads(new) != wanted:
            raise SettingsError(f"{file} cannot be changed safely", hint=f"write into it: {'; '.join(lines)}")
        if new != old:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, new, mode=file.stat().st_mode & 0o777 if file.exists() else NEW_MODE)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not valid TOML: {error}", hint="fix it by hand") from error
    except OSError as error:
        raise system_error(error, file) from error
    return file, lines


def _settings_in(values: dict[str, Any]) -> dict[str, Any]:
    """Return the table that holds the settings: `[defaults]`, or the top of the file."""
    defaults = values.get("defaults")
    return defaults if isinstance(defaults, dict) else values


def _with_line(text: str, pattern: re.Pattern[str], line: str) -> str:
    found = pattern.search(text)
    if found:
        return text[: found.start()] + line + text[found.end() :]
    return _inserted(text, _DEFAULTS.search(text), line)


def _with_paths(text: str, array: str) -> str:
    found = _PATHS.search(text)
    if found:
        return f"{text[: found.start()]}{found['key']} = {array}{text[found.end() :]}"
    table = _SESSIONS.search(text)
    if table:
        return _inserted(text, table, f"paths = {array}")
    return _inserted(text, _DEFAULTS.search(text), f"sessions.paths = {array}")


def _inserted(text: str, header: re.Match[str] | None, line: str) -> str:
    """Put a line below the header of its table, or at the top of the file."""
    at = header.end() if header else 0
    lead = "\n" if header and not header[0].endswith("\n") else ""
    return f"{text[:at]}{lead}{line}{text[at:]}"


def _array(values: Sequence[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


def _below_home(folder: Path) -> str:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.expanduser raises where there is no home
    return f"~/{folder.relative_to(home).as_posix()}" if folder.is_relative_to(home) else str(folder)
