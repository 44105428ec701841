"""A bare message in, the same as a message or the reason to leave it out out.

`{"role": ..., "content": "..." | [{"type": "text", "text": ...}], "timestamp": ...}`: the session store's own messages,
and what many programs export.
"""

from __future__ import annotations

from notewell.sources.transcripts.messages import LeftOut, Message, Record, spoken, text_of

TEXT_BLOCKS = ("text", "input_text", "output_text")


def recognises(record: Record) -> bool:
    """Say whether a record has this shape."""
    return "type" not in record and isinstance(record.get("role"), str) and "content" in record


def message_in(record: Record) -> Message | LeftOut:
    """Return what was said."""
    if record["role"] not in ("user", "assistant"):
        return LeftOut.TOOL if record["role"] == "tool" else LeftOut.OTHER_ROLE
    text = text_of(record["content"], TEXT_BLOCKS)
    if text is None:
        return LeftOut.TOOL
    return spoken(record["role"], text, record.get("timestamp"))
