"""One JSON5 file whose array grows: elements come in, are appended in place, and the object comes out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notewell.sessions.files import is_unfinished, locked, overwrite_end, recover, replace_file
from notewell.sessions.json5 import Json5Error, parse_object
from notewell.sessions.layout import Layout, Parts, arrange, element_lines, end_of, join, parts_of_end, set_head

FIRST_LOOK = 4096  # bytes read from either end of a file; a foot has about 200, a head about 500
Json = Mapping[str, Any]
Adopt = Callable[[dict[str, Any]], tuple[Json, Json]]


@dataclass(frozen=True, slots=True)
class Span:
    """Where new elements stand in the file, in bytes; the end is exclusive."""

    first_byte: int
    end_byte: int


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """A file in the given layout, with its lock and its journal. Holds nothing open."""

    path: Path
    layout: Layout
    lock_path: Path
    journal: Path
    timeout_s: float

    def locked(self) -> AbstractContextManager[None]:
        """Be the only writer of this file."""
        return locked(self.lock_path, self.timeout_s, self.path.name)

    def exists(self) -> bool:
        """Say whether the file is there; a link is not ours, wherever it leads."""
        return self.path.is_file() and not self.path.is_symlink()

    # --- reading -----------------------------------------------------------------------------

    def read(self, *, holding: bool = False) -> dict[str, Any]:
        """Return the whole object; `holding`: under the lock. Raises Json5Error where it is none, and OSError."""
        return self._settled(lambda: parse_object(self.text()), holding=holding)

    def read_ends(self, *, holding: bool = False) -> dict[str, Any]:
        """Return what the head and the foot say; in our own layout that is read without the elements."""
        return self._settled(self._ends, holding=holding)

    def text(self) -> str:
        """Return the whole text; raises Json5Error where it is not UTF-8."""
        return _decoded(self.path.read_bytes())

    def _settled(self, look: Callable[[], dict[str, Any]], *, holding: bool) -> dict[str, Any]:
        """Look without the lock; what looks broken is looked at again under it, once nobody is writing."""
        try:
            return look()
        except Json5Error:
            if holding or not os.access(self.path, os.W_OK):  # who may not write cannot mend it either
                raise
            with self.locked():
                recover(self.path, self.journal)
                return look()

    def _ends(self) -> dict[str, Any]:
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            start = file.read(FIRST_LOOK)
            file.seek(max(0, size - FIRST_LOOK))
            end = file.read()
        opening = f"\n  {self.layout.array}: [\n".encode()
        head, found, _ = start.partition(opening)
        parts = parts_of_end(self.layout, end.decode("utf-8", "ignore"))
        if not found or parts is None or parts.values.get(self.layout.end_field) != _mark_at(self.layout, parts, size):
            return parse_object(self.text())
        values = parse_object(_decoded(head) + "\n}")
        values.pop(self.layout.array, None)
        return values | parts.values

    # --- writing; under the lock only ----------------------------------------------------------

    def recover(self) -> bool:
        """Finish an append that was cut short."""
        return is_unfinished(self.journal) and recover(self.path, self.journal)

    def append(self, elements: Sequence[Json], foot: Callable[[Json], Json], adopt: Adopt) -> Span:
        """Write elements behind the last one, and what `foot` makes of the foot; only the end of the file is touched.

        A file that a person edited, or another release wrote, is read whole once and brought into our layout.
        """
        self.recover()
        parts, offset = self._end()
        if parts is None:
            self.rewrite(lambda text: text, adopt)
            parts, offset = self._end()
            assert parts is not None, "what was just arranged is in our layout"
        lines = element_lines(elements)
        end_byte = offset + len(lines.encode())
        new = lines + end_of(self.layout, end_byte, parts.foot, foot(parts.values))
        overwrite_end(self.path, self.journal, offset, new.encode())
        return Span(offset, end_byte)

    def rewrite(self, change: Callable[[str], str], adopt: Adopt) -> None:
        """Replace the file by what `change` makes of its text, in our layout; what is not changed stays as it is.

        `adopt` sees the object after the change, may refuse it, and says what head and foot must hold.
        """
        text = change(self.text())
        head, foot = adopt(parse_object(text))
        parts = arrange(self.layout, set_head(self.layout, text, head) if head else text)
        replace_file(self.path, join(self.layout, parts.body, parts.foot, foot).encode())

    def replace(self, text: str) -> None:
        """Put a whole new text in place of the file, or make the file."""
        replace_file(self.path, text.encode())

    def _end(self) -> tuple[Parts | None, int]:
        """Return the end of the file in parts and where its end mark is; no parts when somebody else wrote it."""
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            look = FIRST_LOOK
            while True:
                file.seek(max(0, size - look))
                end = file.read().decode("utf-8", "ignore")
                parts = parts_of_end(self.layout, end)
                if parts or look >= size:
                    break
                look *= 16
        if parts is None:
            return None, 0
        offset = _mark_at(self.layout, parts, size)
        return (parts, offset) if parts.values.get(self.layout.end_field) == offset else (None, 0)


def _mark_at(layout: Layout, parts: Parts, size: int) -> int:
    return size - len(parts.foot.encode()) - len(layout.end_mark)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Json5Error(f"byte {error.start}: not UTF-8") from error
