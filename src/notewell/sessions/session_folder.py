"""Manages the folder of the session store: the files, archives, locks and journals of sessions, and their registry.

registry.json5
chats/<id>.json5           direct conversations
groups/<id>.json5          conversations that others read, too
archive/chats, archive/groups
compacted/<id>.<n>.jsonl   messages that a summary replaced; `.pending` until the session names the file
`damaged/`                 copies of files that could not be read
.locks, .journal           safe to delete while nothing is running
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from notewell.errors import ConversationError, SessionInputError, SessionNotFoundError, SessionTooNewError
from notewell.files.atomic import DRAFT_SUFFIX, sync_folder
from notewell.files.no_follow import read_regular
from notewell.sessions.append_journal import locked, move, replace_file
from notewell.sessions.model import SessionEntry, SessionKind, entry_to_json
from notewell.sessions.session_file import SessionFile
from notewell.settings.workspace import require_workspace
from notewell.sources.transcripts import (
    ARCHIVE,
    CHATS,
    COMPACTED,
    CORRUPT,
    GROUPS,
    PENDING,
    REGISTRY,
    SESSION_ENDING,
    is_new_id,
    is_session_name,
    names_of,
)
from notewell.sources.transcripts.json5 import Json5Error, Layout, decode_json5, parse_object
from notewell.sources.transcripts.messages import Message, message_from_json, message_to_json
from notewell.sources.walk import listed_name

FOLDERS: dict[SessionKind, str] = {"direct": CHATS, "group": GROUPS}  # the folder decides the kind
JOURNALS = ".journal"
STATE_FOLDER = ".notewell"  # in a workspace
ARCHIVE_ENDING = ".jsonl"
_NAME = re.compile(r"(.+)\.(\d+)(\.jsonl|\.pending)")  # ids from other programs may contain dots
_DRAFT = re.compile(_NAME.pattern + r"\.[^.]+\.tmp")


def new_id() -> str:
    """Return a new, unique id."""
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """The folder of one store."""

    path: Path
    timeout_s: float
    group_only: frozenset[str] | None = None  # the only sessions that are visible; None: all
    workspace: Path | None = None  # must still exist: nothing is created after it was moved away

    def is_hidden(self, session_id: str) -> bool:
        """Return whether a session is hidden, as all but a group's own are for that group."""
        if self.group_only is None:
            return False
        names = set(names_of(session_id))
        direct = (f"{top}{CHATS}/{name}{SESSION_ENDING}" for top in ("", f"{ARCHIVE}/") for name in names)
        return names.isdisjoint(self.group_only) or any((self.path / place).exists() for place in direct)

    def check_may_create(self, session_id: str, kind: SessionKind) -> None:
        """Raise SessionInputError for a session that would be hidden."""
        if self.group_only is not None and (kind != "group" or self.is_hidden(session_id)):
            raise SessionInputError(
                "this memory was opened for a group, which may only use its own session",
                hint='open the memory with session="ID", and create it with kind="group"',
            )

    def require(self) -> None:
        """Raise WorkspaceError if the workspace was moved away: that is not the same as having no conversations."""
        if self.workspace is not None:
            require_workspace(self.workspace)

    def ensure(self) -> None:
        """Create the folder, accessible only to its owner."""
        self.require()
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except (FileExistsError, NotADirectoryError) as error:
            raise ConversationError(
                f"{self.path} cannot be created: a file is in the way", hint="move that file away"
            ) from error
        top = next((folder for folder in self.path.parents if folder.name == STATE_FOLDER), None)
        if top is not None and not (top / ".gitignore").exists():  # conversations must not end up in a commit
            (top / ".gitignore").write_text("*\n", encoding="utf-8")

    def locked(self, session_id: str) -> AbstractContextManager[None]:
        """Hold the lock of a session."""
        self._check(session_id)
        self.ensure()
        return self.new(session_id, "direct").locked()

    def flushing(self, session_id: str) -> AbstractContextManager[None]:
        """Hold the lock for flushing a session."""
        self._check(session_id)
        self.require()
        lock = self.path / ".locks" / f"{session_id}.flush.lock"
        return locked(lock, self.timeout_s, f"the notes of session {session_id!r}")

    def new(self, session_id: str, kind: SessionKind) -> SessionFile:
        """Return the file of a session that is not archived, whether it exists or not."""
        return self._file(session_id, kind, f"{FOLDERS[kind]}/{session_id}{SESSION_ENDING}")

    def find(self, session_id: str) -> SessionFile | None:
        """Return the file of a session that exists; a group is also found by its id in the chat program."""
        self.require()
        if self.is_hidden(session_id):
            return None
        if is_new_id(session_id):  # nearly always; every append asks
            found = next((file for file in self._all(session_id) if file.exists()), None)
            if found:
                return found
        for name in (*names_of(session_id), session_id.lower()):
            for file in self._all(name) if is_session_name(name) else ():
                if file.exists():
                    spelt = listed_name(str(file.path.parent), file.path.name, file.path.lstat())
                    return self._at(file.path.with_name(spelt), file.kind)
        return None

    def _check(self, session_id: str) -> None:
        if self.is_hidden(session_id):  # before waiting for its lock, which would reveal that it exists
            raise SessionNotFoundError(session_id)

    def sessions(self, *, archived: bool) -> Iterator[SessionFile]:
        """Yield the file of every session, ordered by id."""
        self.require()
        for kind, name in FOLDERS.items():
            place = f"{ARCHIVE}/{name}" if archived else name
            for path in _children(self.path / place, SESSION_ENDING):
                file = self._at(path, kind)
                if is_session_name(file.session_id) and file.exists() and not self.is_hidden(file.session_id):
                    yield file

    def is_archived(self, file: SessionFile) -> bool:
        """Return whether the file lies in the archive."""
        return file.place.startswith(f"{ARCHIVE}/")

    def move(self, file: SessionFile, *, archived: bool) -> SessionFile:
        """Put a file into the archive, or back, and return it there."""
        place = file.place.removeprefix(f"{ARCHIVE}/")
        moved = self._file(file.session_id, file.kind, f"{ARCHIVE}/{place}" if archived else place)
        move(file.path, moved.path)
        return moved

    def archives(self, session_id: str) -> Archives:
        """Return the archives of a session."""
        return Archives(self.path / COMPACTED, session_id)

    def ids(self) -> set[str]:
        """Return the ids of all sessions that have any file here, even if the session itself is gone."""
        return {owner for path in self.files() if (owner := self.owner(path))}

    def files(self, start: str = "") -> Iterator[Path]:
        """Yield the regular files below the folder whose names begin with `start`, but for locks and links."""
        self.require()
        for folder, folders, names in os.walk(self.path):
            if ".locks" in folders:
                folders.remove(".locks")
            found = (Path(folder, name) for name in sorted(names) if name.startswith((start, f".{start}")))
            yield from (path for path in found if path.is_file() and not path.is_symlink())

    def registry_copies(self) -> list[Path]:
        """Return the registries that were set aside as corrupt."""
        return [path for path in _children(self.path / CORRUPT) if path.name.startswith(f"{REGISTRY}.")]

    def debris(self) -> dict[str, list[Path]]:
        """Return what killed processes left behind, by session, and that of the registry under ""."""
        self.require()
        archives = _archives_in(self.path / COMPACTED)
        found: dict[str, list[Path]] = {owner_of_archive(path.name): [] for path in archives if path.suffix == PENDING}
        tops = (self.path, *(self.path / name for name in (COMPACTED, CORRUPT)))
        kinds = (self.path / top / name for top in ("", ARCHIVE) for name in FOLDERS.values())
        for path in (path for folder in (*tops, *kinds) for path in _children(folder, DRAFT_SUFFIX)):
            found.setdefault(self.owner(path), []).append(path)
        return found

    def owner(self, path: Path) -> str:
        """Return the session that a file belongs to, by its name; "" for those of the registry."""
        name, folder = path.name.removeprefix("."), path.parent.name
        if path.parent == self.path or (folder == CORRUPT and name.startswith(f"{REGISTRY}.")):
            return ""
        if folder == JOURNALS:
            return name
        owner = owner_of_archive(name) if folder == COMPACTED else name.partition(SESSION_ENDING)[0]
        return owner if is_session_name(owner) else ""

    def set_aside(self, path: Path) -> Path:
        """Move a corrupt file aside; returns its new path."""
        kept = self._corrupt_path(path.name)
        move(path, kept)
        return kept

    def keep_copy(self, path: Path, data: bytes) -> Path:
        """Keep a copy of a corrupt file; returns its path."""
        kept = self._corrupt_path(path.name)
        replace_file(kept, data)
        return kept

    def files_of(self, session_id: str) -> list[Path]:
        """Return all files of a session, its own first."""
        if self.is_hidden(session_id):
            return []
        own = [file.path for file in self._all(session_id) if file.exists()]
        return [*own, *(path for path in self.files(session_id) if self.owner(path) == session_id and path not in own)]

    def contents_of(self, session_id: str) -> dict[str, bytes]:
        """Return what the files of a session hold, but for its journal, by their place below the folder."""
        files = (path for path in self.files_of(session_id) if path.parent.name != JOURNALS)
        return {path.relative_to(self.path).as_posix(): path.read_bytes() for path in files}

    def remove(self, files: Iterable[Path]) -> None:
        """Delete files durably."""
        folders = set()
        for path in files:
            path.unlink(missing_ok=True)
            folders.add(path.parent)
        for folder in folders:
            sync_folder(folder)

    def _all(self, session_id: str) -> list[SessionFile]:
        return [
            self._file(session_id, kind, f"{top}{name}/{session_id}{SESSION_ENDING}")
            for top in ("", f"{ARCHIVE}/")
            for kind, name in FOLDERS.items()
        ]

    def _at(self, path: Path, kind: SessionKind) -> SessionFile:
        return self._file(path.name.removesuffix(SESSION_ENDING), kind, path.relative_to(self.path).as_posix())

    def _file(self, session_id: str, kind: SessionKind, place: str) -> SessionFile:
        lock = self.path / ".locks" / f"{session_id}.lock"
        journal = self.path / JOURNALS / session_id
        return SessionFile(self.path / place, lock, journal, self.timeout_s, session_id, kind, place)

    def _corrupt_path(self, name: str) -> Path:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        return self.path / CORRUPT / f"{name}.damaged-{stamp}"


