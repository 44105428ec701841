"""The session store: an agent's conversations, one JSON5 file each, that people can read and edit."""

from __future__ import annotations

from notewell.sessions.flush import Flushed, WriteNote, flush
from notewell.sessions.flush_text import agent_prompt, flush_prompt, plain_notes, plain_summary
from notewell.sessions.ids import SessionKind
from notewell.sessions.jsonl import Imported, export_lines, import_lines
from notewell.sessions.model import Message, Session, SessionEntry, SessionUpdate, Summary, ToolCall
from notewell.sessions.searching import Found
from notewell.sessions.store import ConversationStore

__all__ = [
    "ConversationStore",
    "Flushed",
    "Found",
    "Imported",
    "Message",
    "Session",
    "SessionEntry",
    "SessionKind",
    "SessionUpdate",
    "Summary",
    "ToolCall",
    "WriteNote",
    "agent_prompt",
    "export_lines",
    "flush",
    "flush_prompt",
    "import_lines",
    "plain_notes",
    "plain_summary",
]
