"""The session store: an agent's conversations, one JSON5 file each, that people can read and edit."""

from __future__ import annotations

from notewell.sessions.flush import Flushed, WriteNote, agent_prompt, flush, flush_prompt, plain_notes, plain_summary
from notewell.sessions.forgetting import LostPart
from notewell.sessions.import_export import Imported, export_lines, files_to_import, import_file, import_lines, merge
from notewell.sessions.model import Session, SessionEntry, SessionKind, SessionUpdate, Summary
from notewell.sessions.store import ConversationStore, Found
from notewell.sources.transcripts import id_of_group
from notewell.sources.transcripts.messages import Message, ToolCall

__all__ = [
    "ConversationStore",
    "Flushed",
    "Found",
    "Imported",
    "LostPart",
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
    "files_to_import",
    "flush",
    "flush_prompt",
    "id_of_group",
    "import_file",
    "import_lines",
    "merge",
    "plain_notes",
    "plain_summary",
]
