"""A transcript's file in, a new session of the store out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from notewell.errors import SessionInputError
from notewell.sessions.ids import SessionKind, checked_id
from notewell.sessions.jsonl import Imported, import_lines
from notewell.sessions.model import SessionEntry
from notewell.sessions.store import ConversationStore


def import_file(
    store: ConversationStore, path: Path, *, session_id: str = "", kind: SessionKind | None = None
) -> tuple[Imported, SessionEntry]:
    """Bring a transcript into the store as a new session.

    Its id is the given one, else the one that the transcript says, else the name of the file.
    """
    imported = import_lines(_lines(path), session_id=session_id, fallback_id=_name_of(path), kind=kind)
    return imported, store.restore(imported.session)


def _lines(path: Path) -> Iterator[str]:
    with path.expanduser().open(encoding="utf-8", errors="replace", newline="\n") as file:
        yield from file


def _name_of(path: Path) -> str:
    try:
        return checked_id(path.stem)
    except SessionInputError:
        return ""
