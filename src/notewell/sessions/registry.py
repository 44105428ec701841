"""The registry of sessions: entries come in and go out; a copy of what the session files say, for overview and repair.

The session files are the truth. The registry never changes with a message, so that it costs nothing then, and it is
made anew from the files when it is damaged or missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from notewell.errors import SessionTooNewError
from notewell.sessions.array_file import ArrayFile
from notewell.sessions.files import replace_file
from notewell.sessions.json5 import Json5Error
from notewell.sessions.layout import Layout, new_text, with_element, without_elements
from notewell.sessions.model import SessionEntry
from notewell.sessions.values import entry_values

REGISTRY_VERSION = 1
SESSIONS = Layout(
    "sessions",
    "The sessions of one agent, kept by notewell: an overview. Each session's own file is what counts,\n"
    "and this one is made anew from those when it is missing.",
)
Values = dict[str, Any]


class Registry:
    """`registry.json5` of one store."""

    def __init__(
        self,
        folder: Path,
        timeout_s: float,
        *,
        entries: Callable[[], Iterable[SessionEntry]],
        aside: Callable[[Path], Path],
    ) -> None:
        self._entries_of_files = entries
        self._aside = aside
        self._file = ArrayFile(
            folder / "registry.json5",
            SESSIONS,
            folder / ".locks" / ".registry.lock",
            folder / ".journal" / ".registry",
            timeout_s,
        )

    def entries(self) -> dict[str, Values]:
        """Return what the registry holds, by session id; nothing when it is missing or damaged."""
        try:
            return _by_id(self._file.read())
        except (Json5Error, OSError):
            return {}

    def put(self, entry: SessionEntry) -> None:
        """Add or change an entry."""
        with self._file.locked():
            listed = self._sound()
            if listed is None:
                self._write(self._entries_of_files())
                return
            values = registry_values(entry)
            ids = [_id_of(each) for each in listed]
            if entry.session_id not in ids:
                self._file.append([values], lambda _: {}, _adopted)
                return
            position = ids.index(entry.session_id)
            if listed[position] != values:
                self._file.rewrite(lambda text: with_element(SESSIONS, text, position, values), _adopted)

    def remove(self, session_id: str) -> None:
        """Take an entry out."""
        with self._file.locked():
            listed = self._sound()
            if listed is None:
                self._write(self._entries_of_files())
                return
            ids = [_id_of(each) for each in listed]
            if session_id in ids:
                position = ids.index(session_id)
                self._file.rewrite(lambda text: without_elements(SESSIONS, text, position, position + 1), _adopted)

    def rebuild(self) -> int:
        """Write the registry anew from the session files; returns how many sessions it holds."""
        with self._file.locked():
            entries = list(self._entries_of_files())
            self._write(entries)
        return len(entries)

    def _sound(self) -> list[Any] | None:
        """Return what is listed; None when there is no registry, and after a damaged one was set aside."""
        self._file.recover()
        try:
            values = self._file.read(holding=True)
            _adopted(values)
        except FileNotFoundError:
            return None
        except Json5Error:
            self._aside(self._file.path)
            return None
        listed: list[Any] = values["sessions"]
        return listed

    def _write(self, entries: Iterable[SessionEntry]) -> None:
        listed = [
            registry_values(entry) for entry in sorted(entries, key=lambda each: (each.created_at, each.session_id))
        ]
        replace_file(self._file.path, new_text(SESSIONS, {"version": REGISTRY_VERSION}, listed, {}).encode())


def registry_values(entry: SessionEntry) -> Values:
    """Return what the registry says of a session."""
    values = {"sessionId": entry.session_id, "sessionFile": entry.session_file, **entry_values(entry)}
    flushed = values.get("memoryFlush")
    if isinstance(flushed, dict) and "text" in flushed:  # nothing that was said is in the registry
        values["memoryFlush"] = {key: value for key, value in flushed.items() if key != "text"}
    return values


def _by_id(values: Values) -> dict[str, Values]:
    listed = values.get("sessions")
    known = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return {_id_of(each): each for each in known}


def _id_of(values: object) -> str:
    return str(values.get("sessionId", "")) if isinstance(values, dict) else ""


def _adopted(values: Values) -> tuple[Values, Values]:
    version = values.get("version", REGISTRY_VERSION)
    if isinstance(version, int) and version > REGISTRY_VERSION:
        raise SessionTooNewError(
            f"the registry was written by a newer release (format {version})", hint="upgrade notewell"
        )
    if not isinstance(values.get("sessions"), list):
        raise Json5Error("sessions is not a list")
    return {}, {}
