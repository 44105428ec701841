"""A path below `/memories` as a model writes it in, the parts of a file or folder of the workspace out, or a refusal.

`/memories` is the workspace's folder `memory/`; `/memories/MEMORY.md` is the `MEMORY.md` beside that folder.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from notewell.files.no_follow import is_link
from notewell.sources.note_paths import (
    ROOT_FILES,
    ROOT_FOLDER,
    is_disguised,
    is_markdown,
    is_skipped,
    is_text,
    means_else_on_windows,
)

TOP = "/memories"
LONGEST_PATH = 1024  # characters; file systems end at 255 a part and 1,024 to 4,096 in all


class RefusedError(Exception):
    """What a memory command was refused for, in words for the model; the adapter makes its own error of it."""


@dataclass(frozen=True, slots=True)
class MemoryPath:
    """One path as the model wrote it, and where that lies below the workspace."""

    asked: str  # without a slash at its end
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
        """Whether the name is one of a note."""
        return len(self.parts) > 1 - (self.parts[0] in ROOT_FILES) and is_markdown(self.parts[-1])


def memory_path(path: object) -> MemoryPath:
    """Return where a path lies; raises RefusedError for whatever is not plainly below `/memories`."""
    if not isinstance(path, str):
        raise RefusedError(f"A path must be text such as {TOP}/people.md, got: {path!r}")
    asked = path.rstrip("/") if path.startswith(f"{TOP}/") else path
    if asked != TOP and not asked.startswith(f"{TOP}/"):
        raise RefusedError(f"Path must start with {TOP}, got: {path[:LONGEST_PATH]}")
    below = asked.removeprefix(TOP).removeprefix("/")
    parts = tuple(below.split("/")) if below else ()
    if (
        len(path) > LONGEST_PATH
        or "\0" in path
        or not is_text(path)
        or not {"", ".", ".."}.isdisjoint(parts)
        or any(map(is_skipped, parts))
        or (os.name == "nt" and any(map(means_else_on_windows, parts)))
    ):
        raise RefusedError(_refused(path))
    if len(parts) == 1 and parts[0] in ROOT_FILES:
        return MemoryPath(asked, parts)
    return MemoryPath(asked, (ROOT_FOLDER, *parts))


def find(base: str, path: MemoryPath) -> os.stat_result | None:
    """Return what lstat says of a file or folder, None when nothing is there; raises RefusedError for links.

    A name that reads differently elsewhere is refused, unless a file is really called so.
    """
    where = base
    try:
        for part in path.parts:
            where = os.path.join(where, part)  # noqa: PTH118 - strings, as the walk below it
            info = os.lstat(where)
            if is_link(info):
                raise RefusedError(_refused(path.asked))
    except (FileNotFoundError, NotADirectoryError):
        if is_disguised(path.stored):
            raise RefusedError(_refused(path.asked)) from None
        return None
    except OSError as error:
        raise RefusedError(f"{path.asked} cannot be read: {error.strerror}") from error
    if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
        raise RefusedError(f"Unsupported file type for {path.asked}")
    return info


def note_to_write(path: MemoryPath) -> MemoryPath:
    """Return the path if a note may be called so; only Markdown is indexed, and so nothing else is written."""
    if not path.is_note:
        name = path.asked.rpartition("/")[2]
        better = f"{path.asked.removesuffix('.txt')}.md" if path.asked != TOP else f"{TOP}/notes.md"
        raise RefusedError(f"Memory files are Markdown: {name!r} does not end in .md. Use a path such as {better}")
    return path


def _refused(path: str) -> str:
    shown = path if len(path) <= 200 else f"{path[:200]}..."
    return f"Path {shown} is not a path below {TOP}. Use plain names such as {TOP}/projects/queue.md"
