"""A record of a Claude Code transcript in, a message or the reason to leave it out out.

`{"type": "user" | "assistant", "timestamp": ..., "isSidechain": false, "message": {"role": ..., "content": ...}}`
"""

from __future__ import annotations

from notewell.sources.transcripts.messages import LeftOut, Message, Record, spoken, text_of

TEXT_BLOCKS = ("text",)
# Records that look like messages, by the mark they carry. A summary retells what the transcript holds already.
_MARKED = (
    ("isSidechain", LeftOut.SIDE_TALK),
    ("isMeta", LeftOut.MACHINE),
    ("isCompactSummary", LeftOut.MACHINE),
    ("isVisibleInTranscriptOnly", LeftOut.MACHINE),
    ("isApiErrorMessage", LeftOut.MACHINE),
)


def recognises(record: Record) -> bool:
    """Say whether a record has this shape."""
    return record.get("type") in ("user", "assistant") and isinstance(record.get("message"), dict)


def message_in(record: Record) -> Message | LeftOut:
    """Return what was said."""
    for mark, reason in _MARKED:
        if record.get(mark):
            return reason
    message = record["message"]
    text = text_of(message.get("content"), TEXT_BLOCKS)
    if text is None:
        return LeftOut.TOOL
    return spoken(message.get("role", record["type"]), text, record.get("timestamp"))
