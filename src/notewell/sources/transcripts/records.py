"""One line of a transcript in, what it says out: a message, a reason to leave it out, or that it cannot be read.

The format is told by each record, not by the file: programs put records of other kinds first, and change over time.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from notewell.sources.transcripts.formats import claude_code, codex, openclaw, plain
from notewell.sources.transcripts.messages import LeftOut, Message, Record


class Format(Protocol):
    """What a module of `formats` offers."""

    def recognises(self, record: Record, /) -> bool: ...

    def message_in(self, record: Record, /) -> Message | LeftOut: ...


FORMATS: tuple[Format, ...] = (openclaw, claude_code, codex, plain)


class NotARecord(ValueError):  # noqa: N818 - a finding about a line, told in the report
    """The line is no JSON object."""


def record_in(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line. Raises NotARecord when it holds none."""
    try:
        try:
            record = json.loads(line)
        except UnicodeDecodeError:
            record = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:  # nested thousands deep, a number with thousands of digits, no JSON
        raise NotARecord from error
    if not isinstance(record, dict):
        raise NotARecord
    return record


def message_of(record: Record) -> Message | LeftOut:
    """Return what a record says, whichever program wrote it."""
    for form in FORMATS:
        if form.recognises(record):
            return form.message_in(record)
    return LeftOut.NO_MESSAGE
