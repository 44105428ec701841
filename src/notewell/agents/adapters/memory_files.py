"""A command of Anthropic's memory tool in, notes of the workspace viewed or changed and the tool's answer out.

Changes are made under the lock that all processes share, replace files whole, and are indexed before the answer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from notewell.agents.adapters.memory_paths import TOP, MemoryPath, RefusedError, find, memory_path, note_to_write
from notewell.agents.adapters.memory_text import (
    inserted,
    line_view,
    replaced,
    size_text,
    writable_text,
)
from notewell.errors import NotewellError, QueryError
from notewell.memory.note_folder import NoteFolder, open_folder
from notewell.memory.note_writing import MOST_BYTES, MOST_TRIES, note_identity, notes_lock
from notewell.sources.note_paths import ROOT_FILES, is_markdown, is_skipped
from notewell.sources.opening import read_below
from notewell.sources.walking import is_link
from notewell.text.redaction import redact

if TYPE_CHECKING:
    from notewell.memory.memory import Memory

DEPTH = 2  # levels that a folder's listing shows, as the tool's description promises
NEW_MODE = 0o600  # as the SDK's own: memory is nobody else's business


class MemoryFiles:
    """The six commands on one memory. Raises RefusedError, in words for the model; several threads may use it."""

    def __init__(self, memory: Memory) -> None:
        if memory.audience.is_group:
            raise QueryError(
                "the memory tool shows and edits every note, so it is not for groups",
                hint="give a group's agent notewell.agents.tools.MemoryTools(memory) instead",
            )
        self.memory = memory
        self._base = os.path.realpath(memory.workspace)

    # --- reading ---------------------------------------------------------------------------------

    def view(self, path: object, view_range: Sequence[int] | None = None) -> str:
        """Return the listing of a folder, or a note's lines with their numbers."""
        place = memory_path(path)
        info = find(self._base, place)
        if info is None and not place.is_top:
            raise RefusedError(f"The path {place.asked} does not exist. Please provide a valid path.")
        if info is None or stat.S_ISDIR(info.st_mode):
            return self._listing(place, info)
        if not place.is_note:
            raise RefusedError(f"Unsupported file type for {place.asked}: memory files are Markdown (.md)")
        text = self._text_of(place)[0]
        if self.memory.settings.redaction.notes:
            text = redact(text).text
        return line_view(place.asked, text, view_range)

    def _listing(self, place: MemoryPath, info: os.stat_result | None) -> str:
        lines = [f"{size_text(info.st_size if info else 0)}\t{place.asked}"]
        found = list(self._entries(place.parts, "", 1))
        if place.is_top:
            found = sorted([*found, *self._root_files()], key=lambda each: each[1].split("/"))
        lines += [f"{size_text(size)}\t{place.asked}/{name}" for size, name in found]
        head = f"Here're the files and directories up to 2 levels deep in {place.asked}, excluding hidden items:"
        return "\n".join([head, *lines])

    def _entries(self, parts: tuple[str, ...], shown: str, depth: int) -> Iterator[tuple[int, str]]:
        for name, info in self._listed(parts):
            if stat.S_ISDIR(info.st_mode):
                yield info.st_size, f"{shown}{name}/"
                if depth < DEPTH:
                    yield from self._entries((*parts, name), f"{shown}{name}/", depth + 1)
            elif is_markdown(name) and not (len(parts) == 1 and name in ROOT_FILES):
                yield info.st_size, f"{shown}{name}"

    def _root_files(self) -> Iterator[tuple[int, str]]:
        listed = {name: info for name, info in self._listed(()) if stat.S_ISREG(info.st_mode)}
        for name in ROOT_FILES:
            if name in listed:
                yield listed[name].st_size, name

    def _listed(self, parts: tuple[str, ...]) -> list[tuple[str, os.stat_result]]:
        """Return what a folder holds, by name; hidden files, links and what is gone by now are left out."""
        found = []
        try:
            with os.scandir(os.path.join(self._base, *parts)) as entries:  # noqa: PTH118
                for entry in entries:
                    try:
                        info = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    if not is_skipped(entry.name) and not is_link(info):
                        found.append((entry.name, info))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RefusedError(f"{'/'.join(parts)} cannot be listed: {error.strerror}") from error
        return sorted(found, key=lambda each: each[0])

    # --- writing ---------------------------------------------------------------------------------

    def create(self, path: object, file_text: str) -> str:
        """Make a new note; one that is there already is left as it is."""
        place = note_to_write(memory_path(path))
        text, told = writable_text(file_text)
        with self._writing():
            if find(self._base, place) is not None:
                raise RefusedError(f"File {place.asked} already exists")
            with self._folder_of(place, create=True) as folder:
                folder.replace(place.parts[-1], text.encode(), NEW_MODE)
        return f"File created successfully at: {place.asked}{told}{self._indexed([place.stored])}"

    def str_replace(self, path: object, old_str: str, new_str: str) -> str:
        """Replace the only place where a note says `old_str`."""
        place = memory_path(path)
        text, told = writable_text(new_str)
        return self._edit(place, lambda content: replaced(content, old_str, text, place.asked), told)

    def insert(self, path: object, insert_line: int, insert_text: str) -> str:
        """Put text behind a line of a note; 0 is its beginning."""
        place = memory_path(path)
        text, told = writable_text(insert_text)
        return self._edit(place, lambda content: inserted(content, insert_line, text, place.asked), told)

    def delete(self, path: object) -> str:
        """Delete a note, or a folder that holds nothing but notes."""
        place = memory_path(path)
        if place.is_top:
            raise RefusedError(f"Cannot delete the {TOP} directory itself")
        with self._writing():
            info = find(self._base, place)
            if info is None:
                raise RefusedError(f"The path {place.asked} does not exist")
            notes, folders = ([place.parts], []) if stat.S_ISREG(info.st_mode) else self._whole_folder(place)
            if not all(is_markdown(parts[-1]) for parts in notes):
                raise RefusedError(f"Unsupported file type for {place.asked}: memory files are Markdown (.md)")
            for parts in notes:
                with open_folder(self._base, parts[:-1], create=False) as folder:
                    folder.remove(parts[-1])
                    folder.sync()
            for parts in reversed(folders):
                with open_folder(self._base, parts[:-1], create=False) as folder:
                    folder.remove_folder(parts[-1])
        return f"Successfully deleted {place.asked}{self._indexed('/'.join(parts) for parts in notes)}"

    def rename(self, old_path: object, new_path: object) -> str:
        """Move a note or a folder to a name that is free."""
        old, new = memory_path(old_path), memory_path(new_path)
        if old.is_top:
            raise RefusedError(f"Cannot rename the {TOP} directory itself")
        with self._writing():
            if find(self._base, new) is not None or new.is_top:
                raise RefusedError(f"The destination {new.asked} already exists")
            info = find(self._base, old)
            if info is None:
                raise RefusedError(f"The path {old.asked} does not exist")
            if stat.S_ISREG(info.st_mode):
                moved = [(note_to_write(old).stored, note_to_write(new).stored)]
            else:
                moved = self._moved_notes(old, new)
            with self._folder_of(old, create=False) as source, self._folder_of(new, create=True) as target:
                source.move(old.parts[-1], target, new.parts[-1])
        return (
            f"Successfully renamed {old.asked} to {new.asked}{self._indexed(path for pair in moved for path in pair)}"
        )

    # --- parts -----------------------------------------------------------------------------------

    def _edit(self, place: MemoryPath, change: Callable[[str], tuple[str, str]], told: str) -> str:
        """Give a note the content that `change` makes of its own, and return the answer that goes with it."""
        with self._writing():
            info = find(self._base, place)
            if info is None:
                raise RefusedError(f"The path {place.asked} does not exist. Please provide a valid path.")
            if not stat.S_ISREG(info.st_mode):
                raise RefusedError(f"The path {place.asked} is not a file.")
            note_to_write(place)
            with self._folder_of(place, create=False) as folder:
                for _ in range(MOST_TRIES):
                    content, read = self._text_of(place)
                    new_content, answer = change(content)
                    now = folder.stat(place.parts[-1])
                    if now is not None and note_identity(now) == note_identity(read):
                        folder.replace(place.parts[-1], new_content.encode(), stat.S_IMODE(now.st_mode))
                        return f"{answer}{told}{self._indexed([place.stored])}"
        raise RefusedError(f"{place.asked} is being edited by another program. Try again in a moment.")

    def _text_of(self, place: MemoryPath) -> tuple[str, os.stat_result]:
        try:
            raw, info = read_below(self._base, place.parts)
            if len(raw) > MOST_BYTES:
                raise RefusedError(f"{place.asked} is too large: {size_text(len(raw))}")
            return raw.decode(), info
        except FileNotFoundError as error:
            raise RefusedError(
                f"The file {place.asked} no longer exists (may have been deleted or renamed concurrently)."
            ) from error
        except UnicodeDecodeError as error:
            raise RefusedError(f"{place.asked} is not written in UTF-8: only a person can edit it") from error
        except OSError as error:
            raise RefusedError(f"{place.asked} cannot be read: {error.strerror}") from error

    def _whole_folder(self, place: MemoryPath) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
        """Return the notes and folders below a folder; raises RefusedError when it holds anything else."""
        notes: list[tuple[str, ...]] = []
        folders = [place.parts]
        for parts in folders:  # grows while it is walked
            with os.scandir(os.path.join(self._base, *parts)) as entries:  # noqa: PTH118
                for entry in sorted(entries, key=lambda each: each.name):
                    info = entry.stat(follow_symlinks=False)
                    inner = (*parts, entry.name)
                    if is_skipped(entry.name) or is_link(info):
                        raise _not_only_notes(place, inner)
                    if stat.S_ISDIR(info.st_mode):
                        folders.append(inner)
                    elif stat.S_ISREG(info.st_mode) and is_markdown(entry.name):
                        notes.append(inner)
                    else:
                        raise _not_only_notes(place, inner)
        return notes, folders

    def _moved_notes(self, old: MemoryPath, new: MemoryPath) -> list[tuple[str, str]]:
        if new.parts[: len(old.parts)] == old.parts:
            raise RefusedError(f"Cannot move {old.asked} into itself")
        if new.parts[0] in ROOT_FILES:
            raise RefusedError(f"{new.asked} is a file, and {old.asked} a directory")
        top = os.path.join(self._base, *old.parts)  # noqa: PTH118
        moved = []
        for folder, _, names in os.walk(top):
            below = os.path.relpath(folder, top).replace(os.sep, "/")
            inner = "" if below == "." else f"{below}/"
            moved += [
                (f"{old.stored}/{inner}{name}", f"{new.stored}/{inner}{name}") for name in names if is_markdown(name)
            ]
        return [pair for pair in moved if not any(map(is_skipped, pair[0].split("/")))]

    @contextmanager
    def _folder_of(self, place: MemoryPath, *, create: bool) -> Iterator[NoteFolder]:
        """Yield the folder that holds a file; what the system refuses is said in words for the model."""
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(open_folder(self._base, place.parts[:-1], create=create))
            except NotADirectoryError as error:
                raise RefusedError(f"The path {place.asked} lies below a file, not a directory.") from error
            except OSError as error:
                raise RefusedError(f"{place.asked} cannot be reached: {error.strerror}") from error
            folder.remove_drafts()
            yield folder

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Be the only writer of notes; what the system or another process refuses is said in words for the model."""
        with ExitStack() as stack:
            try:
                stack.enter_context(notes_lock(self.memory.workspace))
            except NotewellError as error:
                raise RefusedError(f"{error.message}; {error.hint}") from error
            try:
                yield
            except OSError as error:
                raise RefusedError(f"The change was refused by the system: {error.strerror or error}") from error

    def _indexed(self, paths: Sequence[str] | Iterator[str]) -> str:
        """Bring what changed into the index; the change is made, so what keeps it from being found is only told."""
        changed = list(paths)
        try:
            report = self.memory.sync(paths=changed) if changed else None
        except NotewellError as error:
            return f"\nNote: it cannot be found by search yet: {error.message}; {error.hint}"
        problems = [f"{each.path}: {each.reason}" for each in report.problems] if report else []
        return "".join(f"\nNote: {problem}" for problem in problems)


def _not_only_notes(place: MemoryPath, inner: tuple[str, ...]) -> RefusedError:
    return RefusedError(
        f"The directory {place.asked} holds something that is no note ({'/'.join(inner[1:])}); "
        "delete its notes one by one"
    )
