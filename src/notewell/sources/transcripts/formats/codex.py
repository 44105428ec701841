"""A record of a Codex rollout in, a message or the reason to leave it out out.

`{"timestamp": ..., "type": "response_item", "payload": {"type": "message", "role": ..., "content": [...]}}`; before
September 2025 the payload stood alone. `event_msg` records tell the same messages a second time, for the screen.
"""

from __future__ import annotations

from notewell.sources.transcripts.messages import LeftOut, Message, Record, spoken, text_of

TEXT_BLOCKS = ("input_text", "output_text", "text")
_TOOLS = (
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "web_search_call",
    "image_generation_call",
    "tool_search_call",
    "tool_search_output",
)


def recognises(record: Record) -> bool:
    """Say whether a record has this shape."""
    if isinstance(record.get("payload"), dict):
        return isinstance(record.get("type"), str)
    return record.get("type") == "message" and "role" in record


def message_in(record: Record) -> Message | LeftOut:
    """Return what was said."""
    item = record.get("payload", record)
    if "payload" in record and record["type"] != "response_item":
        return LeftOut.NO_MESSAGE
    if item.get("type") != "message":
        return LeftOut.TOOL if item.get("type") in _TOOLS else LeftOut.NO_MESSAGE
    if item.get("role") not in ("user", "assistant"):
        return LeftOut.OTHER_ROLE
    text = text_of(item.get("content"), TEXT_BLOCKS)
    if text is None:
        return LeftOut.EMPTY
    return spoken(item["role"], text, record.get("timestamp"))
