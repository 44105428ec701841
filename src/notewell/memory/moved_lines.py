"""Keeps a citation from silently meaning another line.

Lines that are forgotten, restored or marked move the lines below them. Until a note is shown again, a citation of those
lines may be an old one: the first use of it is refused and says what the lines are now, and then it counts as shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from notewell.errors import NotewellError, QueryError
from notewell.files.atomic import write_atomically
from notewell.indexing.sync import BACKGROUND
from notewell.memory.note_files import notes_lock
from notewell.text.entries import without_comments
from notewell.types import Citation, hash_text

if TYPE_CHECKING:
    from notewell.memory.components import Components
    from notewell.types import Document

AGAIN = "if these are the lines you mean, do the same again; else search for their citation"


@dataclass(frozen=True, slots=True)
class MovedLines:
    """The notes of a workspace whose lines have moved since they were shown, and from which line on."""

    parts: Components

    def add(self, path: str, first_line: int) -> None:
        """Say that lines of a note are about to move, from `first_line` on; the caller holds `notes_lock`."""
        moved, name = self._read(), _name_of(path)
        self._write({**moved, name: min(first_line, moved.get(name, first_line))})

    def shown(self, paths: Iterable[str]) -> None:
        """Say that notes were shown as they are now."""
        if not self.parts.moved_file.exists():
            return
        with suppress(NotewellError, OSError), notes_lock(self.parts.workspace):  # the next showing tries again
            moved, names = self._read(), set(map(_name_of, paths))
            left = {name: line for name, line in moved.items() if name not in names}
            if left != moved:
                self._write(left)

    def concerns(self, cited: Citation) -> bool:
        """Say whether a citation may name lines that have moved."""
        first_moved = self._read().get(_name_of(cited.path))
        return first_moved is not None and (cited.last_line or 0) >= first_moved

    def _read(self) -> Mapping[str, int]:
        try:
            found = json.loads(self.parts.moved_file.read_bytes())
            return {str(name): int(line) for name, line in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):  # not there, or not ours
            return {}

    def _write(self, moved: Mapping[str, int]) -> None:
        if moved:
            write_atomically(self.parts.moved_file, json.dumps(moved), mode=0o600)
        else:
            self.parts.moved_file.unlink(missing_ok=True)


def _name_of(path: str) -> str:
    """Return by what a note is recognized: a path may hold what is to be forgotten without a trace."""
    return hash_text(path)[:16]


def check_cited(parts: Components, document: Document, cited: Citation) -> None:
    """Raise QueryError where cited lines may be others than those that somebody saw, and say what they are now.

    They may be where lines of the note have moved, or where it was changed since it was indexed and they read
    differently now: what a search shows is always what is indexed.
    """
    path, first, last = cited.path, cited.first_line or 1, cited.last_line or 1
    lines = document.text.split("\n")
    moved = MovedLines(parts)
    if moved.concerns(cited):
        moved.shown([path])
        why = "lines of this note have moved since it was last shown"
    elif _reads_differently(parts, document, range(first, last + 1)):
        with suppress(NotewellError):
            parts.sync.run(replace(BACKGROUND, paths=[path]))
        why = "this note has changed since it was last indexed"
    else:
        return
    said = "\n".join(f"L{number}  {lines[number - 1]}" for number in range(first, last + 1))
    raise QueryError(f"{cited}: {why}; it is now:\n{said}", hint=AGAIN)


def _reads_differently(parts: Components, document: Document, numbers: range) -> bool:
    with parts.index.use() as store:
        if store is None:
            return False
        with store.reading() as snapshot:
            known = snapshot.documents("memory", [document.stamp.path]).get(("memory", document.stamp.path))
            if known is None or known.content_hash == document.content_hash:
                return False
            chunks = snapshot.chunks_of("memory", document.stamp.path)
    lines = without_comments(document.text).split("\n")
    indexed: dict[int, str] = {}
    for chunk in chunks:
        indexed.update(enumerate(chunk.text.split("\n"), start=chunk.first_line))
    return any(indexed.get(number, "").strip() != lines[number - 1].strip() for number in numbers)
