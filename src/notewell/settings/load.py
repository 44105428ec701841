"""Resolves defaults, settings files, environment variables and flags into one checked `Settings`."""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from notewell.errors import SettingsError
from notewell.files.no_follow import open_below
from notewell.settings.masking import MASK, shown
from notewell.settings.model import GROUPS, OPTIONS, Settings, flatten
from notewell.settings.option import build
from notewell.settings.workspace import WORKSPACE_FILE, absolute, checked_agent, stays_inside, user_file_of

RESERVED_VARIABLES = (  # not settings
    "NOTEWELL_WORKSPACE",
    "NOTEWELL_AGENT",
    "NOTEWELL_CONFIG",
    "NOTEWELL_REDACTION_KEY_FILE",
)

MOST_BYTES = 1_000_000  # of a settings file; a complete one has 20,000

# A key with more than 20 parts, bare or quoted: parsing takes quadratic time in the number of parts.
DEEP_KEY = r"""(?<![\w"'-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.){0,200}+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){20}"""
ALIASES = {"qmd.max_injected_chars": "tools.injected_chars"}  # OpenClaw's name; here the limit applies to every backend

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings in use, and where they come from."""

    settings: Settings
    origins: Mapping[str, str]  # key path -> "default", "user file ...", "environment NOTEWELL_...", ...
    notes: tuple[str, ...] = ()  # such as on adjusted values
    files: tuple[Path, ...] = ()  # the settings files that were read, lowest layer first


@dataclass(frozen=True, slots=True)
class Given:
    """A value for a setting, and its origin."""

    key: str
    value: object
    origin: str  # for `config show`: "user file /home/ana/.config/notewell/config.toml"
    where: str  # for error messages: the file with the line, the variable, or the flag
    is_text: bool = False  # from a variable or a flag

    def checked(self) -> Any:
        """Return the value with the type of the setting; ranges are not checked here."""
        option = OPTIONS[self.key]
        try:
            return option.checked(self.value, is_text=self.is_text)
        except (ValueError, TypeError, OverflowError):
            got = MASK if option.secret else shown(self.value)
            default = shown(option.default) if option.default else "which is empty"
            hint = f"correct it, or remove it to get the default, {default}"
            if option.choices and isinstance(self.value, str):
                close = _close_match(self.value.lower(), option.choices)
                hint = f"did you mean {close}?" if close else hint
            message = f"{self.where}: {self.key} must be {option.expected}, got {got}"
            raise SettingsError(message, hint=hint) from None  # the cause may contain a secret


def load_settings(
    workspace: Path | None,
    *,
    agent: str = "main",
    flags: Mapping[str, object] = _NOTHING,
    environ: Mapping[str, str] | None = None,
    user_file: Path | None = None,
) -> Resolved:
    """Return the settings for an agent of a workspace.

    `flags` maps key paths to values; None means not given, and strings are parsed like variables. `user_file` replaces
    the user's own file. Raises SettingsError for an unknown key or an invalid value.
    """
    agent = checked_agent(agent)
    environ = os.environ if environ is None else environ
    root = None if workspace is None else Path(absolute(str(workspace), Path.cwd()))
    own_file, must_exist = (user_file, True) if user_file is not None else user_file_of(environ)

    files: list[Path] = []
    given: list[Given] = []
    if (own := read_file(own_file, "user file", required=must_exist)) is not None:
        for each in own.all():  # also other agents' tables, to report mistakes early
            each.checked()
        given += own.for_agent(agent)
        files.append(own_file)
    if root is not None and (shared := read_file(root / WORKSPACE_FILE, "workspace file", required=False)) is not None:
        for each in shared.all():
            _check_workspace_rule(each, root, own_file)
        given += shared.for_agent(agent)
        files.append(root / WORKSPACE_FILE)
    given += _from_environment(environ)
    given += _from_flags(flags)
    return _resolve(given, root, tuple(files))


def check_settings(settings: Settings, *, workspace: Path | None = None) -> Resolved:
    """Return settings made in code, with the same checks, limits and paths as loaded ones."""
    given = [
        Given(key, value, "code", f"Settings.{key}")
        for key, value in flatten(settings).items()
        if value != OPTIONS[key].default or type(value) is not type(OPTIONS[key].default)
    ]
    root = None if workspace is None else Path(absolute(str(workspace), Path.cwd()))
    return _resolve(given, root, ())


def variable_name(key: str) -> str:
    """Return the environment variable that sets this key: NOTEWELL_QUERY__MAX_RESULTS for query.max_results."""
    return "NOTEWELL_" + key.upper().replace(".", "__")


def _from_environment(environ: Mapping[str, str]) -> Iterator[Given]:
    for name in sorted(environ):
        if not name.startswith("NOTEWELL_") or name in RESERVED_VARIABLES or not environ[name]:
            continue
        key = name.removeprefix("NOTEWELL_").lower().replace("__", ".")
        key = ALIASES.get(key, key)
        where = f"environment variable {name}"
        if key not in OPTIONS:
            close = _close_match(name, [*map(variable_name, OPTIONS), *RESERVED_VARIABLES])
            raise SettingsError(
                f"{where}: unknown variable",
                hint=f"did you mean {close}?" if close else "docs/configuration.md lists every variable",
            )
        yield Given(key, environ[name], f"environment {name}", where, is_text=True)


def _from_flags(flags: Mapping[str, object]) -> Iterator[Given]:
    for name, value in flags.items():
        key = ALIASES.get(name, name)
        if key not in OPTIONS:
            raise _unknown_key("flag", key)
        if value is not None:
            yield Given(key, value, "flag", "flag", is_text=True)


def _check_workspace_rule(given: Given, root: Path, own_file: Path) -> None:
    """Raise SettingsError for what a workspace file must not set: keys, URLs, programs and paths outside."""
    rule = OPTIONS[given.key].workspace
    hint = f"set it in your own file, {own_file}, or as {variable_name(given.key)}"
    if rule == "no":
        raise SettingsError(f"{given.where}: a workspace file may not set {given.key}", hint=hint)
    value = given.checked()
    if isinstance(rule, tuple) and value not in rule:
        allowed = " or ".join(map(shown, rule))
        message = f"{given.where}: a workspace file may set {given.key} only to {allowed}, got {shown(value)}"
        raise SettingsError(message, hint=hint)
    outside = [path for path in value if not stays_inside(path, root)] if rule == "inside" else []
    if outside:
        message = f"a workspace file may name only paths inside the workspace in {given.key}, got {shown(outside[0])}"
        raise SettingsError(f"{given.where}: {message}", hint=hint)


def _resolve(given: Iterable[Given], root: Path | None, files: tuple[Path, ...]) -> Resolved:
    values = flatten(Settings())
    origins = dict.fromkeys(values, "default")
    where: dict[str, str] = {}
    for each in given:
        values[each.key] = each.checked()
        origins[each.key] = each.origin
        where[each.key] = each.where

    if origins["sources"] == "default" and values["sessions.paths"]:  # naming conversations implies searching them
        values["sources"], origins["sources"] = ("memory", "sessions"), "sessions.paths"

    store_path = values["store.path"]  # as written: relative paths differ in each workspace
    shared_index = Path(absolute(store_path, None)).is_absolute() and "{workspace}" not in store_path
    for key, option in OPTIONS.items():
        if option.kind == "path" and values[key] and not values[key].startswith("hf:"):  # a model's name
            values[key] = absolute(values[key], root)
        elif option.kind == "paths":
            values[key] = tuple(dict.fromkeys(Path(absolute(path, root)) for path in values[key]))
    notes = _adjust(values, where)
    if shared_index and origins["store.path"].startswith("user file"):
        reason = "has no {workspace}: all workspaces of an agent would share one index"
        notes.append(f"store.path ({where['store.path']}) {reason}")
    return Resolved(build(Settings(), values), origins, tuple(notes), files)


# --- limits --------------------------------------------------------------------------------------


def _adjust(values: dict[str, Any], where: Mapping[str, str]) -> list[str]:
    """Clamp values to their ranges and make them consistent; return a note on each change."""

    def written(key: str) -> str:
        return f"{key} = {values[key]}" + (f" ({where[key]})" if key in where else "")

    notes: list[str] = []
    for key, option in OPTIONS.items():
        if option.low is None:
            continue
        number = float if option.kind == "number" else int
        if values[key] < option.low:
            limit, side = number(option.low), "below"
        elif option.high is not None and values[key] > option.high:
            limit, side = number(option.high), "above"
        else:
            continue
        notes.append(f"{written(key)} is {side} {limit}: using {limit}")
        values[key] = limit

    tokens, overlap = "chunking.tokens", "chunking.overlap"
    if values[overlap] >= values[tokens]:
        most = values[tokens] - 1
        notes.append(f"{written(overlap)} is not less than {tokens} = {values[tokens]}: using {most}")
        values[overlap] = most

    weights = ("query.hybrid.vector_weight", "query.hybrid.text_weight")
    vector, text = (values[key] for key in weights)
    if not math.isclose(vector + text, 1):
        both = " and ".join(map(written, weights))
        largest = max(vector, text)
        if largest == 0:
            vector, text = (OPTIONS[key].default for key in weights)
            notes.append(f"{both} are both 0: using {vector} and {text}")
        else:  # divided by the larger first: the sum may overflow
            vector = (vector / largest) / (vector / largest + text / largest)
            text = 1 - vector
            notes.append(f"{both} do not sum to 1: using {vector:.3g} and {text:.3g}")
        values.update(zip(weights, (vector, text), strict=True))
    return notes


# --- files ---------------------------------------------------------------------------------------

KeyPath = tuple[str, ...]
FileLayer = Literal["user file", "workspace file"]

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
# Compiled when a file is read: usually there is none.
_HEADER = rf"\s*\[\[?\s*({_DOTTED})\s*\]"
_ASSIGNMENT = rf"\s*({_DOTTED})\s*="
_POSITION = r"\s*\(at line (\d+), column \d+\)"


@dataclass(frozen=True, slots=True)
class FileValues:
    """The values in one settings file: for every agent, and for single agents by their id."""

    defaults: tuple[Given, ...]
    by_agent: Mapping[str, tuple[Given, ...]]

    def all(self) -> Iterator[Given]:
        yield from self.defaults
        for values in self.by_agent.values():
            yield from values

    def for_agent(self, agent: str) -> tuple[Given, ...]:
        """Return the values for this agent, its own last."""
        return self.defaults + self.by_agent.get(agent, ())


def read_file(path: Path, layer: FileLayer, *, required: bool) -> FileValues | None:
    """Return the values in the file; None if it does not exist and is not required.

    Settings are at the top level or in a `[defaults]` table; either may be accompanied by `[agents.<id>]` tables.
    """
    text = text_of(path, required=required, follow=layer == "user file")
    if text is None:
        return None
    document = parsed(path, text)
    file = _File(path, layer, line_numbers(text))
    agents = document.pop("agents", {})
    if not isinstance(agents, Mapping):
        raise file.error(("agents",), f"agents must be tables such as [agents.main], got {shown(agents)}")

    prefix: KeyPath = ()
    defaults: object = document
    if "defaults" in document:
        defaults, prefix = document.pop("defaults"), ("defaults",)
        if document:
            stray = next(iter(document))
            raise file.error(
                (stray,), f"{stray} is outside [defaults]", hint="move it into [defaults], or drop the [defaults] line"
            )
    if not isinstance(defaults, Mapping):
        raise file.error(prefix, f"defaults must be a table, got {shown(defaults)}")

    by_agent: dict[str, tuple[Given, ...]] = {}
    for name, table in agents.items():
        agent = checked_agent(name, where=file.where(("agents", name)))
        if agent in by_agent:
            raise file.error(("agents", name), f"agent {agent} has two tables; ids do not differ by case")
        if not isinstance(table, Mapping):
            raise file.error(("agents", name), f"agents.{name} must be a table of settings")
        by_agent[agent] = tuple(file.values(table, (), ("agents", name)))
    return FileValues(tuple(file.values(defaults, (), prefix)), by_agent)


def line_numbers(text: str) -> dict[KeyPath, int]:
    """Return the 1-based line on which each key or table of the TOML text first appears."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    open_quotes = ""  # of a multi-line string, whose lines may look like keys
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


