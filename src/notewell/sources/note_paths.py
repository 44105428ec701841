"""The rules for stored paths: which names are notes, which are skipped, and which are refused."""

from __future__ import annotations

import os
import re
import unicodedata

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


def unused_label(name: str, taken: set[str], endings: tuple[str, ...]) -> str:
    """Return `@name`, or `@name-2`, `@name-3.md`, ... when an earlier root is called so; `taken` gets the label."""
    stem, dot, ending = name.rpartition(".") if name.lower().endswith(endings) else (name, "", "")
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
    """Return the parts of a stored path, or None when no document can have such a path on this system."""
    parts = tuple(path.split("/"))
    if "\0" in path or not is_text(path) or not {"", ".", ".."}.isdisjoint(parts):
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
