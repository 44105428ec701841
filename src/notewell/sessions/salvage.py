"""Saves what can still be read of a corrupt session file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from notewell.errors import SessionInputError
from notewell.sessions.model import COUNTED, SessionKind, Summary, entry_from_json, summary_from_json
from notewell.sessions.session_file import text_of
from notewell.sources.transcripts.json5 import Json5Error, parse_json5, parse_object
from notewell.sources.transcripts.messages import Message, message_from_json
from notewell.sources.transcripts.session_files import MESSAGE_ARRAY, MESSAGES, whole_elements

_HEAD_LINE = re.compile(r"""^ {0,4}["']?(\w+)["']?\s*:\s*(.+?),?\s*$""")


@dataclass(frozen=True, slots=True)
class Salvage:
    """A valid text made of a corrupt one."""

    text: str
    messages: int  # how many were saved
    lost_lines: int  # lines among the messages that say nothing any more


def salvage(data: bytes, known: Mapping[str, Any], *, session_id: str, kind: SessionKind, place: str) -> Salvage:
    """Return what can be read; fields of the head that cannot are taken from `known`, the registry's copy."""
    text = data.decode("utf-8", "replace").replace("\x00", "")
    array = MESSAGE_ARRAY.search(text)
    head = _fields(text[: array.start()] if array else "")
    messages: list[Message] = []
    summaries: list[Summary] = []
    lost = 0
    for _, value in whole_elements(text):
        summary = summary_from_json(value) if isinstance(value, Mapping) and "originalMessageCount" in value else None
        if summary:
            summaries.append(summary)
            continue
        try:
            messages.append(message_from_json(value))
        except SessionInputError:
            lost += 1
    for each in head.pop("compactedHistory", None) or []:
        summary = summary_from_json(each)
        if summary:
            summaries.insert(0, summary)
    values = {**known, **head, **_foot_of(text)}
    values = {key: value for key, value in values.items() if key not in COUNTED}
    entry = entry_from_json(values, kind=kind, session_id=session_id, session_file=place)
    return Salvage(text_of(entry, messages, summaries), len(messages), lost)


def _foot_of(text: str) -> dict[str, Any]:
    """Return the fields after the messages: above all what was flushed to the notes already."""
    _, found, foot = text.rpartition("\n" + MESSAGES.end_mark)
    return _fields("{\n" + foot.rstrip().removesuffix("}")) if found else {}


def _fields(head: str) -> dict[str, Any]:
    """Return the fields of the head: all if it is valid, else line by line."""
    try:
        return parse_object(head + "\n}")
    except Json5Error:
        found: dict[str, Any] = {}
        for line in head.split("\n"):
            match = _HEAD_LINE.match(line)
            if match:
                try:
                    found[match[1]] = parse_json5(match[2])
                except Json5Error:
                    continue
        return found
