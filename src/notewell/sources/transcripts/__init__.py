"""Past conversations as a source of memory: transcripts of several programs, and the session store's own files.

This module knows the file names of the session store and the ids of sessions. Ids given by the store are valid file
names on every system. Files that other programs put there keep their names, such as a group's id in its chat program
(`120363@g.us`).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from notewell.errors import SessionInputError
from notewell.sources.walk import is_text, means_else_on_windows, parts_of

TRANSCRIPTS_VERSION = 2  # raised whenever the same transcript could give other text; an older index is rebuilt

# The folder of the session store, as it is stored: chats and groups, each also below `archive/`.
TOP = "sessions"
CHATS, GROUPS, ARCHIVE = "chats", "groups", "archive"
COMPACTED = "compacted"  # messages that a summary replaced
PENDING = ".pending"  # suffix of an archive that its session does not name yet
CORRUPT = "damaged"  # copies of files that could not be read
REGISTRY = "registry.json5"  # the list of sessions: not a conversation
SESSION_ENDING = ".json5"

_NEW_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,127}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_UNPRINTABLE = frozenset({"Cc", "Cf", "Zl", "Zp"})  # line breaks and invisible formatting
_LONGEST_NAME = 200  # bytes; most file systems allow 255, and endings are added


def is_new_id(name: str) -> bool:
    """Return whether a new session may have this id: a valid file name on every system."""
    return _NEW_ID.fullmatch(name) is not None and not means_else_on_windows(name)


def checked_id(session_id: object) -> str:
    """Return the id of a new session in lower case; raises SessionInputError for names invalid on some system."""
    name = session_id.lower() if isinstance(session_id, str) else ""
    if not is_new_id(name):
        raise SessionInputError(
            f"{session_id!r} is not a session id",
            hint="use 1 to 128 of a-z, 0-9, - and _; `notewell sessions list` lists all sessions",
        )
    return name


def id_of_group(group_id: str) -> str:
    """Return the id of a group's session: readable if possible, and always the same for the same group."""
    readable = re.sub(r"[^a-z0-9_-]+", "-", group_id.lower()).strip("-_")[:80]
    if readable == group_id and is_new_id(readable):
        return readable
    digest = hashlib.sha256(group_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable}-{digest}" if readable else f"group-{digest}"


def is_session_name(name: object) -> bool:
    """Return whether a session's file can have this name, without its ending; false for paths."""
    return (
        isinstance(name, str)
        and name.strip() != ""
        and not name.startswith(".")
        and not {"/", "\\"} & set(name)
        and is_text(name)
        and parts_of(name) is not None
        and SESSION_ENDING not in name.lower()  # copies of a session's file have its whole name and more
        and len(name.encode()) <= _LONGEST_NAME
        and not any(unicodedata.category(char) in _UNPRINTABLE for char in name)
    )


def names_of(session_id: str) -> tuple[str, ...]:
    """Return the names under which a session's file may be stored; no other session uses any of them.

    A group is named by its id in the chat program or by its session's id. Names are case-sensitive for groups, but not
    for UUIDs.
    """
    spelt = (session_id, session_id.lower(), session_id.upper()) if _UUID.fullmatch(session_id) else (session_id,)
    return tuple(dict.fromkeys((*filter(is_session_name, spelt), id_of_group(session_id))))


def session_at(path: str) -> str | None:
    """Return the id of the session whose file has this stored path; None for other paths."""
    top, *folders, file = path.split("/")
    if folders[:1] == [ARCHIVE]:
        del folders[0]
    name = file.removesuffix(SESSION_ENDING)
    own = top == TOP and folders in ([CHATS], [GROUPS]) and name != file
    return name if own and is_session_name(name) else None
