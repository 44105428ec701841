"""Writing memories: text in, an entry at the end of a note out; the only part of notewell that writes notes."""

from notewell.memory.remembering.appending import Appended, Provenance, append_note, daily_note, notes_lock

__all__ = ["Appended", "Provenance", "append_note", "daily_note", "notes_lock"]
