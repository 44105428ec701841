"""Runs the six commands of Anthropic's memory tool on the notes of a workspace.

`/memories` is the workspace's folder `memory/`, and `/memories/MEMORY.md` is the `MEMORY.md` next to it. A change takes
the lock that all processes share, replaces whole files, and is indexed before the answer. Answers are worded like those
of the SDK's own tool.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notewell.agents.adapters.shared import index_written
from notewell.errors import NotewellError, QueryError
from notewell.files.no_follow import is_link, read_below
from notewell.memory.note_files import MOST_TRIES, NoteFolder, note_identity, notes_lock, open_folder
from notewell.sources.notes import LARGEST_NOTE_BYTES
from notewell.sources.walk import (
    ROOT_FILES,
    ROOT_FOLDER,
    is_disguised,
    is_markdown,
    is_skipped,
    is_text,
    means_else_on_windows,
)
from notewell.text.fences import strip_fenced
from notewell.text.redaction import redact
from notewell.types import Citation

if TYPE_CHECKING:
    from notewell.memory.memory import Memory

TOP = "/memories"
MAX_PATH = 1024  # characters; file systems stop at 255 per part and 1,024 to 4,096 in all
MAX_LINES = 999_999  # as in the SDK's own tool, whose line numbers are six digits wide
NUMBER_WIDTH = len(str(MAX_LINES))
MAX_OCCURRENCES = 50  # listed when a text to replace is not unique
LISTED_LEVELS = 2  # of a folder, as the tool's description promises
NEW_MODE = 0o600  # as in the SDK's own tool: memory is private


class RefusedError(Exception):
    """A command was refused; the message is for the model."""


@dataclass(frozen=True, slots=True)
class MemoryPath:
    """A path as the model wrote it, and its place in the workspace."""

    asked: str  # without a slash at the end
    parts: tuple[str, ...]

    @property
    def stored(self) -> str:
        """The path as notewell stores and cites it."""
        return "/".join(self.parts)

    @property
    def is_top(self) -> bool:
        return self.parts == (ROOT_FOLDER,)

    @property
    def is_note(self) -> bool:
        """Whether a note may have this name."""
        return len(self.parts) > 1 - (self.parts[0] in ROOT_FILES) and is_markdown(self.parts[-1])

    @classmethod
    def parse(cls, path: object) -> MemoryPath:
        """Parse a path; raises RefusedError for anything that is not plainly below `/memories`."""
        if not isinstance(path, str):
            raise RefusedError(f"A path must be text such as {TOP}/people.md, got: {path!r}")
        asked = path.rstrip("/") if path.startswith(f"{TOP}/") else path
        if asked != TOP and not asked.startswith(f"{TOP}/"):
            raise RefusedError(f"Path must start with {TOP}, got: {path[:MAX_PATH]}")
        below = asked.removeprefix(TOP).removeprefix("/")
        parts = tuple(below.split("/")) if below else ()
        if (
            len(path) > MAX_PATH
            or "\0" in path
            or not is_text(path)
            or not {"", ".", ".."}.isdisjoint(parts)
            or any(map(is_skipped, parts))
            or (os.name == "nt" and any(map(means_else_on_windows, parts)))
        ):
            raise _not_below_top(path)
        return cls(asked, parts if len(parts) == 1 and parts[0] in ROOT_FILES else (ROOT_FOLDER, *parts))


class MemoryCommands:
    """The commands on one memory. Raises RefusedError; safe to use from several threads."""

    def __init__(self, memory: Memory) -> None:
        if memory.audience.is_group:
            raise QueryError(
                "the memory tool shows and edits every note, so it is not for groups",
                hint="give a group's agent notewell.agents.tools.MemoryTools(memory) instead",
            )
        self.memory = memory
        self._base = os.path.realpath(memory.workspace)

    # --- the commands ----------------------------------------------------------------------------

    def view(self, path: object, view_range: Sequence[int] | None = None) -> str:
        """Return a folder's listing, or a note's lines with their numbers."""
        if isinstance(path, str) and (cited := Citation.parse(path)).first_line is not None:
            path, view_range = cited.path, view_range or [cited.first_line, cited.last_line or cited.first_line]
        place = MemoryPath.parse(path)
        info = self._find(place)
        if info is None and not place.is_top:
            raise RefusedError(f"The path {place.asked} does not exist. Please provide a valid path.")
        if info is None or stat.S_ISDIR(info.st_mode):
            return self._listing(place, info)
        if not place.is_note:
            raise RefusedError(f"Unsupported file type for {place.asked}: memory files are Markdown (.md)")
        text = self._read(place)[0]
        if self.memory.settings.redaction.notes:
            text = redact(text).text
        return _line_view(place.asked, text, view_range)

    def create(self, path: object, file_text: str) -> str:
        """Create a note; an existing one is refused."""
        place = _checked_note(MemoryPath.parse(path))
        text, told = _cleaned(file_text)
        with self._writing():
            if self._find(place) is not None:
                raise RefusedError(f"File {place.asked} already exists")
            with self._folder_of(place, create=True) as folder:
                folder.replace(place.parts[-1], text.encode(), NEW_MODE)
        return f"File created successfully at: {place.asked}{told}{self._indexed([place.stored])}"

    def str_replace(self, path: object, old_str: str, new_str: str) -> str:
        """Replace the only occurrence of `old_str` in a note."""
        place = MemoryPath.parse(path)
        text, told = _cleaned(new_str)
        return self._edit(place, lambda content: _replaced(content, old_str, text, place.asked), told)

    def insert(self, path: object, insert_line: int, insert_text: str) -> str:
        """Insert text after a line of a note; 0 is the beginning."""
        place = MemoryPath.parse(path)
        text, told = _cleaned(insert_text)
        return self._edit(place, lambda content: _inserted(content, insert_line, text, place.asked), told)

    def delete(self, path: object) -> str:
        """Delete a note, or a folder that contains only notes."""
        place = MemoryPath.parse(path)
        if place.is_top:
            raise RefusedError(f"Cannot delete the {TOP} directory itself")
        with self._writing():
            info = self._find(place)
            if info is None:
                raise RefusedError(f"The path {place.asked} does not exist")
            notes, folders = ([place.parts], []) if stat.S_ISREG(info.st_mode) else self._contents(place)
            if not all(is_markdown(parts[-1]) for parts in notes):
                raise RefusedError(f"Unsupported file type for {place.asked}: memory files are Markdown (.md)")
            for parts in notes:
                with open_folder(self._base, parts[:-1], create=False) as folder:
                    folder.remove(parts[-1])
                    folder.sync()
            for parts in reversed(folders):
                with open_folder(self._base, parts[:-1], create=False) as folder:
                    folder.remove_folder(parts[-1])
        return f"Successfully deleted {place.asked}{self._indexed(['/'.join(parts) for parts in notes])}"

    def rename(self, old_path: object, new_path: object) -> str:
        """Move a note or a folder to a name that is free."""
        old, new = MemoryPath.parse(old_path), MemoryPath.parse(new_path)
        if old.is_top:
            raise RefusedError(f"Cannot rename the {TOP} directory itself")
        with self._writing():
            if self._find(new) is not None or new.is_top:
                raise RefusedError(f"The destination {new.asked} already exists")
            info = self._find(old)
            if info is None:
                raise RefusedError(f"The path {old.asked} does not exist")
            if stat.S_ISREG(info.st_mode):
                changed = [_checked_note(old).stored, _checked_note(new).stored]
            else:
                changed = self._notes_to_move(old, new)
            with self._folder_of(old, create=False) as source, self._folder_of(new, create=True) as target:
                source.move(old.parts[-1], target, new.parts[-1])
        return f"Successfully renamed {old.asked} to {new.asked}{self._indexed(changed)}"

    # --- reading ---------------------------------------------------------------------------------

    def _find(self, place: MemoryPath) -> os.stat_result | None:
        """Return the lstat result of a file or folder, None if it does not exist; raises RefusedError for links.

        A name that could mean another path is refused, unless such a file exists.
        """
        where = self._base
        try:
            for part in place.parts:
                where = os.path.join(where, part)  # noqa: PTH118
                info = os.lstat(where)
                if is_link(info):
                    raise _not_below_top(place.asked)
        except (FileNotFoundError, NotADirectoryError):
            if is_disguised(place.stored):
                raise _not_below_top(place.asked) from None
            return None
        except OSError as error:
            raise RefusedError(f"{place.asked} cannot be read: {error.strerror}") from error
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
            raise RefusedError(f"Unsupported file type for {place.asked}")
        return info

    def _read(self, place: MemoryPath) -> tuple[str, os.stat_result]:
        try:
            raw, info = read_below(self._base, place.parts, most_bytes=LARGEST_NOTE_BYTES)
            return raw.decode(), info
        except FileNotFoundError as error:
            raise RefusedError(
                f"The file {place.asked} no longer exists (may have been deleted or renamed concurrently)."
            ) from error
        except UnicodeDecodeError as error:
            raise RefusedError(f"{place.asked} is not valid UTF-8: only a person can edit it") from error
        except OSError as error:
            raise RefusedError(f"{place.asked} cannot be read: {error.strerror}") from error

    def _listing(self, place: MemoryPath, info: os.stat_result | None) -> str:
        found: list[tuple[str, os.stat_result]] = []
        for parts, each in self._walk(place.parts, levels=LISTED_LEVELS):
            name = "/".join(parts[len(place.parts) :])
            if stat.S_ISDIR(each.st_mode):
                found.append((f"{name}/", each))
            elif is_markdown(name) and not (place.is_top and name in ROOT_FILES):
                found.append((name, each))
        if place.is_top:
            at_root = [(name, each) for name, each in self._scan(()) if name in ROOT_FILES]
            found += [(name, each) for name, each in at_root if stat.S_ISREG(each.st_mode)]
            found.sort(key=lambda each: each[0].split("/"))
        return "\n".join(
            [
                f"Here're the files and directories up to 2 levels deep in {place.asked}, excluding hidden items:",
                f"{_size(info.st_size if info else 0)}\t{place.asked}",
                *(f"{_size(each.st_size)}\t{place.asked}/{name}" for name, each in found),
            ]
        )

    def _walk(
        self, top: tuple[str, ...], *, levels: int = -1, everything: bool = False
    ) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
        """Yield everything below a folder, each folder before its contents; see `_scan`."""
        for name, info in self._scan(top, everything=everything):
            yield (*top, name), info
            if levels != 1 and stat.S_ISDIR(info.st_mode):
                yield from self._walk((*top, name), levels=levels - 1, everything=everything)

    def _scan(self, parts: tuple[str, ...], *, everything: bool = False) -> list[tuple[str, os.stat_result]]:
        """Return the contents of a folder by name; hidden files and links only with `everything`."""
        found = []
        try:
            with os.scandir(os.path.join(self._base, *parts)) as entries:  # noqa: PTH118
                for entry in entries:
                    try:
                        info = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    if everything or not (is_skipped(entry.name) or is_link(info)):
                        found.append((entry.name, info))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RefusedError(f"{'/'.join(parts)} cannot be listed: {error.strerror}") from error
        return sorted(found, key=lambda each: each[0])

    def _contents(self, place: MemoryPath) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
        """Return the notes and folders below a folder; raises RefusedError if it contains anything else."""
        notes: list[tuple[str, ...]] = []
        folders = [place.parts]
        for parts, info in self._walk(place.parts, everything=True):
            is_folder = stat.S_ISDIR(info.st_mode)
            is_note = stat.S_ISREG(info.st_mode) and is_markdown(parts[-1])
            if is_skipped(parts[-1]) or is_link(info) or not (is_folder or is_note):
                raise RefusedError(
                    f"The directory {place.asked} contains something that is not a note "
                    f"({'/'.join(parts[1:])}); delete its notes one by one"
                )
            (folders if is_folder else notes).append(parts)
        return notes, folders

    def _notes_to_move(self, old: MemoryPath, new: MemoryPath) -> list[str]:
        """Return the old and new stored paths of all notes below a folder."""
        if new.parts[: len(old.parts)] == old.parts:
            raise RefusedError(f"Cannot move {old.asked} into itself")
        if new.parts[0] in ROOT_FILES:
            raise RefusedError(f"{new.asked} is a file, and {old.asked} a directory")
        files = [parts for parts, info in self._walk(old.parts) if stat.S_ISREG(info.st_mode)]
        notes = [parts for parts in files if is_markdown(parts[-1])]
        return ["/".join((*place.parts, *parts[len(old.parts) :])) for parts in notes for place in (old, new)]

    # --- writing ---------------------------------------------------------------------------------

    def _edit(self, place: MemoryPath, change: Callable[[str], tuple[str, str]], told: str) -> str:
        """Replace a note's content with that returned by `change`, and return its answer."""
        with self._writing():
            info = self._find(place)
            if info is None:
                raise RefusedError(f"The path {place.asked} does not exist. Please provide a valid path.")
            if not stat.S_ISREG(info.st_mode):
                raise RefusedError(f"The path {place.asked} is not a file.")
            _checked_note(place)
            with self._folder_of(place, create=False) as folder:
                for _ in range(MOST_TRIES):
                    content, read = self._read(place)
                    new_content, answer = change(content)
                    now = folder.stat(place.parts[-1])
                    if now is not None and note_identity(now) == note_identity(read):
                        folder.replace(place.parts[-1], new_content.encode(), stat.S_IMODE(now.st_mode))
                        return f"{answer}{told}{self._indexed([place.stored])}"
        raise RefusedError(f"{place.asked} is being edited by another program. Try again in a moment.")

    @contextmanager
    def _folder_of(self, place: MemoryPath, *, create: bool) -> Iterator[NoteFolder]:
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
        """Hold the lock on the notes, and turn errors of the lock and the system into refusals."""
        with ExitStack() as stack:
            try:
                stack.enter_context(notes_lock(self.memory.workspace))
            except NotewellError as error:
                raise RefusedError(f"{error.message}; {error.hint}") from error
            try:
                yield
            except OSError as error:
                raise RefusedError(f"The system refused the change: {error.strerror or error}") from error

    def _indexed(self, paths: Collection[str]) -> str:
        return "".join(f"\nNote: {problem}" for problem in index_written(self.memory, paths))


