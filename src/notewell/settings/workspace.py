"""Finds and creates workspaces, and names their files and folders."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from notewell.errors import SettingsError, WorkspaceError, WorkspaceNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from notewell.settings.model import Settings

WORKSPACE_FILE = "notewell.toml"
STATE_FOLDER = ".notewell"
MARKS = ("MEMORY.md", "memory.md", WORKSPACE_FILE, STATE_FOLDER, "memory")  # any of them makes a folder a workspace

EVERY_NOTE = "**/*.md"  # the value of `include` for all Markdown files
TEMPLATE = """\
# Memory

Facts that stay true: people, preferences, decisions. One line each; details go to `memory/<topic>.md`,
what happened today goes to `memory/YYYY-MM-DD.md`.
"""

_AGENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# An agent's name becomes a folder; Windows reserves these names with any extension.
_DEVICE_NAMES = frozenset({"aux", "con", "nul", "prn", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})


def find_workspace(named: str | Path | None, *, environ: Mapping[str, str], start: Path | None = None) -> Path:
    """Return the named workspace, else that of NOTEWELL_WORKSPACE, else the nearest at or above `start`.

    `start` is the current folder by default.
    """
    chosen = named or environ.get("NOTEWELL_WORKSPACE")
    if chosen:
        return checked_workspace(expanded(Path(chosen)))
    start = _current_folder() if start is None else start
    for folder in (start, *start.parents):
        if is_workspace(folder):
            return checked_workspace(folder)
    raise WorkspaceNotFoundError(
        f"no workspace here: neither {start} nor any folder above it holds MEMORY.md or memory/",
        hint="create one with `notewell init`, or name one with --workspace PATH",
    )


def is_workspace(path: Path) -> bool:
    """Return whether a folder is a workspace."""
    return any(_exists(path / mark) for mark in MARKS)


def create_workspace(path: Path) -> list[Path]:
    """Turn `path` into a workspace and return what was created; existing files are kept."""
    created: list[Path] = []
    try:
        for folder in (path, path / "memory"):
            if not folder.is_dir():
                folder.mkdir(parents=True)
                created.append(folder)
        if not any((path / name).exists() for name in ("MEMORY.md", "memory.md")):
            (path / "MEMORY.md").write_text(TEMPLATE, encoding="utf-8", newline="\n")
            created.append(path / "MEMORY.md")
    except OSError as error:
        raise WorkspaceError(
            f"cannot create a workspace in {path}: {error.strerror}", hint="choose a folder that you can write to"
        ) from error
    return created


def checked_workspace(path: Path) -> Path:
    """Return the absolute path of a folder; raises WorkspaceError if it cannot be listed."""
    path = path if path.is_absolute() else _current_folder() / path
    try:
        with os.scandir(path):
            return path
    except FileNotFoundError as error:
        raise WorkspaceError(
            f"there is no folder {path}", hint=f"make it a workspace: notewell init {path} (in Python: create=True)"
        ) from error
    except NotADirectoryError as error:
        raise WorkspaceError(f"{path} is a file, not a folder", hint="name the folder that holds MEMORY.md") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise WorkspaceError(f"cannot read {path}: {reason}", hint="check the path and its permissions") from error


class WorkspaceInUse:
    """The folder of an open memory; notices when it is moved away, even if an empty folder takes its place.

    A different folder with notes or an index counts as the restored workspace.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state = os.path.join(path, STATE_FOLDER)  # noqa: PTH118 - `require` runs in every call
        self._folder = _identity(path)
        self._had_state = os.path.isdir(self._state)  # noqa: PTH112
        self._had_marks = self._had_state or not set(MARKS).isdisjoint(self._names())
        for name in (os.fspath(path), os.path.realpath(path)):
            _in_use[name] = self

    def require(self) -> None:
        """Raise WorkspaceError if the folder is gone, or was replaced by an empty one."""
        folder = _identity(self.path)
        if folder is None:
            raise _gone(self.path)
        has_state = os.path.isdir(self._state)  # noqa: PTH112
        if folder == self._folder and has_state >= self._had_state:
            self._had_state = has_state
            self._had_marks = self._had_marks or has_state
            return
        names = self._names()
        is_same = folder == self._folder or not self._had_marks
        if not (names if is_same else names.intersection(MARKS)):
            raise _gone(self.path, ", and a folder without notes is in its place")
        self._folder, self._had_state = folder, has_state

    def _names(self) -> set[str]:
        try:
            return set(os.listdir(self.path))  # noqa: PTH208
        except OSError:
            return set()


