"""Words in, the messages that hold them all out, newest first: a plain scan, for those without an index."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from notewell.sessions.model import Message, Session, SessionEntry


@dataclass(frozen=True, slots=True)
class Found:
    """A message that holds what was looked for."""

    entry: SessionEntry
    number: int  # of the message among those the session holds, 1-based
    message: Message


def search_sessions(sessions: Iterable[Session], text: str, *, limit: int) -> list[Found]:
    """Return the newest messages that hold every word of the text, in whichever case; no words match nothing."""
    words = text.casefold().split()
    found = (
        Found(session.entry, number, message)
        for session in sessions
        for number, message in enumerate(session.messages, start=1)
        if words and _holds(message, words)
    )
    return heapq.nlargest(limit, found, key=lambda each: (each.message.timestamp, each.entry.session_id, each.number))


def _holds(message: Message, words: list[str]) -> bool:
    said = message.text.casefold()
    return all(word in said for word in words)
