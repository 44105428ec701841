"""A folder named or guessed in, the workspace to use out; also makes a new one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import WorkspaceError, WorkspaceNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKS = ("MEMORY.md", "memory.md", "notewell.toml", ".notewell", "memory")  # any of them makes a folder a workspace

STARTER = """\
# Memory

Facts that stay true: people, preferences, decisions. One line each; details go to `memory/<topic>.md`,
what happened today goes to `memory/YYYY-MM-DD.md`.
"""


def find_workspace(named: str | Path | None, *, environ: Mapping[str, str], start: Path | None = None) -> Path:
    """Return the workspace that is named, else that of NOTEWELL_WORKSPACE, else the nearest upwards of `start`.

    `start` is the current folder unless given.
    """
    chosen = named or environ.get("NOTEWELL_WORKSPACE")
    if chosen:
        return checked_workspace(expanded(Path(chosen)))
    start = _current_folder() if start is None else start
    for folder in (start, *start.parents):
        if any(_is_there(folder / mark) for mark in MARKS):
            return checked_workspace(folder)
    raise WorkspaceNotFoundError(
        f"no workspace here: neither {start} nor any folder above it holds MEMORY.md or memory/",
        hint="make one with `notewell init`, or name one with --workspace PATH",
    )


def expanded(path: Path) -> Path:
    """Return the path with `~` replaced by the home it stands for."""
    try:
        return path.expanduser()
    except RuntimeError as error:  # there is no such user, or no home
        raise WorkspaceError(f"cannot tell which folder {path} is: {error}", hint="name it without ~") from error


def checked_workspace(path: Path) -> Path:
    """Return the absolute path if it is a folder that can be listed; else say what is wrong with it."""
    path = path if path.is_absolute() else _current_folder() / path
    try:
        with os.scandir(path):
            return path
    except FileNotFoundError as error:
        raise WorkspaceError(f"there is no folder {path}", hint=f"make it a workspace: notewell init {path}") from error
    except NotADirectoryError as error:
        raise WorkspaceError(f"{path} is a file, not a folder", hint="name the folder that holds MEMORY.md") from error
    except (OSError, ValueError) as error:  # ValueError: no path can hold a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise WorkspaceError(f"cannot read {path}: {reason}", hint="check the path and who may read it") from error


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise WorkspaceNotFoundError(
            f"the current folder cannot be read: {error.strerror}",
            hint="go to a folder that exists, or name a workspace by its full path with --workspace PATH",
        ) from error


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder above that we may not look into is none we could use
        return False


def create_workspace(path: Path) -> list[Path]:
    """Make `path` a workspace and return what was made; what is there already is left as it is."""
    made: list[Path] = []
    notes = path / "memory"
    try:
        for folder in (path, notes):
            if not folder.is_dir():
                folder.mkdir(parents=True)
                made.append(folder)
        if not any((path / name).exists() for name in ("MEMORY.md", "memory.md")):
            (path / "MEMORY.md").write_text(STARTER, encoding="utf-8", newline="\n")
            made.append(path / "MEMORY.md")
    except OSError as error:
        raise WorkspaceError(
            f"cannot make a workspace of {path}: {error.strerror}", hint="choose a folder that you may write to"
        ) from error
    return made
