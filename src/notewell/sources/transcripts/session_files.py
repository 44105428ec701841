"""Reads the messages of session files (JSON5), with their line numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from notewell.errors import ConversationError, SessionInputError, SessionTooNewError
from notewell.sources.transcripts import SESSION_ENDING
from notewell.sources.transcripts.json5 import (
    Json5Error,
    Layout,
    container_at,
    decode_json5,
    has_json5,
    parse_json5,
    parse_object,
)
from notewell.sources.transcripts.messages import Json, Message, message_from_json

FORMAT_VERSION = 3  # 1: no version; 2: as OpenClaw describes it; 3: the messages come last, so that appending is cheap
MESSAGES = Layout(
    "messages",
    "A conversation, kept by notewell. You may edit it; comments and fields of your own are kept.\n"
    "One message a line, the newest last.",
)

_END_MARK = f"\n{MESSAGES.end_mark}".encode()
_END_FIELD = re.compile(rf"^\s*{MESSAGES.end_field}: (\d+)".encode(), re.MULTILINE)
MESSAGE_ARRAY = re.compile(r"""^[^\S\n]*["']?messages["']?\s*:\s*\[""", re.MULTILINE)

NumberedMessage = tuple[int, Message]  # the 1-based line where it begins, and the message


def is_session_file(path: str) -> bool:
    """Return whether a transcript is a session file."""
    return path.lower().endswith(SESSION_ENDING)


# Limits the search for multi-line objects in a corrupt text, as a multiple of its length. Objects on one line, as the
# store writes them, are always found.
_MOST_LOOKS = 8


class SessionText(NamedTuple):
    """The messages of a session file, and the problem if it cannot be read as a whole."""

    messages: list[NumberedMessage]
    problem: str = ""
    is_corrupt: bool = False  # it can be repaired


def read_messages(data: bytes) -> SessionText:
    """Return the messages of a session file in any layout; those that can be read if it is corrupt."""
    try:
        text = decode_json5(data)
        if not has_json5() and (lines := _one_a_line(text)):
            return SessionText(_plain_messages(text, lines))
        values = parse_object(text)
        messages = messages_in(values)
        return SessionText(list(zip(_lines_of_elements(text, len(messages)), messages, strict=True)))
    except (Json5Error, SessionInputError) as error:
        saved = []
        elements = whole_elements(data.decode("utf-8", "replace").replace("\x00", "")) if has_json5() else ()
        for line, value in elements:
            try:
                saved.append((line, message_from_json(value)))
            except SessionInputError:
                continue
        reason = error.message if isinstance(error, SessionInputError) else str(error)
        return SessionText(saved, reason, is_corrupt=True)
    except ConversationError as error:  # a newer format, or no JSON5 parser
        return SessionText([], error.full_message)


def messages_in(values: Json) -> list[Message]:
    """Return the messages of a session; raises SessionInputError, or SessionTooNewError for a newer format."""
    check_version(values)
    elements = values.get(MESSAGES.array, [])
    if not isinstance(elements, list):
        raise SessionInputError("messages is not a list", hint="put the messages in brackets")
    messages = []
    for number, element in enumerate(elements, start=1):
        try:
            messages.append(message_from_json(element))
        except SessionInputError as error:
            raise SessionInputError(f"message {number}: {error.message}", hint=error.hint) from error
    return messages


def check_version(values: Json) -> None:
    """Raise SessionTooNewError if a newer release wrote the file."""
    version = values.get("version", 1)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise SessionTooNewError(
            f"session {values.get('sessionId', '')!r} was written by a newer release (format {version})",
            hint="upgrade notewell",
        )


def end_of_messages(file: BinaryIO, size: int) -> tuple[int | None, int]:
    """Return the byte where the messages end, and how many bytes were read to find it.

    None if the file is not in the session store's layout, or was edited since.
    """
    look = 512  # bytes; a foot has about 200
    while True:
        start = max(0, size - look)
        file.seek(start)
        tail = file.read(size - start)
        mark = tail.rfind(_END_MARK)
        if mark >= 0 or not start:
            break
        look *= 16
    end = start + mark + 1
    stated = _END_FIELD.search(tail, mark + len(_END_MARK)) if mark >= 0 else None
    return (end if stated and int(stated[1]) == end else None), len(tail)


def whole_elements(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the messages that can be read in a corrupt text, with their lines; None for each line that cannot."""
    array = MESSAGE_ARRAY.search(text)
    position = array.end() if array else 0
    number = text.count("\n", 0, position) + 1
    budget = _MOST_LOOKS * len(text)
    while position < len(text):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        line = text[position:end].strip()
        if line.startswith("]"):  # the foot comes after it
            return
        if line.startswith("{"):
            start = text.index("{", position)
            stop, looked_at = _end_of_value(text, start, whole_text=budget > 0)
            budget -= looked_at
            yield number, parse_json5(text[start:stop]) if stop else None
            if stop:
                following = text.find("\n", stop)
                end = max(end, following if following >= 0 else len(text))
        elif line and not line.startswith(("//", "/*", "*")):
            yield number, None
        number += text.count("\n", position, end + 1)
        position = end + 1


def _end_of_value(text: str, start: int, *, whole_text: bool) -> tuple[int | None, int]:
    """Return where the object that begins here ends, if it is valid, and the number of characters searched in vain.

    Its own line is tried first, then, with `whole_text`, all that follows.
    """
    line_end = text.find("\n", start)
    line_end = line_end if line_end >= 0 else len(text)
    looked_at = 0
    for end in (line_end, len(text)) if whole_text else (line_end,):
        candidate = text[start:end]
        try:
            stop = container_at(candidate).end
            parse_object(candidate[:stop])
        except Json5Error as error:
            looked_at += len(candidate) if error.position is None else error.position
            continue
        return start + stop, looked_at
    return None, looked_at


def _lines_of_elements(text: str, count: int) -> list[int]:
    """Return the line on which each message begins."""
    lines = _one_a_line(text)
    if len(lines) == count:
        return lines
    item = container_at(text).item(MESSAGES.array)
    if item is None:  # its name is written with escapes
        return [1] * count
    lines, line, seen = [], 1, 0
    for element in container_at(text, item.value_start).items:
        line += text.count("\n", seen, element.start)
        seen = element.start
        lines.append(line)
    return lines


def _plain_messages(text: str, numbers: list[int]) -> list[NumberedMessage]:
    """Return the messages on these lines, which the store writes as plain JSON, without a JSON5 parser."""
    lines = text.split("\n")
    try:
        return [
            (number, message_from_json(json.loads(lines[number - 1].strip().removesuffix(",")))) for number in numbers
        ]
    except ValueError as error:
        raise Json5Error(str(error)) from error


def _one_a_line(text: str) -> list[int]:
    """Return the lines with a message as the store writes it; faster than scanning all tokens."""
    head, found, rest = text.partition(f"\n{MESSAGES.opening}")
    body, ended, _ = rest.rpartition(f"\n{MESSAGES.end_mark}")
    if not (found and ended):
        return []
    first = head.count("\n") + 3
    lines = [(number, line.strip()) for number, line in enumerate(body.split("\n"), start=first)]
    messages = [(number, line) for number, line in lines if line and not line.startswith("//")]
    one_each = all(line.startswith("{") and line.endswith("},") for _, line in messages)
    return [number for number, _ in messages] if one_each else []