def _children(folder: Path, suffix: str = "") -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.name.endswith(suffix))
    except (FileNotFoundError, NotADirectoryError):
        return []


# --- archives: messages that summaries replaced ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Archives:
    """The archives of one session, in the store's folder `compacted`. Change them under the session's lock.

    A session names its archives in `compactedFiles`. Compaction writes the archive as `compacted/<id>.<n>.pending`,
    replaces the session's file with one that names it, and renames it to `<id>.<n>.jsonl`. The second step decides: a
    pending archive that its session names is complete and is renamed, any other is deleted. So each message is kept
    exactly once, whenever the process is killed.
    """

    folder: Path
    session_id: str

    def files(self) -> list[Path]:
        """Return the archives in order, including pending ones."""
        return [path for path in _archives_in(self.folder) if owner_of_archive(path.name) == self.session_id]

    def begin(self, lines: Iterable[str], *, named: Collection[str]) -> str:
        """Write the lines to a new pending archive, and return the name that the session must give it."""
        taken = [int(_NAME.fullmatch(name)[2]) for name in named if _NAME.fullmatch(name)]  # type: ignore[index]
        taken += [int(path.name.split(".")[-2]) for path in self.files()]
        stem = f"{self.session_id}.{max(taken, default=0) + 1:04}"
        replace_file(self.folder / f"{stem}{PENDING}", "".join(f"{line}\n" for line in lines).encode())
        return f"{stem}{ARCHIVE_ENDING}"

    def settle(self, named: Collection[str]) -> None:
        """Finish pending archives that the session names, and delete the others."""
        for path in self.files():
            if path.suffix == PENDING:
                final = path.with_suffix(ARCHIVE_ENDING)
                if final.name in named:
                    move(path, final)
                else:
                    path.unlink(missing_ok=True)

    def rescue(self) -> None:
        """Keep the pending archives of a session whose list of names is lost; `adopt` removes duplicates."""
        for path in self.files():
            if path.suffix == PENDING:
                move(path, path.with_suffix(ARCHIVE_ENDING))

    def unnamed(self, named: Collection[str]) -> list[Path]:
        """Return archives that the session does not name, as older releases left them."""
        return [path for path in self.files() if path.suffix == ARCHIVE_ENDING and path.name not in named]

    def adopt(self, named: Collection[str], messages: Sequence[Message]) -> tuple[str, ...]:
        """Return all archives, after removing duplicates from those without a name.

        Releases that wrote no names archived the same messages again after each kill.
        """
        unnamed = set(self.unnamed(named))
        seen = {key_of(message) for message in messages}
        kept: list[str] = []
        for path in reversed([path for path in self.files() if path.suffix == ARCHIVE_ENDING]):
            lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
            found = [_archived(line) for line in lines]
            if path in unnamed:
                own = [
                    line
                    for line, message in zip(lines, found, strict=True)
                    if message is None or key_of(message) not in seen
                ]
                if not any(map(_archived, own)):
                    path.unlink()
                    continue
                if len(own) < len(lines):
                    replace_file(path, "".join(f"{line}\n" for line in own).encode())
            seen.update(key_of(message) for message in found if message is not None)
            kept.append(path.name)
        return tuple(reversed(kept))


