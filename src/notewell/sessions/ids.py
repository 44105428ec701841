"""Names of sessions: an id or a group's id comes in, a name that is safe as a file name on every system goes out."""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import Literal, get_args

from notewell.errors import SessionInputError

SessionKind = Literal["direct", "group"]
KINDS: tuple[SessionKind, ...] = get_args(SessionKind)
FOLDERS: dict[SessionKind, str] = {"direct": "chats", "group": "groups"}  # the folder decides the kind

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,127}")
# Windows reserves these names whatever their extension.
_DEVICE_NAMES = frozenset({"aux", "con", "nul", "prn", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})


def new_id() -> str:
    """Return an id that no other session has."""
    return str(uuid.uuid4())


def checked_id(session_id: object) -> str:
    """Return the id in lower case, or raise SessionInputError when it could not be a file name everywhere."""
    name = session_id.lower() if isinstance(session_id, str) else ""
    if not _ID.fullmatch(name) or name in _DEVICE_NAMES:
        raise SessionInputError(
            f"{session_id!r} is not a session id",
            hint="use 1 to 128 of a-z, 0-9, - and _; `notewell sessions list` shows those there are",
        )
    return name


def checked_kind(kind: object) -> SessionKind:
    """Return the kind, or raise SessionInputError."""
    for known in KINDS:
        if kind == known:
            return known
    raise SessionInputError(f"{kind!r} is not a kind of session", hint=f"use {' or '.join(KINDS)}")


def id_of_group(group_id: str) -> str:
    """Return the id of a group's session: readable where it can be, and always the same for the same group."""
    readable = re.sub(r"[^a-z0-9_-]+", "-", group_id.lower()).strip("-_")[:80]
    if readable == group_id and _ID.fullmatch(readable) and readable not in _DEVICE_NAMES:
        return readable
    digest = hashlib.sha256(group_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable}-{digest}" if readable else f"group-{digest}"