# --- paths ---------------------------------------------------------------------------------------


def _checked_note(place: MemoryPath) -> MemoryPath:
    """Return the path if it can be a note; only Markdown may be written."""
    if not place.is_note:
        name = place.asked.rpartition("/")[2]
        better = f"{place.asked.removesuffix('.txt')}.md" if place.asked != TOP else f"{TOP}/notes.md"
        raise RefusedError(f"Memory files are Markdown: {name!r} does not end in .md. Use a path such as {better}")
    return place


def _not_below_top(path: str) -> RefusedError:
    shown = path if len(path) <= 200 else f"{path[:200]}..."
    return RefusedError(f"Path {shown} is not a path below {TOP}. Use plain names such as {TOP}/projects/queue.md")


# --- text ----------------------------------------------------------------------------------------


def _cleaned(text: object) -> tuple[str, str]:
    """Return the text without secrets, recalled memory and NUL, and notes for the model about that."""
    if not isinstance(text, str):
        raise RefusedError(f"The text must be given as a string, got: {type(text).__name__}")
    own = strip_fenced(text)
    cleaned = redact(own.replace("\0", "").encode("utf-8", "replace").decode())
    told = "" if own == text else "\nNote: recalled memory was left out."
    if cleaned.found:
        told += f"\nNote: secrets were redacted: {', '.join(dict.fromkeys(found.kind for found in cleaned.found))}."
    return cleaned.text, told