def owner_of_archive(name: str) -> str:
    """Return the session that an archive or a draft of one belongs to; "" for other names."""
    found = _NAME.fullmatch(name) or _DRAFT.fullmatch(name.removeprefix("."))
    return found[1] if found else ""


def _archived(line: str) -> Message | None:
    """Return the message on a line of an archive; None for the session's line, summaries and unreadable lines."""
    try:
        values = json.loads(line)
    except ValueError:
        return None
    return message_in_line(line) if isinstance(values, dict) and "message" in values else None


def message_in_line(line: str) -> Message | None:
    """Return the message or summary on a line; None for the session's line and unreadable lines."""
    try:
        values = json.loads(line)
        return message_from_json(values.get("message", values) if isinstance(values, dict) else values)
    except (ValueError, SessionInputError):
        return None


def key_of(message: Message) -> str:
    """Return the key by which a message is recognized."""
    return message.id or json.dumps(message_to_json(message), sort_keys=True, default=str)


def _archives_in(folder: Path) -> list[Path]:
    found = (path for path in _children(folder) if _NAME.fullmatch(path.name))
    return [path for path in found if path.is_file() and not path.is_symlink()]


# --- the registry ------------------------------------------------------------------------------

REGISTRY_VERSION = 1
SESSIONS = Layout(
    "sessions",
    "The sessions of one agent, kept by notewell: an overview. Each session's own file is what counts,\n"
    "and this one is rebuilt from those when it is missing.",
)
Values = dict[str, Any]