@dataclass(frozen=True, slots=True)
class _File:
    """A settings file being read, with the line of each key."""

    path: Path
    layer: FileLayer
    lines: Mapping[KeyPath, int]

    def where(self, key: KeyPath) -> str:
        """Return file and line of a key, or of its table if the key has no line of its own."""
        for length in range(len(key), 0, -1):
            if line := self.lines.get(key[:length]):
                return f"{self.path}:{line}"
        return str(self.path)

    def error(self, key: KeyPath, message: str, *, hint: str = "docs/configuration.md has examples") -> SettingsError:
        return SettingsError(f"{self.where(key)}: {message}", hint=hint)

    def values(self, table: Mapping[str, object], group: KeyPath, prefix: KeyPath) -> Iterator[Given]:
        section = f" [{'.'.join(prefix)}]" if prefix[:1] == ("agents",) else ""
        for name, value in table.items():
            path = (*group, name)
            key = ".".join(path)
            key = ALIASES.get(key, key)
            where = self.where(prefix + path)
            if key in OPTIONS:
                yield Given(key, value, f"{self.layer} {self.path}{section}", where)
            elif key not in GROUPS:
                raise _unknown_key(where, key)
            elif isinstance(value, Mapping):
                yield from self.values(value, path, prefix)
            else:  # the value is not shown: a key may have been pasted here
                inside = next(option for option in OPTIONS if option.startswith(f"{key}."))
                raise self.error(prefix + path, f"{key} is a group of settings", hint=f"set {inside}, for example")