def _line_view(path: str, text: str, view_range: Sequence[int] | None) -> str:
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise RefusedError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range:
        if len(view_range) != 2 or not all(isinstance(number, int) for number in view_range):
            raise RefusedError(f"Invalid `view_range` parameter: {view_range}. It should be [first_line, last_line].")
        first = max(1, view_range[0])
        last = len(lines) if view_range[1] == -1 else min(view_range[1], len(lines))
        if first > last:
            raise RefusedError(
                f"Invalid `view_range` parameter: {list(view_range)}. {path} has lines 1 to {len(lines)}."
            )
    return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first, last)}"


def _replaced(content: str, old: object, new: str, path: str) -> tuple[str, str]:
    """Return the content with its only `old` replaced, and the answer with the lines around it."""
    if not isinstance(old, str) or not old:
        raise RefusedError("No replacement was performed, `old_str` is empty. Give the text to replace.")
    count = content.count(old)
    if count == 0:
        raise RefusedError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if count > 1:
        raise RefusedError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{_lines_with(content, old)}. Please ensure it is unique"
        )
    at = content.index(old)
    changed = content[:at] + new + content[at + len(old) :]
    line = content.count("\n", 0, at) + 1
    lines = changed.split("\n")
    around = _numbered(lines, max(1, line - 2), min(len(lines), line + 2))
    answer = f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{around}"
    return changed, answer


