"""A root in, the Markdown files below it and what could not be looked at out; links are reported, never followed."""

from __future__ import annotations

import os
import stat

from recollect.sources.note_paths import Root, is_markdown, is_skipped, is_text
from recollect.types import Problem

Found = tuple[str, str, os.stat_result]  # stored path, real path, what lstat says
_KIND = 0o170000  # the bits of a mode that say what a thing is
_HAS_JUNCTIONS = hasattr(os.stat_result, "st_reparse_tag")
_NAME_SURROGATE = 0x20000000  # of a Windows reparse tag: junctions and links have it, cloud placeholders do not

IS_LINK = "is a symbolic link, and links are not followed"
NOT_REGULAR = "is not a regular file"
NOT_TEXT = "has a name that is not valid Unicode; rename it to have it indexed"


def is_link(info: os.stat_result) -> bool:
    """Say whether lstat met something that stands for another place: a symbolic link or a Windows junction."""
    return stat.S_ISLNK(info.st_mode) or bool(getattr(info, "st_reparse_tag", 0) & _NAME_SURROGATE)


def problem_at(path: str, reason: str | OSError) -> Problem:
    """Return the problem with a path that can be printed, whatever bytes the name holds."""
    if isinstance(reason, OSError):
        reason = f"cannot be read: {reason.strerror or type(reason).__name__}"
    return Problem(path.encode("utf-8", "backslashreplace").decode(), reason)


def walk_root(root: Root) -> tuple[list[Found], list[Problem]]:
    """Return what one root holds now, in no particular order, and what could not be looked at."""
    try:
        info = os.lstat(root.real_path)
    except OSError as error:
        return [], [problem_at(root.real_path if root.is_extra else root.stored, error)]
    shown = root.stored or root.real_path
    if not is_link(info) and is_text(shown):
        if stat.S_ISDIR(info.st_mode) and not root.is_file:
            return _walk_folder(root.real_path, f"{root.stored}/" if root.stored else "")
        if stat.S_ISREG(info.st_mode) and is_markdown(root.stored):
            return [(root.stored, root.real_path, info)], []
    return [], [problem_at(shown, _why_not(shown, info))]


def _why_not(shown: str, info: os.stat_result) -> str:
    if is_link(info):
        return IS_LINK
    if not is_text(shown):
        return NOT_TEXT
    return "is not a Markdown file" if stat.S_ISREG(info.st_mode) else NOT_REGULAR


def _walk_folder(folder: str, stored: str) -> tuple[list[Found], list[Problem]]:
    """Return what a folder and its sub-folders hold. `stored` is its stored path with a slash behind."""
    found: list[Found] = []
    problems: list[Problem] = []
    waiting = [(folder, stored)]
    while waiting:
        folder, stored = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    # Nearly all are such: they need no closer look, and a sync looks at thousands.
                    plain = name.endswith(".md") and name[0] != "." and name.isascii()
                    if not plain and (is_skipped(name) or not (is_markdown(name) or entry.is_dir())):
                        continue
                    try:
                        info = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # deleted since the folder was opened: simply no longer there
                        continue
                    # A look at the kind alone is not enough on Windows, where a junction is a folder, too.
                    kind = info.st_mode & _KIND if not (_HAS_JUNCTIONS and is_link(info)) else stat.S_IFLNK
                    if kind == stat.S_IFREG and (plain or is_text(name)):
                        found.append((stored + name, entry.path, info))
                    elif not is_text(name):
                        problems.append(problem_at(stored + name, NOT_TEXT))
                    elif kind == stat.S_IFDIR:
                        waiting.append((entry.path, f"{stored}{name}/"))
                    else:
                        problems.append(problem_at(stored + name, IS_LINK if kind == stat.S_IFLNK else NOT_REGULAR))
        except OSError as error:
            problems.append(problem_at(stored.rstrip("/") or folder, error))
    return found, problems