def text_of(path: Path, *, required: bool, follow: bool) -> str | None:
    """Return the text of a settings file; None if it does not exist and is not required.

    `follow` allows a link, which is common in home folders; a workspace may come from anywhere.
    """
    if str(path) == os.devnull:  # the usual way to disable the file
        return ""
    real = Path(os.path.realpath(path)) if follow else Path(os.path.realpath(path.parent)) / path.name
    try:
        with open_below(str(real.parent), (real.name,)) as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise SettingsError(
                f"{path}: is larger than {MOST_BYTES // 1_000_000} MB, which no settings file is",
                hint="check what the file is; docs/configuration.md lists every setting",
            )
        return raw.decode("utf-8-sig")  # editors on Windows write a byte order mark
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8 text", hint="save the file as UTF-8") from error
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not required:
            return None
        reason = "it is a link, which is not followed" if error.errno == errno.ELOOP else error.strerror or error
        raise SettingsError(
            f"{path}: cannot be read: {reason}",
            hint="make it a readable file; NOTEWELL_CONFIG can name another file in place of the user's own",
        ) from error


def parsed(path: Path, text: str) -> dict[str, object]:
    """Return the values in a TOML text; raises SettingsError with the line if it is invalid."""
    if not text.strip():
        return {}
    import tomllib  # takes 8 ms

    if re.search(DEEP_KEY, text):
        raise SettingsError(f"{path}: a key has more than 20 parts", hint="docs/configuration.md lists every setting")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a plain ValueError: a number with too many digits
        message = str(error)
        position = re.search(_POSITION, message)
        line = position[1] if position else str(len(text.splitlines()))
        reason = re.sub(_POSITION, "", message).removesuffix(" (at end of document)")
        raise SettingsError(
            f"{path}:{line}: not valid TOML: {reason}", hint='texts need quotes (provider = "local"), numbers do not'
        ) from error


# --- suggestions ---------------------------------------------------------------------------------


def _unknown_key(where: str, key: str) -> SettingsError:
    """Return the error for an unknown key, with a suggestion."""
    close = _closest_key(key)
    return SettingsError(
        f"{where}: unknown setting {key}",
        hint=f"did you mean {close}?" if close else "docs/configuration.md lists every setting",
    )


def _closest_key(key: str) -> str | None:
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower().replace("-", "_")
    names = [*OPTIONS, *(group for group in GROUPS if group)]
    if snake in names:
        return snake
    group, _, leaf = snake.rpartition(".")
    beside = {name.rpartition(".")[2]: name for name in OPTIONS if group and name.rpartition(".")[0] == group}
    if near := _close_match(leaf, beside):  # a typo in an existing group
        return beside[near]
    same_leaf = [name for name in OPTIONS if name.rpartition(".")[2] == leaf]
    return same_leaf[0] if len(same_leaf) == 1 else _close_match(snake, names)


def _close_match(word: str, words: Iterable[str]) -> str | None:
    import difflib  # takes 10 ms

    return next(iter(difflib.get_close_matches(word, list(words), n=1, cutoff=0.7)), None)
