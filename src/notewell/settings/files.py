"""A settings file read into single values: TOML text comes in, `Given` values with their line numbers come out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from notewell.errors import SettingsError
from notewell.settings.masking import shown
from notewell.settings.model import GROUPS, OPTIONS
from notewell.settings.places import checked_agent
from notewell.settings.values import Given, unknown_key

KeyPath = tuple[str, ...]
FileLayer = Literal["user file", "workspace file"]

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
# Kept as texts, compiled when a file is read: most searches find no settings file.
_HEADER = rf"\s*\[\[?\s*({_DOTTED})\s*\]"
_ASSIGNMENT = rf"\s*({_DOTTED})\s*="
_POSITION = r"\s*\(at line (\d+), column \d+\)"


@dataclass(frozen=True, slots=True)
class FileValues:
    """What one settings file says: for every agent, and for single agents by their id."""

    defaults: tuple[Given, ...]
    by_agent: Mapping[str, tuple[Given, ...]]

    def __iter__(self) -> Iterator[Given]:
        yield from self.defaults
        for values in self.by_agent.values():
            yield from values

    def of_agent(self, agent: str) -> tuple[Given, ...]:
        """Return the values that hold for this agent, its own after those for all."""
        return self.defaults + self.by_agent.get(agent, ())


def read_file(path: Path, layer: FileLayer, *, required: bool) -> FileValues | None:
    """Return the values in the file, or None when it does not exist and need not.

    Settings stand at the top level, or all of them in a `[defaults]` table; `[agents.<id>]` tables stand beside either.
    """
    text = _text_of(path, required=required)
    if text is None:
        return None
    document = _parsed(path, text)
    place = _File(path, layer, line_numbers(text))
    agents = document.pop("agents", {})
    if not isinstance(agents, Mapping):
        raise place.error(("agents",), f"agents must be tables such as [agents.main], got {shown(agents)}")

    prefix: KeyPath = ()
    defaults: object = document
    if "defaults" in document:
        defaults, prefix = document.pop("defaults"), ("defaults",)
        if document:
            stray = next(iter(document))
            raise place.error(
                (stray,),
                f"{stray} stands beside [defaults]",
                hint="move it into [defaults], or drop the [defaults] line",
            )
        if not isinstance(defaults, Mapping):
            raise place.error(prefix, f"defaults must be a table, got {shown(defaults)}")

    by_agent: dict[str, tuple[Given, ...]] = {}
    for name, table in agents.items():
        agent = checked_agent(name, where=place.where(("agents", name)))
        if agent in by_agent:
            raise place.error(("agents", name), f"agent {agent} has two tables; ids do not differ by case")
        if not isinstance(table, Mapping):
            raise place.error(("agents", name), f"agents.{name} must be a table of settings")
        by_agent[agent] = tuple(place.values(table, (), ("agents", name)))
    return FileValues(tuple(place.values(defaults, (), prefix)), by_agent)


def line_numbers(text: str) -> dict[KeyPath, int]:
    """Return the 1-based line where each key or table of the TOML text is written first."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    open_quotes = ""  # of a text that spans lines: what looks like a key inside it is none
    for number, line in enumerate(text.splitlines(), start=1):
        if not open_quotes:
            if header := re.match(_HEADER, line):
                table = _parts(header[1])
                lines.setdefault(table, number)
            elif assignment := re.match(_ASSIGNMENT, line):
                lines.setdefault(table + _parts(assignment[1]), number)
        for quotes in re.findall(r'"""|\'\'\'', line):
            if not open_quotes:
                open_quotes = quotes
            elif quotes == open_quotes:
                open_quotes = ""
    return lines


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


class _File:
    """One settings file while it is read: knows how to name its places."""

    def __init__(self, path: Path, layer: FileLayer, lines: Mapping[KeyPath, int]) -> None:
        self._path = path
        self._layer = layer
        self._lines = lines

    def where(self, raw: KeyPath) -> str:
        """Return file and line of a key; of the table around it when the key itself is not on a line of its own."""
        for length in range(len(raw), 0, -1):
            if line := self._lines.get(raw[:length]):
                return f"{self._path}:{line}"
        return str(self._path)

    def error(self, raw: KeyPath, message: str, *, hint: str = "docs/configuration.md has examples") -> SettingsError:
        return SettingsError(f"{self.where(raw)}: {message}", hint=hint)

    def values(self, table: object, group: KeyPath, prefix: KeyPath) -> Iterator[Given]:
        assert isinstance(table, Mapping)
        section = f" [{'.'.join(prefix)}]" if prefix[:1] == ("agents",) else ""
        for name, value in table.items():
            path = (*group, name)
            key = ".".join(path)
            where = self.where(prefix + path)
            if key in OPTIONS:
                yield Given(key, value, f"{self._layer} {self._path}{section}", where)
            elif key not in GROUPS:
                raise unknown_key(where, key)
            elif isinstance(value, Mapping):
                yield from self.values(value, path, prefix)
            else:  # the value is not shown: a key may have been pasted here
                inside = [option for option in OPTIONS if option.startswith(f"{key}.")]
                raise self.error(prefix + path, f"{key} is a group of settings", hint=f"set {inside[0]}, for example")


def _text_of(path: Path, *, required: bool) -> str | None:
    try:
        return path.read_bytes().decode("utf-8-sig")  # editors on Windows put a mark before the text
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8 text", hint="save the file as UTF-8") from error
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not required:
            return None
        raise SettingsError(
            f"{path}: cannot be read: {error.strerror or error}",
            hint="make it readable; NOTEWELL_CONFIG can name another file in place of the user's own",
        ) from error


def _parsed(path: Path, text: str) -> dict[str, object]:
    if not text.strip():
        return {}
    import tomllib  # 8 ms, needed only when there is a settings file

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a plain ValueError is a number too long for Python
        message = str(error)
        position = re.search(_POSITION, message)
        line = position[1] if position else str(len(text.splitlines()))
        reason = re.sub(_POSITION, "", message).removesuffix(" (at end of document)")
        raise SettingsError(
            f"{path}:{line}: not valid TOML: {reason}", hint='texts need quotes (provider = "local"), numbers do not'
        ) from error
