"""Finds a workspace, creates one, and names the files and folders that belong to it."""

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

EVERY_NOTE = "**/*.md"  # of `include`: all Markdown files of a workspace
TEMPLATE = """\
# Memory

Facts that stay true: people, preferences, decisions. One line each; details go to `memory/<topic>.md`,
what happened today goes to `memory/YYYY-MM-DD.md`.
"""

_AGENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# An agent's name becomes a folder; Windows reserves these names whatever their extension.
_DEVICE_NAMES = frozenset({"aux", "con", "nul", "prn", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})


def find_workspace(named: str | Path | None, *, environ: Mapping[str, str], start: Path | None = None) -> Path:
    """Return the workspace that is named, else that of NOTEWELL_WORKSPACE, else the nearest at or above `start`.

    `start` is the current folder unless given.
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
    """Say whether a folder holds anything that makes it a workspace."""
    return any(_exists(path / mark) for mark in MARKS)


def create_workspace(path: Path) -> list[Path]:
    """Make `path` a workspace and return what was created; existing files stay as they are."""
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
    """Return the absolute path if it is a folder that can be listed; raise WorkspaceError otherwise."""
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
    except (OSError, ValueError) as error:  # ValueError: no path can hold a NUL
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise WorkspaceError(f"cannot read {path}: {reason}", hint="check the path and its permissions") from error


class WorkspaceInUse:
    """The folder of an open memory: tells when it is gone, also when an empty folder has taken its place.

    A folder that is another one but holds notes or an index is taken for the workspace restored.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state = os.path.join(path, STATE_FOLDER)  # noqa: PTH118 - `require` runs in every call of a memory
        self._folder = _identity(path)
        self._had_state = os.path.isdir(self._state)  # noqa: PTH112
        self._had_marks = self._had_state or not set(MARKS).isdisjoint(self._names())
        for name in (os.fspath(path), os.path.realpath(path)):
            _in_use[name] = self

    def require(self) -> None:
        """Raise WorkspaceError when the folder is gone, or empty where notes and index were."""
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
    """Raise WorkspaceError when the workspace that is in use is no longer in its place."""
    place = _in_use.get(os.fspath(path))
    if place is not None:
        place.require()
    elif _identity(path) is None:
        raise _gone(path)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells one folder from another of the same name; None where there is none."""
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
    except RuntimeError as error:  # there is no such user, or no home
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
    except OSError:  # a folder above that we must not read cannot be the workspace
        return False


def checked_agent(name: str, *, where: str = "") -> str:
    """Return the agent's id in lower case; raise SettingsError when it is not a valid folder name everywhere."""
    agent = name.lower()
    if not _AGENT.fullmatch(agent) or agent in _DEVICE_NAMES:
        raise SettingsError(
            f"{where}: {name!r} is not an agent id" if where else f"{name!r} is not an agent id",
            hint="use 1 to 64 of a-z, 0-9, - and _, starting with a letter or digit, such as main or home-assistant",
        )
    return agent


def state_folder(settings: Settings, workspace: Path, agent: str = "main") -> Path:
    """Return the folder that holds the agent's index and caches for this workspace."""
    agent = checked_agent(agent)
    pattern = settings.store.path or f"{STATE_FOLDER}/{{agent}}"
    if "{agent}" not in pattern:
        pattern = f"{pattern}/{{agent}}"
    root = os.path.abspath(workspace)  # noqa: PTH100
    named = pattern.replace("{agent}", agent).replace("{workspace}", _workspace_name(root))
    return Path(absolute(named, Path(root)))


def _workspace_name(root: str) -> str:
    """Return a folder name that no other workspace on this machine has."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(root).name).strip("-") or "workspace"
    return f"{readable}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:8]}"


def user_file_of(environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the user's settings file, and whether it was named, so that it must exist."""
    named = environ.get("NOTEWELL_CONFIG", "")
    return (Path(absolute(named, Path.cwd())), True) if named else (default_user_file(), False)


def default_user_file() -> Path:
    """Return where this system keeps the user's settings file."""
    import platformdirs  # 8 ms; not needed when NOTEWELL_CONFIG names the file

    # appauthor=False: Windows would otherwise put a second folder of the same name around it.
    return Path(platformdirs.user_config_dir("notewell", appauthor=False)) / "config.toml"


def absolute(path: str, workspace: Path | None) -> str:
    """Return the path with `~` expanded, relative ones put into the workspace and links kept as they are.

    Without a workspace a relative path stays relative, because it means another folder in each workspace.
    """
    expanded = os.path.expanduser(path)  # noqa: PTH111  (Path.expanduser raises where there is no home)
    if workspace is None and not Path(expanded).is_absolute():
        return expanded
    return os.path.abspath(Path(workspace or "") / expanded)  # noqa: PTH100  (Path.resolve would follow links)


def stays_inside(path: str, workspace: Path) -> bool:
    """Say whether the path is relative and ends inside the workspace, links followed, on every platform alike."""
    for flavour in (PurePosixPath(path), PureWindowsPath(path)):
        if flavour.anchor or ".." in flavour.parts or path.lstrip().startswith("~"):
            return False
    try:
        return (workspace / path).resolve().is_relative_to(workspace.resolve())
    except (OSError, RuntimeError):  # a loop of links
        return False
