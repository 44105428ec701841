"""All layers of configuration resolved into one checked `Settings`: defaults, files, environment, flags."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from notewell.errors import SettingsError
from notewell.settings.files import read_file
from notewell.settings.limits import within_limits
from notewell.settings.masking import shown
from notewell.settings.model import OPTIONS, Settings, build, flatten
from notewell.settings.places import WORKSPACE_FILE, absolute, checked_agent, stays_inside, user_file_of
from notewell.settings.values import Given, checked, close_match, unknown_key, variable_name

RESERVED_VARIABLES = (  # they choose, they do not set
    "NOTEWELL_WORKSPACE",
    "NOTEWELL_AGENT",
    "NOTEWELL_CONFIG",
    "NOTEWELL_REDACTION_KEY_FILE",
)

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings in use, and how they came to be."""

    settings: Settings
    origins: Mapping[str, str]  # key path -> "default", "user file ...", "environment NOTEWELL_...", ...
    notes: tuple[str, ...] = ()  # values that had to be moved into their range, and the like
    files: tuple[Path, ...] = ()  # the settings files that were read, lowest layer first


def load_settings(
    workspace: Path | None,
    *,
    agent: str = "main",
    flags: Mapping[str, object] = _NOTHING,
    environ: Mapping[str, str] | None = None,
    user_file: Path | None = None,
) -> Resolved:
    """Return the settings for one agent of one workspace.

    `flags` maps key paths to values; None means not given, and a text is read as a variable's would be. `user_file` is
    read in place of the user's own file. Raises SettingsError for anything that is misspelt or of the wrong kind.
    """
    agent = checked_agent(agent)
    environ = os.environ if environ is None else environ
    root = None if workspace is None else Path(absolute(str(workspace), Path.cwd()))
    own_file, must_exist = (user_file, True) if user_file is not None else user_file_of(environ)

    files: list[Path] = []
    given: list[Given] = []
    if (own := read_file(own_file, "user file", required=must_exist)) is not None:
        for each in own:  # also in other agents' tables: a slip there is told now, not on the day that agent is used
            checked(each)
        given += own.of_agent(agent)
        files.append(own_file)
    if root is not None and (shared := read_file(root / WORKSPACE_FILE, "workspace file", required=False)) is not None:
        for each in shared:
            _check_workspace_rule(each, root, own_file)
        given += shared.of_agent(agent)
        files.append(root / WORKSPACE_FILE)
    given += _from_environment(environ)
    given += _from_flags(flags)
    return _resolve(given, root, tuple(files))


def check_settings(settings: Settings, *, workspace: Path | None = None) -> Resolved:
    """Return settings that were put together in code with the same checks, limits and paths as if they were loaded."""
    values = flatten(settings)
    given = [
        Given(key, value, "code", f"Settings.{key}")
        for key, value in values.items()
        if value != OPTIONS[key].default or type(value) is not type(OPTIONS[key].default)
    ]
    root = None if workspace is None else Path(absolute(str(workspace), Path.cwd()))
    return _resolve(given, root, ())


def _from_environment(environ: Mapping[str, str]) -> Iterator[Given]:
    for name in sorted(environ):
        if not name.startswith("NOTEWELL_") or name in RESERVED_VARIABLES or not environ[name]:
            continue
        key = name.removeprefix("NOTEWELL_").lower().replace("__", ".")
        where = f"environment variable {name}"
        if key not in OPTIONS:
            names = [*map(variable_name, OPTIONS), *RESERVED_VARIABLES]
            close = close_match(name, names)
            raise SettingsError(
                f"{where}: sets nothing that notewell knows",
                hint=f"did you mean {close}?" if close else "docs/configuration.md lists every variable",
            )
        yield Given(key, environ[name], f"environment {name}", where, is_text=True)


def _from_flags(flags: Mapping[str, object]) -> Iterator[Given]:
    for key, value in flags.items():
        if key not in OPTIONS:
            raise unknown_key("flag", key)
        if value is not None:
            yield Given(key, value, "flag", "flag", is_text=True)


def _check_workspace_rule(given: Given, root: Path, own_file: Path) -> None:
    """Raise for what a folder somebody else wrote must not decide: keys, addresses, programs and places outside it."""
    rule = OPTIONS[given.key].workspace
    elsewhere = f"set it in your own file, {own_file}, or as {variable_name(given.key)}"
    if rule == "no":
        raise SettingsError(f"{given.where}: a workspace file may not set {given.key}", hint=elsewhere)
    value = checked(given)
    if isinstance(rule, tuple) and value not in rule:
        allowed = " or ".join(map(shown, rule))
        raise SettingsError(
            f"{given.where}: a workspace file may set {given.key} only to {allowed}, got {shown(value)}", hint=elsewhere
        )
    if rule == "inside":
        for path in value:
            if not stays_inside(path, root):
                raise SettingsError(
                    f"{given.where}: a workspace file may name only paths inside the workspace in {given.key}, "
                    f"got {shown(path)}",
                    hint=elsewhere,
                )


def _resolve(given: Iterable[Given], root: Path | None, files: tuple[Path, ...]) -> Resolved:
    values = flatten(Settings())
    origins = dict.fromkeys(values, "default")
    where: dict[str, str] = {}
    for each in given:
        values[each.key] = checked(each)
        origins[each.key] = each.origin
        where[each.key] = each.where

    store_path = values["store.path"]  # as written: a relative one is another folder in each workspace
    shared_index = Path(absolute(store_path, None)).is_absolute() and "{workspace}" not in store_path
    for key, option in OPTIONS.items():
        if option.kind == "path" and values[key] and not values[key].startswith("hf:"):  # the name of a model
            values[key] = absolute(values[key], root)
        elif option.kind == "paths":
            values[key] = tuple(dict.fromkeys(Path(absolute(path, root)) for path in values[key]))
    values, notes = within_limits(values, where)
    if shared_index and origins["store.path"].startswith("user file"):
        reason = "has no {workspace}: all workspaces of an agent would share one index"
        notes += (f"store.path ({where['store.path']}) {reason}",)
    return Resolved(build(values), origins, notes, files)
