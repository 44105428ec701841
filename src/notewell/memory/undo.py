"""Restores what was forgotten from the trash, and erases what has been there for 30 days."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import (
    IndexBusyError,
    NoteNotFoundError,
    NotewellError,
    PathRefusedError,
    TrashError,
    system_error,
)
from notewell.files.atomic import write_atomically
from notewell.indexing.sync import BACKGROUND
from notewell.memory.moved_lines import MovedLines
from notewell.memory.note_lines import put_lines_back
from notewell.memory.note_writing import change_note, create_note
from notewell.memory.traces import erase_for_other_agents, erase_traces
from notewell.memory.trash import KEPT_DAYS, Batch, TrashItem, open_trash
from notewell.reports import Forgotten, ForgottenLine, Trashed, UndoReport
from notewell.sources.notes import decode_note
from notewell.sources.privacy import is_private
from notewell.text.entries import find_entries
from notewell.types import Problem

if TYPE_CHECKING:
    from notewell.memory.components import Components

MOST_NAMES = 100  # that are tried for a note whose name is taken


def trashed(parts: Components) -> tuple[Trashed, ...]:
    """Return what can be restored, the newest first."""
    return tuple(
        Trashed(batch.id, batch.forgotten_at, batch.kept_until, tuple(map(shown_item, batch.items)))
        for batch in open_trash(parts).batches()
    )


def undo(parts: Components, batch_id: str | None = None) -> UndoReport:
    """Restore what one call of `forget` moved to the trash, the latest unless an id is given.

    Nothing that is there now is overwritten: lines come back where they were, or at the end of a note that has changed
    too much, and a note whose name is taken comes back under another one. What cannot be restored stays in the trash.
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
            problems.append(Problem(item.path, f"{error.message}; {error.hint}".rstrip("; ")))
            continue
        shown = shown_item(item)
        restored.append(Forgotten(path, shown.source, shown.whole, shown.count, shown.lines))
        trash.remove(item)
    if restored:
        notes += _indexed(parts, [each.path for each in restored])
    return UndoReport(batch.id, tuple(restored), tuple(problems), tuple(notes))


def erase_expired(parts: Components) -> None:
    """Erase what has been in the trash for 30 days, with its traces.

    The files go last: whatever happens on the way, the next call does it again. While another process indexes, it is
    left to a later call.
    """
    trash = open_trash(parts.whole)
    if not trash.has_expired():
        return
    try:
        erase_traces(parts.whole)
        erase_for_other_agents(parts.whole)
    except IndexBusyError:
        return
    trash.erase_expired()


def shown_item(item: TrashItem) -> Forgotten:
    """Return what an item of the trash holds."""
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
    found = batches[:1] if batch_id is None else [batch for batch in batches if batch.id == batch_id.strip().lower()]
    if not found:
        raise TrashError(
            f"the trash holds nothing under the id {batch_id[:60]!r}" if batch_id else "the trash is empty",
            hint="`notewell undo --list` shows what can be restored",
        )
    return found[0]


# --- restoring -----------------------------------------------------------------------------------


def _restore(parts: Components, item: TrashItem, notes: list[str]) -> str:
    """Restore one item and return the path that it has now."""
    try:
        if item.kind == "lines":
            return _restore_lines(parts, item, notes)
        if item.kind == "note":
            return _restore_note(parts, item, notes)
        if item.kind == "session":
            _restore_session(parts, item)
        else:
            _restore_transcript(parts, item)
    except OSError as error:
        raise system_error(error) from error
    return item.path


def _restore_lines(parts: Components, item: TrashItem, notes: list[str]) -> str:
    extra, include = parts.settings.extra_paths, parts.settings.include
    at_end = 0

    def change(raw: bytes, stored: str) -> bytes | None:
        nonlocal at_end
        if parts.audience.is_group and is_private(stored, decode_note(raw)):  # since the group forgot the lines
            raise PathRefusedError(stored)
        now = _hash(raw)
        if now == item.before or _holds_entries(raw, item):  # a killed process had restored it, or never cut it
            return None
        content, at_end = put_lines_back(raw, stored, item.cuts, unchanged=now == item.after)
        MovedLines(parts).add(stored, min(cut.first_line for cut in item.cuts))
        return content

    try:
        stored = change_note(parts.workspace, item.path, change, extra_paths=extra, include=include)
    except NoteNotFoundError:
        lines = "".join(line for cut in item.cuts for line in cut.lines)
        notes.append(f"{item.path} is gone: a new note holds the lines")
        content = lines.encode("utf-8", "surrogateescape")
        return create_note(parts.workspace, item.path, content, extra_paths=extra, include=include)
    if at_end:
        notes.append(f"{stored} has changed: lines whose place is gone are at its end")
    return stored


def _holds_entries(raw: bytes, item: TrashItem) -> bool:
    """Say whether the entries that were cut are in the note."""
    cut = {entry.id for each in item.cuts for entry in find_entries("".join(each.lines)).entries}
    if not cut:
        return False
    return cut <= {entry.id for entry in find_entries(raw.decode("utf-8", "replace")).entries}


def _restore_note(parts: Components, item: TrashItem, notes: list[str]) -> str:
    extra, include = parts.settings.extra_paths, parts.settings.include
    content = item.content("content")
    for path in _free_names(item.path):
        try:
            stored = create_note(parts.workspace, path, content, extra_paths=extra, include=include)
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


def _restore_session(parts: Components, item: TrashItem) -> None:
    from notewell.sessions import LostPart

    files = {name: item.content(name) for name in item.contents}
    parts.conversations().put_back(LostPart(item.session, files, item.messages, item.left))


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
            raise TrashError(f"{place} is there again", hint="move that file away and try again") from None


def _indexed(parts: Components, paths: list[str]) -> tuple[str, ...]:
    """Index what is back; a failure is only noted, since the files are there."""
    from dataclasses import replace

    try:
        parts.sync.run(replace(BACKGROUND, paths=paths))
    except NotewellError as error:
        return (f"it is restored, but not indexed yet: {error.message}; {error.hint}",)
    return ()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
