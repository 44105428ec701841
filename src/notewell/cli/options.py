"""Options that commands share, and the memory they select."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from notewell import Citation, Memory, SettingsError, WorkspaceNotFoundError
from notewell.cli.terminal import print_json, print_lines, print_notes, print_problems
from notewell.settings import Resolved, load_settings
from notewell.settings.workspace import find_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from notewell import Problem
    from notewell.agents.documents import Json


@dataclass(frozen=True, slots=True)
class Chosen:
    """The common options, as given."""

    workspace: str | None
    agent: str
    flags: dict[str, object]
    as_json: bool

    def folder(self, start: Path | None = None) -> Path:
        """Return the workspace, by default the nearest at or above `start` or the current folder."""
        return find_workspace(self.workspace, environ=os.environ, start=start)

    def folder_if_any(self) -> Path | None:
        """Return the workspace; None if there is none."""
        try:
            return self.folder()
        except WorkspaceNotFoundError:
            return None

    def resolved(self, workspace: Path | None) -> Resolved:
        """Return the agent's settings and their origins, in a workspace or outside."""
        return load_settings(workspace, agent=self.agent, flags=self.flags)

    def memory(self, start: Path | None = None) -> Memory:
        """Open the memory of the workspace; the caller closes it."""
        folder = self.folder(start)
        return Memory(folder, self.resolved(folder).settings, agent=self.agent)

    def print(
        self, document: Json, lines: Iterable[str], *, notes: Iterable[str] = (), problems: Iterable[Problem] = ()
    ) -> None:
        """Print the document with `--json`, else the lines, notes and problems."""
        if self.as_json:
            print_json(document)
            return
        print_lines(lines)
        print_notes(notes)
        print_problems(problems)


def path_in(memory: Memory, given: str) -> str:
    """Return a path or citation relative to the workspace, if it is a file relative to the current folder."""
    path = Citation.parse(given).path
    place = Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100 - links are not followed
    try:
        if not path.startswith(("/", "./", "../", "~")) and (memory.workspace / path).exists():
            return given
        if not place.is_file() or not place.is_relative_to(memory.workspace):
            return given
    except OSError:  # such as a name that is too long; the memory has a better message
        return given
    return place.relative_to(memory.workspace).as_posix() + given[len(path) :]


def common_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the common options to a command, as one argument `chosen`."""

    @click.option(
        "--workspace",
        "-w",
        metavar="PATH",
        help="Folder with MEMORY.md or memory/.  [default: the current one, or the nearest above it]",
    )
    @click.option(
        "--agent",
        metavar="ID",
        default=lambda: os.environ.get("NOTEWELL_AGENT") or "main",
        help="Agent whose memory to use.  [default: main]",
    )
    @click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Override a setting.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @functools.wraps(function)
    def wrapped(
        *args: Any, workspace: str | None, agent: str, assignments: tuple[str, ...], as_json: bool, **kwargs: Any
    ) -> Any:
        chosen = Chosen(workspace, agent, dict(_assignment(text) for text in assignments), as_json)
        return function(*args, chosen=chosen, **kwargs)

    return wrapped


def search_options(function: Callable[..., Any], *names: str, own: str = "") -> Callable[..., Any]:
    """Add the search options to a command, or only those named; `own` is one that it declares itself."""
    from notewell.search.options import declared_options  # most commands do not need it

    declared = declared_options()
    for name in reversed(names or tuple(declared)):
        option = declared[name]
        if not option.flags or name == own:
            continue
        shown: dict[str, Any] = {"help": option.help, "hidden": option.hidden}
        if option.switch is not None:
            shown |= {"is_flag": True, "flag_value": option.switch}
        elif option.choices:
            shown["type"] = click.Choice(option.choices)
        else:
            kinds = {"integer": int, "number": float}
            shown |= {"type": kinds.get(option.schema.get("type", ""), str), "metavar": option.metavar}
        function = click.option(*option.flags, name, default=None, **shown)(function)
    return function


def listener_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the audience to a command."""
    return search_options(function, "chat", "session")


def _assignment(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise SettingsError(f"--set {text}: not of the form KEY=VALUE", hint="for example --set query.max_results=10")
    return key, value
