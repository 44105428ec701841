"""The registry of sessions: an overview of what the session files say, also used to repair them.

The session files are what counts. The registry does not change with a message, and it is rebuilt from the files when it
is corrupt or missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from notewell.errors import SessionTooNewError
from notewell.files.no_follow import read_regular
from notewell.sessions.append_journal import locked, replace_file
from notewell.sessions.json5_editor import new_text, with_element, with_new_elements, without_elements
from notewell.sessions.model import SessionEntry, entry_to_json
from notewell.sources.transcripts import REGISTRY
from notewell.sources.transcripts.json5 import Json5Error, Layout, decode_json5, parse_object

REGISTRY_VERSION = 1
SESSIONS = Layout(
    "sessions",
    "The sessions of one agent, kept by notewell: an overview. Each session's own file is what counts,\n"
    "and this one is rebuilt from those when it is missing.",
)
Values = dict[str, Any]


class Registry:
    """`registry.json5` of one store."""

    def __init__(
        self,
        folder: Path,
        timeout_s: float,
        *,
        entries: Callable[[Mapping[str, Values]], Iterable[SessionEntry]],
        aside: Callable[[Path], Path],
        require: Callable[[], None],  # raises where nothing may be written: the workspace has moved away
    ) -> None:
        self._path = folder / REGISTRY
        self._lock = folder / ".locks" / ".registry.lock"
        self._timeout_s = timeout_s
        self._entries_of_files = entries
        self._aside = aside
        self._require = require

    def entries(self) -> dict[str, Values]:
        """Return what the registry holds, by session id; nothing when it is missing or corrupt."""
        try:
            listed = _listed(decode_json5(read_regular(self._path)))
        except (Json5Error, OSError):
            return {}
        return {_id_of(each): each for each in listed if isinstance(each, dict)}

    def put(self, entry: SessionEntry) -> None:
        """Add or change an entry."""
        values = _values_of(entry)

        def change(text: str, listed: list[Any], position: int | None) -> str:
            if position is None:
                return with_new_elements(SESSIONS, text, [values])
            return text if listed[position] == values else with_element(SESSIONS, text, position, values)

        self._change(entry.session_id, change)

    def remove(self, session_id: str) -> None:
        """Take an entry out."""

        def change(text: str, _: list[Any], position: int | None) -> str:
            return text if position is None else without_elements(SESSIONS, text, position, position + 1)

        self._change(session_id, change)

    def rebuild(self) -> int:
        """Write the registry from the session files; returns how many sessions it holds."""
        with self.locked():
            return self._write_all()

    def locked(self, timeout_s: float | None = None) -> AbstractContextManager[None]:
        """Be the only writer of the registry."""
        self._require()
        return locked(self._lock, self._timeout_s if timeout_s is None else timeout_s, self._path.name)

    def _change(self, session_id: str, change: Callable[[str, list[Any], int | None], str]) -> None:
        """Edit the text, given what it lists and where the session stands in it; rebuild a missing or corrupt file."""
        with self.locked():
            try:
                text = decode_json5(read_regular(self._path))
                listed = _listed(text)
                ids = [_id_of(each) for each in listed]
                changed = change(text, listed, ids.index(session_id) if session_id in ids else None)
            except FileNotFoundError:
                self._write_all()
                return
            except Json5Error:
                self._aside(self._path)
                self._write_all()
                return
            if changed != text:
                replace_file(self._path, changed.encode())

    def _write_all(self) -> int:
        entries = sorted(self._entries_of_files(self.entries()), key=lambda each: (each.created_at, each.session_id))
        text = new_text(SESSIONS, {"version": REGISTRY_VERSION}, [_values_of(entry) for entry in entries], {})
        replace_file(self._path, text.encode())
        return len(entries)


def _values_of(entry: SessionEntry) -> Values:
    """Return what the registry says of a session."""
    values = {"sessionId": entry.session_id, "sessionFile": entry.session_file, **entry_to_json(entry)}
    flushed = values.get("memoryFlush")
    if isinstance(flushed, dict) and "text" in flushed:  # nothing that was said is in the registry
        values["memoryFlush"] = {key: value for key, value in flushed.items() if key != "text"}
    return values


def _listed(text: str) -> list[Any]:
    values = parse_object(text)
    version = values.get("version", REGISTRY_VERSION)
    if isinstance(version, int) and version > REGISTRY_VERSION:
        raise SessionTooNewError(
            f"the registry was written by a newer release (format {version})", hint="upgrade notewell"
        )
    listed = values.get("sessions")
    if not isinstance(listed, list):
        raise Json5Error("sessions is not a list")
    return listed


def _id_of(values: object) -> str:
    return str(values.get("sessionId", "")) if isinstance(values, dict) else ""