def _inserted(content: str, after: object, text: str, path: str) -> tuple[str, str]:
    """Return the content with text inserted after a line, and the answer."""
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not isinstance(after, int) or isinstance(after, bool) or not 0 <= after <= len(lines):
        raise RefusedError(
            f"Invalid `insert_line` parameter: {after}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(after, text.rstrip("\n"))
    changed = "\n".join(lines)
    return changed if changed.endswith("\n") else f"{changed}\n", f"The file {path} has been edited."


def _size(size: int) -> str:
    """Return a size in bytes as the SDK's tool shows it: 0B, 812B, 1.5K, 2M."""
    if size == 0:
        return "0B"
    power = min((size.bit_length() - 1) // 10, 3)
    scaled = size / 1024**power
    return f"{int(scaled) if scaled == int(scaled) else f'{scaled:.1f}'}{'BKMG'[power]}"


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>{NUMBER_WIDTH}}\t{lines[number - 1]}" for number in range(first, last + 1))


def _lines_with(content: str, old: str) -> str:
    shown: list[str] = []
    at, line = -1, 1
    while len(shown) <= MAX_OCCURRENCES:
        found = content.find(old, at + 1)
        if found < 0:
            return ", ".join(shown)
        line += content.count("\n", max(at, 0), found)
        shown.append(str(line))
        at = found
    return f"{', '.join(shown[:MAX_OCCURRENCES])} and more"
