"""Finds conversations that the settings leave out of search; lists names, and never opens one of them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.sources.transcripts import ARCHIVE, COMPACTED, CORRUPT, REGISTRY, SESSION_ENDING

if TYPE_CHECKING:
    from notewell.settings import Settings


def unsearched_conversations(settings: Settings, agent: str, own_folder: Path, workspace: Path) -> Iterator[str]:
    """Yield notes on the conversations of the agent itself and of other programs, where they are left out of search.

    `own_folder` is the folder of the session store.
    """
    yield from unsearched_own(settings, own_folder)
    if not settings.sessions.offer:
        return
    programs = {
        "OpenClaw": openclaw_folders(agent),
        "Claude Code": claude_code_folders(workspace),
        "Codex": codex_folders(),
    }
    for program, folders in programs.items():
        missing = [folder for folder in folders if not _is_among(folder, settings.sessions.paths)]
        count = _count(missing)
        if count:
            named = " ".join(map(_for_a_shell, missing))
            yield f"{_told(count)} of {program} {_are(count)} not searched: run `notewell sessions enable {named}`"


def unsearched_own(settings: Settings, own_folder: Path) -> Iterator[str]:
    """Yield a note on the conversations that this agent keeps, where they are left out of search."""
    if "sessions" in settings.sources or not settings.sessions.offer:
        return
    if settings.sessions.paths:
        yield "sessions.paths has no effect while `sources` leaves out conversations: run `notewell sessions enable`"
    elif count := _count([own_folder]):
        yield f"{_told(count)} of this agent {_are(count)} not searched: run `notewell sessions enable`"


def openclaw_folders(agent: str) -> list[Path]:
    """Return where OpenClaw keeps conversations: of its agent of that name, else of all, and those of no agent."""
    top = Path(os.environ.get("OPENCLAW_STATE_DIR") or "~/.openclaw").expanduser()
    own = top / "agents" / agent / "sessions"
    folders = [own] if own.is_dir() else sorted((top / "agents").glob("*/sessions"))
    return [folder for folder in (*folders, top / "sessions") if folder.is_dir()]


def claude_code_folders(workspace: Path) -> list[Path]:
    """Return where Claude Code keeps conversations: those of the workspace's own project, else all."""
    top = Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser() / "projects"
    own = top / re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(workspace))
    return [folder for folder in ([own] if own.is_dir() else [top]) if folder.is_dir()]


def codex_folders() -> list[Path]:
    """Return where Codex keeps conversations."""
    folder = Path(os.environ.get("CODEX_HOME") or "~/.codex").expanduser() / "sessions"
    return [folder] if folder.is_dir() else []


def _count(folders: Iterable[Path]) -> int:
    return sum(_is_conversation(name) for folder in folders for name in _names(folder))


def _names(folder: Path) -> Iterator[str]:
    """Yield the names of files; nothing is opened, and what is not ours to list is passed over."""
    for _, below, names in os.walk(folder):
        below[:] = [name for name in below if name not in {CORRUPT, COMPACTED, ARCHIVE} and not name.startswith(".")]
        yield from names


def _is_conversation(name: str) -> bool:
    return name.endswith((".jsonl", SESSION_ENDING)) and name != REGISTRY and not name.startswith(".")


def _is_among(folder: Path, named: Collection[Path]) -> bool:
    real = Path(os.path.realpath(folder))
    return any(real.is_relative_to(os.path.realpath(path)) for path in named)


def _for_a_shell(folder: Path) -> str:
    home = Path("~").expanduser()
    if folder.is_relative_to(home):
        return f"~/{shlex.quote(folder.relative_to(home).as_posix())}"
    return shlex.quote(str(folder))


def _told(count: int) -> str:
    return f"{count:,} conversation{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
