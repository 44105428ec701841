"""Finds conversations that the settings leave out of search; lists names, and never opens one of them."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.sources.transcripts import CHATS, GROUPS, REGISTRY, SESSION_ENDING

if TYPE_CHECKING:
    from notewell.settings import Settings

WITH_SESSIONS = 'sources = ["memory", "sessions"]'


def unsearched_conversations(settings: Settings, agent: str, own_folder: Path) -> Iterator[str]:
    """Yield a note on the conversations of the agent itself, and one on those of OpenClaw, where they are left out.

    `own_folder` is the folder of the session store.
    """
    if not settings.sessions.offer:
        return
    named = settings.sessions.paths
    if "sessions" not in settings.sources:
        count = _count([own_folder])
        if named:
            yield f"sessions.paths has no effect while `sources` leaves out conversations: set {WITH_SESSIONS}"
        elif count:
            yield f"{_told(count)} of this agent {_are(count)} not searched: set {WITH_SESSIONS}"
    missing = [folder for folder in openclaw_folders(agent) if not _is_among(folder, named)]
    count = _count(missing)
    if count:
        paths = ", ".join(json.dumps(_below_home(folder), ensure_ascii=False) for folder in missing)
        change = f"add {paths} to sessions.paths" if named else f"set sessions.paths = [{paths}]"
        yield f"{_told(count)} of OpenClaw {_are(count)} not searched: {change}"


def openclaw_folders(agent: str) -> list[Path]:
    """Return where OpenClaw keeps conversations: of its agent of that name, else of all, and those of no agent."""
    top = Path(os.environ.get("OPENCLAW_STATE_DIR") or "~/.openclaw").expanduser()
    own = top / "agents" / agent / "sessions"
    folders = [own] if own.is_dir() else sorted((top / "agents").glob("*/sessions"))
    return [folder for folder in (*folders, top / "sessions") if folder.is_dir()]


def _count(folders: Iterable[Path]) -> int:
    return sum(_is_conversation(name) for folder in folders for name in _names(folder))


def _names(folder: Path) -> Iterator[str]:
    for each in (folder, folder / CHATS, folder / GROUPS):
        with suppress(OSError):  # not there, or not ours to list: then there is nothing to offer
            yield from (path.name for path in each.iterdir())


def _is_conversation(name: str) -> bool:
    return name.endswith((".jsonl", SESSION_ENDING)) and name != REGISTRY and not name.startswith(".")


def _is_among(folder: Path, named: Collection[Path]) -> bool:
    real = Path(os.path.realpath(folder))
    return any(real.is_relative_to(os.path.realpath(path)) for path in named)


def _below_home(folder: Path) -> str:
    home = Path("~").expanduser()
    return f"~/{folder.relative_to(home).as_posix()}" if folder.is_relative_to(home) else str(folder)


def _told(count: int) -> str:
    return f"{count:,} conversation{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
