"""Where a store's files are: a session's id comes in, its file, lock and journal go out; also moves and removes them.

registry.json5
chats/<id>.json5           direct conversations
groups/<id>.json5          conversations that others read, too
archive/chats, archive/groups
compacted/<id>.<n>.jsonl   messages that a summary took the place of
damaged/                   files that could not be read, kept as they were
.locks, .journal           nothing to keep
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from notewell.errors import ConversationError, SessionInputError
from notewell.files.atomic import sync_folder
from notewell.sessions.array_file import ArrayFile
from notewell.sessions.files import locked, move, replace_file
from notewell.sessions.ids import FOLDERS, SessionKind, checked_id
from notewell.sessions.session_file import MESSAGES, SessionFile

SUFFIX = ".json5"
STATE_FOLDER = ".notewell"  # in a workspace
_ARCHIVE = "archive/"


@dataclass(frozen=True, slots=True)
class Places:
    """The folder of a store."""

    folder: Path
    timeout_s: float

    def ensure(self) -> None:
        """Make the folder; conversations are nobody else's business, so only its owner may enter it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except (FileExistsError, NotADirectoryError) as error:
            raise ConversationError(
                f"{self.folder} cannot be made: a file is in the way", hint="move that file away"
            ) from error
        top = next((folder for folder in self.folder.parents if folder.name == STATE_FOLDER), None)
        if top is not None and not (top / ".gitignore").exists():  # conversations must not end up in a commit
            (top / ".gitignore").write_text("*\n", encoding="utf-8")

    def locked(self, session_id: str) -> AbstractContextManager[None]:
        """Be the only writer of a session."""
        self.ensure()
        return locked(self._lock(session_id), self.timeout_s, f"session {session_id!r}")

    def flushing(self, session_id: str) -> AbstractContextManager[None]:
        """Be the only one that flushes a session."""
        lock = self.folder / ".locks" / f"{session_id}.flush.lock"
        return locked(lock, self.timeout_s, f"the notes of session {session_id!r}")

    def new(self, session_id: str, kind: SessionKind) -> SessionFile:
        """Return the file of a session that is not archived, whether it exists or not."""
        return self._file(session_id, kind, f"{FOLDERS[kind]}/{session_id}{SUFFIX}")

    def find(self, session_id: str) -> SessionFile | None:
        """Return the file of a session that exists."""
        return next((file for file in self._all(session_id) if file.file.exists()), None)

    def sessions(self, *, archived: bool) -> Iterator[SessionFile]:
        """Yield the file of every session, in the order of their ids; files with other names are not ours."""
        for kind, name in FOLDERS.items():
            place = f"{_ARCHIVE if archived else ''}{name}"
            for path in _children(self.folder / place, SUFFIX):
                with suppress(SessionInputError):
                    file = self._file(checked_id(path.stem), kind, f"{place}/{path.name}")
                    if file.session_id == path.stem and file.file.exists():
                        yield file

    def is_archived(self, file: SessionFile) -> bool:
        """Say whether the file lies in the archive."""
        return file.place.startswith(_ARCHIVE)

    def move(self, file: SessionFile, *, archived: bool) -> SessionFile:
        """Put a file into the archive, or back, and return it there."""
        place = f"{_ARCHIVE if archived else ''}{file.place.removeprefix(_ARCHIVE)}"
        moved = self._file(file.session_id, file.kind, place)
        move(file.file.path, moved.file.path)
        return moved

    def compacted_path(self, session_id: str) -> Path:
        """Return a name for messages that are about to be compacted, after all those before."""
        taken = [int(path.name.split(".")[1]) for path in self._compacted(session_id)]
        return self.folder / "compacted" / f"{session_id}.{max(taken, default=0) + 1:04}.jsonl"

    def set_aside(self, path: Path) -> Path:
        """Keep a damaged file under another name; returns that name."""
        kept = self._damaged_path(path.name)
        move(path, kept)
        return kept

    def keep_copy(self, path: Path, data: bytes) -> Path:
        """Keep the bytes of a damaged file; returns where."""
        kept = self._damaged_path(path.name)
        replace_file(kept, data)
        return kept

    def files_of(self, session_id: str) -> list[Path]:
        """Return every file that holds something of a session, drafts of a process that was killed included."""
        own = [file.file.path for file in self._all(session_id) if file.file.exists()]
        drafts = [
            path
            for folder in {file.file.path.parent for file in self._all(session_id)}
            for path in _children(folder, ".tmp")
            if path.name.startswith(f".{session_id}{SUFFIX}.")
        ]
        damaged = [
            path for path in _children(self.folder / "damaged") if path.name.startswith(f"{session_id}{SUFFIX}.")
        ]
        journal = [path for path in [self._journal(session_id)] if path.exists()]
        return [*own, *sorted(drafts), *self._compacted(session_id), *damaged, *journal]

    def remove(self, files: Iterable[Path]) -> None:
        """Delete files so that they stay deleted."""
        folders = set()
        for path in files:
            path.unlink(missing_ok=True)
            folders.add(path.parent)
        for folder in folders:
            sync_folder(folder)

    def _all(self, session_id: str) -> list[SessionFile]:
        return [
            self._file(session_id, kind, f"{top}{name}/{session_id}{SUFFIX}")
            for top in ("", _ARCHIVE)
            for kind, name in FOLDERS.items()
        ]

    def _file(self, session_id: str, kind: SessionKind, place: str) -> SessionFile:
        path, lock, journal = self.folder / place, self._lock(session_id), self._journal(session_id)
        return SessionFile(ArrayFile(path, MESSAGES, lock, journal, self.timeout_s), session_id, kind, place)

    def _compacted(self, session_id: str) -> list[Path]:
        name = re.compile(re.escape(session_id) + r"\.\d+\.jsonl")
        return [path for path in _children(self.folder / "compacted", ".jsonl") if name.fullmatch(path.name)]

    def _damaged_path(self, name: str) -> Path:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        return self.folder / "damaged" / f"{name}.damaged-{stamp}"

    def _lock(self, session_id: str) -> Path:
        return self.folder / ".locks" / f"{session_id}.lock"

    def _journal(self, session_id: str) -> Path:
        return self.folder / ".journal" / session_id


def _children(folder: Path, suffix: str = "") -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.name.endswith(suffix))
    except (FileNotFoundError, NotADirectoryError):
        return []
