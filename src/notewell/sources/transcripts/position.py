"""Where reading a transcript stopped: a value that goes into the index as text and comes back with the next look."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """How far a transcript has been read, and what tells whether it was only appended to since."""

    bytes: int = 0  # all complete lines up to here are read
    lines: int = 0
    messages: int = 0
    chain: str = ""  # hash of those bytes, line by line
    ended: bool = True  # False: the last line read has no newline yet
    in_array: bool = False  # of one of the session store's files: the messages have begun
    last_at: str = ""  # when the last message was said, ISO; empty when no message tells
    size: int = 0  # of the file when it was read
    mtime_ns: int = 0
    inode: int = 0  # another one: the file was replaced, not appended to
    fingerprint: str = ""  # hash of both ends of what was read

    def as_text(self) -> str:
        """Return the position as the index keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Position | None:
        """Return the position, or None when the text is not one: the transcript is then read from its beginning."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError):
            return None


BEGINNING = Position()