_in_use: WeakValueDictionary[str, WorkspaceInUse] = WeakValueDictionary()


def require_workspace(path: Path) -> None:
    """Raise WorkspaceError if the workspace was moved away."""
    place = _in_use.get(os.fspath(path))
    if place is not None:
        place.require()
    elif _identity(path) is None:
        raise _gone(path)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a folder; None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def _gone(path: Path, instead: str = "") -> WorkspaceError:
    return WorkspaceError(
        f"the workspace {path} is gone: it was moved, deleted or unmounted{instead}",
        hint="put it back, or start again with --workspace and its new path",
    )


def expanded(path: Path) -> Path:
    """Return the path with `~` replaced by the home folder."""
    try:
        return path.expanduser()
    except RuntimeError as error:  # no such user, or no home folder
        raise WorkspaceError(f"cannot expand {path}: {error}", hint="name the folder without ~") from error


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise WorkspaceNotFoundError(
            f"the current folder cannot be read: {error.strerror}",
            hint="go to a folder that exists, or name a workspace by its full path with --workspace PATH",
        ) from error


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # an unreadable parent cannot be the workspace
        return False


def checked_agent(name: str, *, where: str = "") -> str:
    """Return the agent's id in lower case; raises SettingsError if it is not a valid folder name everywhere."""
    agent = name.lower()
    if not _AGENT.fullmatch(agent) or agent in _DEVICE_NAMES:
        raise SettingsError(
            f"{where}: {name!r} is not an agent id" if where else f"{name!r} is not an agent id",
            hint="use 1 to 64 of a-z, 0-9, - and _, starting with a letter or digit, such as main or home-assistant",
        )
    return agent


def state_folder(settings: Settings, workspace: Path, agent: str = "main") -> Path:
    """Return the folder of the agent's index and cache for this workspace."""
    agent = checked_agent(agent)
    pattern = settings.store.path or f"{STATE_FOLDER}/{{agent}}"
    if "{agent}" not in pattern:
        pattern = f"{pattern}/{{agent}}"
    root = os.path.abspath(workspace)  # noqa: PTH100
    named = pattern.replace("{agent}", agent).replace("{workspace}", _workspace_name(root))
    return Path(absolute(named, Path(root)))


def _workspace_name(root: str) -> str:
    """Return a folder name that is unique to this workspace on this machine."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(root).name).strip("-") or "workspace"
    return f"{readable}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:8]}"


def user_file_of(environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the user's settings file, and whether it must exist because it was named."""
    named = environ.get("NOTEWELL_CONFIG", "")
    return (Path(absolute(named, Path.cwd())), True) if named else (default_user_file(), False)


def default_user_file() -> Path:
    """Return where this system keeps the user's settings file."""
    import platformdirs  # takes 8 ms

    # appauthor=False avoids a second folder of the same name on Windows.
    return Path(platformdirs.user_config_dir("notewell", appauthor=False)) / "config.toml"


def absolute(path: str, workspace: Path | None) -> str:
    """Return the path with `~` expanded, relative to the workspace, without resolving links.

    Without a workspace a relative path stays relative, because it differs in each workspace.
    """
    expanded = os.path.expanduser(path)  # noqa: PTH111  (Path.expanduser raises where there is no home)
    if workspace is None and not Path(expanded).is_absolute():
        return expanded
    return os.path.abspath(Path(workspace or "") / expanded)  # noqa: PTH100  (Path.resolve would follow links)


def stays_inside(path: str, workspace: Path) -> bool:
    """Return whether the path is relative and inside the workspace after resolving links, on any platform."""
    for flavour in (PurePosixPath(path), PureWindowsPath(path)):
        if flavour.anchor or ".." in flavour.parts or path.lstrip().startswith("~"):
            return False
    try:
        return (workspace / path).resolve().is_relative_to(workspace.resolve())
    except (OSError, RuntimeError):  # a loop of links
        return False
