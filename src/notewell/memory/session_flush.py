"""The part of a conversation that is about to be compacted in, an entry in today's note, indexed, out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from notewell.errors import NotewellError
from notewell.memory.remembering import Provenance, append_note
from notewell.sessions.flush import Flushed, Summarize, flush

if TYPE_CHECKING:
    from notewell.memory.memory import Memory


@dataclass(frozen=True, slots=True)
class _NoteWriter:
    """Appends to notes of a memory, once for a mark."""

    memory: Memory

    def __call__(self, path: str, text: str, *, source: str, mark: str, when: datetime) -> bool:
        done = append_note(
            self.memory.workspace,
            path,
            text,
            provenance=Provenance(self.memory.agent, source, when),
            extra_paths=self.memory.settings.extra_paths,
            unless=lambda note: mark in note,
        )
        return done is not None


def flush_session(
    memory: Memory, session_id: str, *, summarize: Summarize | None, keep_last: int, now: datetime | None = None
) -> Flushed:
    """Flush a session of the memory and index the note."""
    done = flush(
        memory.conversations, session_id, _NoteWriter(memory), summarize=summarize, keep_last=keep_last, now=now
    )
    if not done.path:
        return done
    try:
        memory.parts.catch_up(paths=[done.path])
    except NotewellError as error:  # it is written: what keeps it from being found is only told
        told = f"it is written, but not indexed yet: {error.message}"
        return replace(done, note=f"{done.note}; {told}" if done.note else told)
    return done
