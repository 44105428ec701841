"""The rules for paths of notes: what may be stored and asked for, where it lies on disk, and what is left alone.

Workspace and extra paths in, `Root`s out; a path someone asks for in, its parts or a refusal out.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT_FILES = ("MEMORY.md", "memory.md")
ROOT_FOLDER = "memory"
SKIPPED_FOLDERS = frozenset({"node_modules"})  # besides everything that begins with a dot

# Device names Windows sees in any folder and before any ending; Microsoft, "Naming Files, Paths, and Namespaces".
_WINDOWS_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"}
)
_WINDOWS_FORBIDDEN = frozenset('\\:*?"<>|')
_PERCENT_ESCAPE = re.compile("%(?:[0-9a-f]{2}|u[0-9a-f]{4})", re.IGNORECASE)
_SLASH_LOOKALIKES = frozenset("∕⁄⧸⧵⟋⟍∖")  # not folded by NFKC


@dataclass(frozen=True, slots=True)
class Root:
    """One place notes come from: how their stored paths begin, and where that is on disk."""

    stored: str  # "memory", "notes/x.md", "@vault"; "" is the workspace itself
    base: str  # a real folder; nothing below it may be a link
    parts: tuple[str, ...]  # from the base to the root
    is_extra: bool = False
    is_outside: bool = False  # of the workspace; the stored path then begins with a label instead of `parts`
    is_file: bool = False  # known to be a single file; extra paths may be either

    @property
    def real_path(self) -> str:
        return os.path.join(self.base, *self.parts)  # noqa: PTH118 - strings, as the walk below it


def roots_of(workspace: Path, extra_paths: Sequence[Path]) -> tuple[tuple[Root, ...], tuple[str, ...]]:
    """Return where to look for notes, and the extra paths that leave the workspace through a link.

    The order of the roots is the order in which a file found twice is kept.
    """
    base = os.path.realpath(workspace)
    roots = [Root(name, base, (name,), is_file=True) for name in ROOT_FILES]
    roots.append(Root(ROOT_FOLDER, base, (ROOT_FOLDER,)))
    given = [Path(os.path.abspath(workspace / path)) for path in extra_paths]  # noqa: PTH100 - resolve() follows links
    located = [(path, _below(base, _real_parent(path))) for path in given]
    escaping: list[str] = []
    labels = {inside[0].casefold() for _, inside in located if inside}
    for path, inside in located:
        if inside is not None:
            roots.append(Root("/".join(inside), base, inside, is_extra=True))
        elif path.is_relative_to(os.path.abspath(workspace)):  # noqa: PTH100
            escaping.append(path.as_posix())
        else:
            label = _unused_label(path.name or "root", labels)
            real = _real_parent(path)
            parts = (real.name,) if real.name else ()
            roots.append(Root(label, str(real.parent), parts, is_extra=True, is_outside=True))
    return tuple(roots), tuple(escaping)


def _real_parent(path: Path) -> Path:
    """Resolve the folders on the way but not the last part: links may lead to a root, it must not be one."""
    return Path(os.path.realpath(path.parent)) / path.name if path.name else path


def _below(base: str, path: Path) -> tuple[str, ...] | None:
    return path.relative_to(base).parts if path.is_relative_to(base) else None


def _unused_label(name: str, taken: set[str]) -> str:
    """Return `@name`, or `@name-2`, `@name-3.md`, ... when an earlier root is called so."""
    stem, dot, ending = name.rpartition(".") if is_markdown(name) else (name, "", "")
    number, label = 1, f"@{name}"
    while label.casefold() in taken:
        number += 1
        label = f"@{stem}-{number}{dot}{ending}"
    taken.add(label.casefold())
    return label


def is_markdown(name: str) -> bool:
    """Say whether a file of this name is a note."""
    return name[-3:].lower() == ".md"


def is_skipped(name: str) -> bool:
    """Say whether a file or folder of this name is left alone: hidden ones, and folders of other people's files."""
    return name.startswith(".") or name.lower() in SKIPPED_FOLDERS


def is_text(name: str) -> bool:
    """Say whether a file name can be written down; bytes that are no text come as lone surrogates."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def parts_of(path: str) -> tuple[str, ...] | None:
    """Return the parts of a stored path, or None when no note can have such a path on this system."""
    parts = tuple(path.split("/"))
    if "\0" in path or not is_text(path) or not is_markdown(path) or not {"", ".", ".."}.isdisjoint(parts):
        return None
    if os.name == "nt" and any(map(means_else_on_windows, parts)):
        return None
    return parts


def is_disguised(path: str) -> bool:
    """Say whether a path reads differently to someone who decodes, folds or displays it, or on another system.

    A note may have such a name; but where no such note exists, the asker did not mean a note.
    """
    folded = unicodedata.normalize("NFKC", path)
    return (
        _PERCENT_ESCAPE.search(path) is not None
        or folded.count("/") != path.count("/")
        or not {"", ".", ".."}.isdisjoint(part.strip(" .") or ".." for part in folded.split("/"))
        or not _SLASH_LOOKALIKES.isdisjoint(path)
        or any(unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"} for char in path)
        or any(map(means_else_on_windows, folded.split("/")))
    )


def means_else_on_windows(part: str) -> bool:
    """Say whether Windows would take one part of a path for something else than a file of that name."""
    return (
        part[-1:] in {" ", "."}
        or not _WINDOWS_FORBIDDEN.isdisjoint(part)
        or part.split(".", 1)[0].rstrip(" ").casefold() in _WINDOWS_DEVICES
    )
