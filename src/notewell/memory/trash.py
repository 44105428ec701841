"""Keeps what was forgotten for 30 days, and restores it.

Each call of `forget` has a folder in the trash, named after its time and id, with one file for each note or
conversation that lost something. Notes are in the workspace's trash, conversations in their agent's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from notewell.errors import NO_SPACE, NoteNotFoundError, NotewellError, PathRefusedError, TrashError, system_error
from notewell.files.atomic import DRAFT_SUFFIX, write_atomically
from notewell.files.no_follow import read_below
from notewell.memory.note_files import index_notes, lines_move
from notewell.memory.note_lines import CutLines, put_lines_back
from notewell.reports import Forgotten, ForgottenLine, Trashed, UndoReport
from notewell.sources.notes import decode_note
from notewell.sources.privacy import is_private
from notewell.store.state_folder import StateFolder
from notewell.text.entries import find_entries
from notewell.types import Problem

if TYPE_CHECKING:
    from notewell.memory.components import Components
    from notewell.types import SourceName

KEPT_DAYS = 30
KEPT = timedelta(days=KEPT_DAYS)
MOST_NAMES = 100  # tried for a note whose name is taken
Kind = Literal["lines", "note", "session", "transcript"]

_ID_BYTES = 5  # 8 letters and digits, as the ids of entries have
_BATCH = re.compile(r"(\d{8}T\d{12}Z)-([a-z2-7]{8})")
_STAMP = "%Y%m%dT%H%M%S%fZ"


@dataclass(frozen=True, slots=True)
class TrashItem:
    """What one note or conversation lost."""

    kind: Kind
    path: str  # as it was stored and cited
    count: int  # lines or messages
    agent: str = ""
    chat: str = ""  # for whom the memory was open; see `Audience.label`
    dated: str = ""  # the day of a note
    cuts: tuple[CutLines, ...] = ()  # of `lines`
    before: str = ""  # hash of the note, with these lines and without
    after: str = ""
    session: str = ""
    messages: tuple[str, ...] = ()  # of a session: keys of those that went
    left: str = ""  # of a session: hash of what is left; empty: all of it went
    place: str = ""  # of a transcript: its path on disk
    contents: Mapping[str, str] = field(default_factory=dict)  # name -> file beside this one
    file: Path = Path()  # where this is kept; not written

    @property
    def source(self) -> SourceName:
        return "memory" if self.kind in {"lines", "note"} else "sessions"

    @property
    def whole(self) -> bool:
        return self.kind in {"note", "transcript"} or (self.kind == "session" and not self.left)

    @property
    def day(self) -> date | None:
        return date.fromisoformat(self.dated) if self.dated else None

    def content(self, name: str) -> bytes:
        """Return the content that was kept under this name."""
        return _bytes_of(self.file.with_name(self.contents[name]))


@dataclass(frozen=True, slots=True)
class Batch:
    """What one call of `forget` moved to the trash."""

    id: str
    forgotten_at: datetime
    items: tuple[TrashItem, ...]


@dataclass(frozen=True, slots=True)
class Trash:
    """The trash of a workspace and of one of its agents; a group sees only what it forgot itself."""

    notes_folder: Path
    sessions_folder: Path
    agent: str
    chat: str

    def open_batch(self) -> OpenBatch:
        """Return a new batch; nothing is written before its first item."""
        batch_id = base64.b32encode(os.urandom(_ID_BYTES)).decode().lower()
        return OpenBatch(self, batch_id, f"{datetime.now(UTC).strftime(_STAMP)}-{batch_id}")

    def batches(self) -> list[Batch]:
        """Return what can be restored, the newest first."""
        oldest = datetime.now(UTC) - KEPT
        found: dict[str, Batch] = {}
        for folder, when, batch_id in self._batch_folders():
            items = list(filter(self._shows, self._items(folder)))
            if items and when >= oldest:
                known = found.get(batch_id)
                found[batch_id] = Batch(batch_id, when, (*(known.items if known else ()), *items))
        return sorted(found.values(), key=lambda batch: (batch.forgotten_at, batch.id), reverse=True)

    def everything(self) -> list[TrashItem]:
        """Return every item of this audience, whether it can still be restored or not."""
        folders = (folder for folder, _, _ in self._batch_folders())
        return [item for folder in folders for item in self._items(folder) if self._shows(item)]

    def expired(self) -> list[Path]:
        """Return the folders that are older than 30 days, for every audience."""
        oldest = datetime.now(UTC) - KEPT
        return [folder for folder, when, _ in self._batch_folders() if when < oldest]

    def remove_debris(self) -> None:
        """Delete drafts and contents that killed processes left behind; the caller holds `notes_lock`."""
        for folder, _, _ in self._batch_folders():
            named = {name for item in self._items(folder) for name in (item.file.name, *item.contents.values())}
            with suppress(OSError):
                for path in folder.iterdir():
                    is_debris = path.name.endswith(DRAFT_SUFFIX) or path.suffix == ".content"
                    if is_debris and path.name not in named:
                        path.unlink(missing_ok=True)
                folder.rmdir()  # only where nothing is left

    def unreadable(self) -> Iterator[Path]:
        """Yield items that cannot be read."""
        for folder, _, _ in self._batch_folders():
            yield from (path for path in sorted(folder.glob("*.json")) if _read(path) is None)

    def write(self, item: TrashItem, contents: Mapping[str, bytes] | None = None) -> None:
        """Write or replace an item and its contents."""
        for name, data in (contents or {}).items():
            write_atomically(item.file.with_name(item.contents[name]), data, mode=0o600, faults="trash")
        values = {name: value for name, value in asdict(item).items() if name != "file"}
        write_atomically(item.file, json.dumps({"version": 1} | values), mode=0o600, faults="trash")

    def remove(self, item: TrashItem) -> None:
        """Erase an item."""
        item.file.unlink(missing_ok=True)
        for name in item.contents.values():
            item.file.with_name(name).unlink(missing_ok=True)
        with suppress(OSError):
            item.file.parent.rmdir()

    def _shows(self, item: TrashItem) -> bool:
        return not self.chat or item.chat == self.chat

    def _batch_folders(self) -> Iterator[tuple[Path, datetime, str]]:
        for top in (self.notes_folder, self.sessions_folder):
            try:
                names = sorted(os.listdir(top))  # noqa: PTH208 - strings are all that is needed
            except OSError:
                continue
            for name in names:
                if found := _BATCH.fullmatch(name):
                    with suppress(ValueError):
                        yield top / name, datetime.strptime(found[1], _STAMP).replace(tzinfo=UTC), found[2]

    @staticmethod
    def _items(folder: Path) -> list[TrashItem]:
        return [item for path in sorted(folder.glob("*.json")) if (item := _read(path))]


@dataclass(slots=True)
class OpenBatch:
    """Collects what one call of `forget` removes."""

    trash: Trash
    id: str
    name: str
    count: int = 0

    def put(self, item: TrashItem, contents: Mapping[str, bytes] | None = None) -> None:
        """Write an item to disk; raises TrashError on failure, with nothing left behind.

        Until `next` is called, another `put` replaces it.
        """
        top = self.trash.notes_folder if item.source == "memory" else self.trash.sessions_folder
        folder = top / self.name
        names = {name: f"{self.count:05}-{number}.content" for number, name in enumerate(contents or {})}
        item = replace(
            item, agent=self.trash.agent, chat=self.trash.chat, contents=names, file=folder / f"{self.count:05}.json"
        )
        try:
            StateFolder(top.parent).ensure()
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.trash.write(item, contents)
        except OSError as error:
            with suppress(OSError):
                self.trash.remove(item)
            why = "the disk is full" if error.errno in NO_SPACE else error.strerror or str(error)
            raise TrashError(
                f"the trash cannot be written, so {item.path} was not forgotten: {why}",
                hint=f"check the free space and the permissions of {top}, or erase it with --for-good",
            ) from error

    def next(self) -> None:
        """Finish the item; the next `put` starts another one."""
        self.count += 1


def open_trash(parts: Components) -> Trash:
    """Return the trash of a memory as its audience sees it."""
    return Trash(*parts.trash_folders, agent=parts.agent, chat=parts.audience.label)


def _read(path: Path) -> TrashItem | None:
    """Return an item; None if the file holds none that can be restored."""
    try:
        values: dict[str, Any] = json.loads(_bytes_of(path))
        del values["version"]
        cuts = tuple(CutLines(**{key: _frozen(value) for key, value in cut.items()}) for cut in values.pop("cuts"))
        messages = tuple(values.pop("messages"))
        contents = {str(name): os.path.basename(file) for name, file in values.pop("contents").items()}  # noqa: PTH119
        item = TrashItem(**values, cuts=cuts, messages=messages, contents=contents, file=path)
        return item if _is_whole(item) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _is_whole(item: TrashItem) -> bool:
    """Return whether all values have the right types; may raise what `_read` catches."""
    texts = (item.path, item.agent, item.chat, item.before, item.after, item.session, item.left, item.place)
    lines = (each for cut in item.cuts for each in (*cut.lines, *cut.instead, *cut.above, *cut.below))
    numbers = (item.count, *(cut.first_line for cut in item.cuts))
    return (
        item.kind in get_args(Kind)
        and all(isinstance(each, str) for each in (*texts, *item.messages, *lines))
        and all(isinstance(each, int) for each in numbers)
        and (item.day is None or item.kind in {"lines", "note"})
        and (item.kind != "note" or "content" in item.contents)
        and (item.kind != "transcript" or len(item.contents) == 1)
    )


def _bytes_of(path: Path) -> bytes:
    """Return the bytes of a file in the trash without following links: the workspace may come from somebody else."""
    return read_below(os.fspath(path.parent), (path.name,))[0]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# --- listing and restoring -----------------------------------------------------------------------


def trashed(parts: Components) -> tuple[Trashed, ...]:
    """Return what can be restored, the newest first."""
    return tuple(
        Trashed(batch.id, batch.forgotten_at, batch.forgotten_at + KEPT, tuple(map(shown_item, batch.items)))
        for batch in open_trash(parts).batches()
    )


def undo(parts: Components, batch_id: str | None = None) -> UndoReport:
    """Restore what one call of `forget` moved to the trash, the latest unless an id is given; see `Memory.undo`.

    What cannot be restored stays in the trash.
    """
    trash = open_trash(parts)
    batch = _chosen(trash.batches(), batch_id)
    restored: list[Forgotten] = []
    problems: list[Problem] = []
    notes: list[str] = []
    for item in batch.items:
        try:
            path = _restore(parts, item, notes)
        except NotewellError as error:
            problems.append(Problem(item.path, error.full_message))
            continue
        shown = shown_item(item)
        restored.append(Forgotten(path, shown.source, shown.whole, shown.count, shown.lines))
        trash.remove(item)
    if restored:
        notes += index_notes(parts, [each.path for each in restored], done="restored")
    return UndoReport(batch.id, tuple(restored), tuple(problems), tuple(notes))


def shown_item(item: TrashItem) -> Forgotten:
    """Return an item as it is shown."""
    lines = tuple(
        ForgottenLine(number, line.rstrip("\r\n"))
        for cut in item.cuts
        for number, line in enumerate(cut.lines, start=cut.first_line)
        if not cut.instead and line.strip() and not line.lstrip().startswith("<!-- notewell ")
    )
    return Forgotten(item.path, item.source, item.whole, item.count, lines)


def _chosen(batches: list[Batch], batch_id: str | None) -> Batch:
    if not batches:
        raise TrashError("the trash is empty: there is nothing to restore", hint=f"it is kept for {KEPT_DAYS} days")
    for batch in batches:
        if batch_id is None or batch.id == batch_id.strip().lower():
            return batch
    raise TrashError(
        f"the trash holds nothing under the id {str(batch_id)[:60]!r}",
        hint="`notewell undo --list` shows what can be restored",
    )


def _restore(parts: Components, item: TrashItem, notes: list[str]) -> str:
    """Restore one item and return its path."""
    try:
        if item.kind == "lines":
            return _restore_lines(parts, item, notes)
        if item.kind == "note":
            return _restore_note(parts, item, notes)
        if item.kind == "session":
            from notewell.sessions import LostPart

            files = {name: item.content(name) for name in item.contents}
            parts.conversations().put_back(LostPart(item.session, files, item.messages, item.left))
        else:
            _restore_transcript(parts, item)
    except OSError as error:
        raise system_error(error) from error
    return item.path


def _restore_lines(parts: Components, item: TrashItem, notes: list[str]) -> str:
    at_end = 0

    def change(raw: bytes, stored: str) -> bytes | None:
        nonlocal at_end
        if parts.audience.is_group and is_private(stored, decode_note(raw)):  # it became private in the meantime
            raise PathRefusedError(stored)
        now = hash_of(raw)
        if now == item.before or _holds_entries(raw, item):  # a killed process had restored it, or never cut it
            return None
        content, at_end = put_lines_back(raw, stored, item.cuts, unchanged=now == item.after)
        lines_move(parts, stored, min(cut.first_line for cut in item.cuts))
        return content

    try:
        stored = parts.note_files.change(item.path, change)
    except NoteNotFoundError:
        lines = "".join(line for cut in item.cuts for line in cut.lines)
        notes.append(f"{item.path} is gone: a new note holds the lines")
        content = lines.encode("utf-8", "surrogateescape")
        return parts.note_files.create(item.path, content)
    if at_end:
        notes.append(f"{stored} has changed: lines whose place is gone are at its end")
    return stored


def _holds_entries(raw: bytes, item: TrashItem) -> bool:
    """Return whether the entries that were cut are in the note."""
    cut = {entry.id for each in item.cuts for entry in find_entries("".join(each.lines)).entries}
    if not cut:
        return False
    return cut <= {entry.id for entry in find_entries(raw.decode("utf-8", "replace")).entries}


def _restore_note(parts: Components, item: TrashItem, notes: list[str]) -> str:
    content = item.content("content")
    for path in _free_names(item.path):
        try:
            stored = parts.note_files.create(path, content)
        except FileExistsError:
            if path == item.path and parts.notes.resolve(path).read_bytes() == content:
                return path  # a killed process had restored it, or never deleted it
            continue
        if stored != item.path:
            notes.append(f"{item.path} is taken by another note: it is restored as {stored}")
        return stored
    raise TrashError(f"{item.path} is taken by another note", hint="rename that note and try again")


def _free_names(path: str) -> Iterator[str]:
    yield path
    stem, dot, ending = path.rpartition(".")
    for number in range(1, MOST_NAMES):
        yield f"{stem}-restored{f'-{number}' if number > 1 else ''}{dot}{ending}"


def _restore_transcript(parts: Components, item: TrashItem) -> None:
    place = parts.transcripts.place_to_write(item.path) if parts.transcripts else None
    if place is None or place != Path(item.place):
        raise TrashError(
            f"{item.path} was in a folder that is not part of this memory now: {item.place}",
            hint="set sessions.paths to what it was then",
        )
    (content,) = (item.content(name) for name in item.contents)
    try:
        write_atomically(place, content, overwrite=False)
    except FileExistsError:
        if place.read_bytes() != content:
            raise TrashError(f"{place} exists again", hint="move that file away and try again") from None


def hash_of(data: bytes) -> str:
    """Return a hash of a note's content."""
    return hashlib.sha256(data).hexdigest()
