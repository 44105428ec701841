"""A record of an OpenClaw transcript in, a message or the reason to leave it out out.

`{"type": "message", "timestamp": ..., "message": {"role": ..., "content": "..." | [{"type": "text", "text": ...}]}}`
"""

from __future__ import annotations

from notewell.sources.transcripts.messages import LeftOut, Message, Record, spoken, text_of

TEXT_BLOCKS = ("text",)


def recognises(record: Record) -> bool:
    """Say whether a record has this shape."""
    return record.get("type") == "message" and isinstance(record.get("message"), dict)


def message_in(record: Record) -> Message | LeftOut:
    """Return what was said."""
    message = record["message"]
    if message.get("role") not in ("user", "assistant"):
        return LeftOut.TOOL if message.get("role") in ("tool", "toolResult") else LeftOut.OTHER_ROLE
    text = text_of(message.get("content"), TEXT_BLOCKS)
    if text is None:
        return LeftOut.TOOL
    return spoken(message["role"], text, record.get("timestamp", message.get("timestamp")))
