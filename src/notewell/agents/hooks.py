"""What an agent's program runs at the start and end of a session: recall notes, capture the transcript."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notewell import SessionInputError
from notewell.agents.tools.prompt import state_line

if TYPE_CHECKING:
    from notewell import Memory


@dataclass(frozen=True, slots=True)
class Captured:
    """What was captured from a transcript."""

    session_id: str
    added: int  # messages
    known: int  # messages captured before, when the session was resumed


def recalled_at_start(memory: Memory) -> str:
    """Return what a new session should know, after a line on the state of the memory; empty when that is nothing."""
    context = memory.session_context()
    return f"{state_line(memory)}\n{context.text}" if context.text else ""


def capture_transcript(memory: Memory, event: Mapping[str, Any]) -> Captured:
    """Store the transcript that the event names as a session; of a resumed session only the new messages."""
    from notewell.sessions import import_lines, merge

    named = event.get("transcript_path")
    if not isinstance(named, str) or not named:
        raise SessionInputError("the event names no transcript", hint="it must have `transcript_path`")
    session_id = event.get("session_id")
    with Path(named).expanduser().open(encoding="utf-8", errors="replace", newline="\n") as lines:
        session = import_lines(lines, session_id=session_id if isinstance(session_id, str) else "").session
    entry = replace(session.entry, channel=session.entry.channel or "claude-code")
    stored, added = merge(memory.conversations, replace(session, entry=entry))
    return Captured(stored.session_id, added, len(session.messages) - added)
