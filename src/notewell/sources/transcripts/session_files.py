"""A line of a JSON5 file of the session store in, what it is out: a message, the begin or end of them, or neither.

The store keeps one message a line in an array that grows at its end, with small fields before and behind it. What is
behind the array is written anew with every append, so reading stops before it.
"""

from __future__ import annotations

import json
from enum import Enum, auto
from typing import Any

from notewell.sources.transcripts.formats import NotARecord, record_in


class Part(Enum):
    """What a line of a session file is."""

    HEAD = auto()
    BEGIN = auto()  # of the messages
    ELEMENT = auto()
    NOTHING = auto()  # a comment or a blank line between messages
    END = auto()  # of the messages


ARRAY = b"messages"


def is_session_file(path: str) -> bool:
    """Say whether a transcript is one of the session store's own files."""
    return path.lower().endswith(".json5")


def part_of(line: bytes, *, in_array: bool) -> Part:
    """Return what a line is, given whether the array has begun."""
    stripped = line.strip()
    if not in_array:
        name, colon, value = stripped.partition(b":")
        return Part.BEGIN if colon and name.strip(b" \"'") == ARRAY and value.strip() == b"[" else Part.HEAD
    if stripped.startswith(b"]"):
        return Part.END
    return Part.NOTHING if not stripped or stripped.startswith((b"//", b"/*")) else Part.ELEMENT


def element_in(line: bytes) -> dict[str, Any]:
    """Return the message of a line; one that a person wrote in JSON5 is read as such. Raises NotARecord."""
    text = line.strip().removesuffix(b",")
    try:
        return record_in(text)
    except NotARecord:
        return _json5_object(text)


def _json5_object(text: bytes) -> dict[str, Any]:
    try:
        import pyjson5
    except ImportError as error:
        raise NotARecord from error
    try:
        value = pyjson5.decode(text.decode("utf-8", "replace"))
        return record_in(json.dumps(value).encode())
    except (pyjson5.Json5Exception, ValueError, RecursionError, TypeError) as error:
        raise NotARecord from error