class Registry:
    """`registry.json5`: an overview of the session files, also used to repair them.

    The session files are authoritative: the registry is rebuilt from them when it is corrupt or missing. An append does
    not change it.
    """

    def __init__(
        self, files: SessionFolder, entries_of_files: Callable[[Mapping[str, Values]], Iterable[SessionEntry]]
    ) -> None:
        self._files = files
        self._path = files.path / REGISTRY
        self._entries_of_files = entries_of_files

    def entries(self) -> dict[str, Values]:
        """Return the entries by session id; none if the registry is missing or corrupt."""
        try:
            listed = _listed(decode_json5(read_regular(self._path)))
        except (Json5Error, OSError):
            return {}
        return {_id_of(each): each for each in listed if isinstance(each, dict)}

    def put(self, entry: SessionEntry) -> None:
        """Add or change an entry."""
        self._set(entry.session_id, _values_of(entry))

    def remove(self, session_id: str) -> None:
        """Remove an entry."""
        self._set(session_id, None)

    def rebuild(self) -> int:
        """Write the registry from the session files; returns how many sessions it holds."""
        with self.locked():
            return self._write_all()

    def locked(self, timeout_s: float | None = None) -> AbstractContextManager[None]:
        """Hold the lock of the registry."""
        self._files.require()
        lock = self._files.path / ".locks" / ".registry.lock"
        return locked(lock, self._files.timeout_s if timeout_s is None else timeout_s, self._path.name)

    def _set(self, session_id: str, values: Values | None) -> None:
        """Set or remove the entry of a session; a missing or corrupt file is rebuilt."""
        with self.locked():
            try:
                text = decode_json5(read_regular(self._path))
                listed = _listed(text)
                ids = [_id_of(each) for each in listed]
                position = ids.index(session_id) if session_id in ids else None
                if position is not None and listed[position] != values:
                    changed = SESSIONS.with_element(text, position, values)
                elif position is None and values is not None:
                    changed = SESSIONS.with_new_elements(text, [values])
                else:
                    return
            except FileNotFoundError:
                self._write_all()
                return
            except Json5Error:
                self._files.set_aside(self._path)
                self._write_all()
                return
            replace_file(self._path, changed.encode())

    def _write_all(self) -> int:
        entries = sorted(self._entries_of_files(self.entries()), key=lambda each: (each.created_at, each.session_id))
        text = SESSIONS.new_text({"version": REGISTRY_VERSION}, [_values_of(entry) for entry in entries], {})
        replace_file(self._path, text.encode())
        return len(entries)


def _values_of(entry: SessionEntry) -> Values:
    """Return the registry's entry of a session."""
    values = {"sessionId": entry.session_id, "sessionFile": entry.session_file, **entry_to_json(entry)}
    flushed = values.get("memoryFlush")
    if isinstance(flushed, dict) and "text" in flushed:  # the registry holds nothing of what was said
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
