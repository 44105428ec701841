"""The session store: an agent's conversations, one JSON5 file each, that people can read and edit."""

from __future__ import annotations

from recollect.conversations.flush import Flushed, WriteNote, flush
from recollect.conversations.flush_text import agent_prompt, flush_prompt, plain_notes, plain_summary
from recollect.conversations.ids import SessionKind
from recollect.conversations.jsonl import Imported, export_lines, import_lines
from recollect.conversations.model import Message, Session, SessionEntry, SessionUpdate, Summary, ToolCall
from recollect.conversations.searching import Found
from recollect.conversations.store import ConversationStore

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
