"""Where things are: the user's settings file, an agent's state folder, and the paths that settings name."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath

from notewell.errors import SettingsError
from notewell.settings.model import Settings

WORKSPACE_FILE = "notewell.toml"
STATE_FOLDER = ".notewell"

_AGENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# An agent's name becomes a folder; Windows reserves these names whatever their extension.
_DEVICE_NAMES = frozenset({"aux", "con", "nul", "prn", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})


def checked_agent(name: str, *, where: str = "") -> str:
    """Return the agent's id in lower case, or raise SettingsError when it could not be a folder name everywhere."""
    agent = name.lower()
    if not _AGENT.fullmatch(agent) or agent in _DEVICE_NAMES:
        raise SettingsError(
            f"{where}: {name!r} is not an agent id" if where else f"{name!r} is not an agent id",
            hint="use 1 to 64 of a-z, 0-9, - and _, starting with a letter or digit, such as main or home-assistant",
        )
    return agent


def default_user_file() -> Path:
    """Return where the user's settings file is looked for on this system."""
    import platformdirs  # 8 ms; not needed when NOTEWELL_CONFIG names the file

    # appauthor=False: Windows would otherwise put a second folder of the same name around it.
    return Path(platformdirs.user_config_dir("notewell", appauthor=False)) / "config.toml"


def user_file_of(environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the user's settings file, and whether it was named, so that it must exist."""
    named = environ.get("NOTEWELL_CONFIG", "")
    return (Path(absolute(named, Path.cwd())), True) if named else (default_user_file(), False)


def absolute(path: str, workspace: Path | None) -> str:
    """Return the path with `~` expanded and relative ones put into the workspace; links are kept as they are.

    Without a workspace a relative path stays relative, because it means another place in each workspace.
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
    """Return a folder name for the workspace that no other workspace on this machine has."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(root).name).strip("-") or "workspace"
    return f"{readable}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:8]}"
