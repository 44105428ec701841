"""A session's files and what is unwanted in, the same files without it out; nothing of what goes is kept anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import SessionInputError
from notewell.sessions.files import replace_file
from notewell.sessions.model import Message, SessionEntry
from notewell.sessions.values import SETTABLE, message_of, message_values

if TYPE_CHECKING:
    from notewell.sessions.session_file import SessionFile

Unwanted = Callable[[str, int], bool]  # asked about a text and its time, in milliseconds since 1970


def unwanted_in(file: SessionFile, files: Sequence[Path], unwanted: Unwanted) -> int:
    """Return how many messages and summaries would go, and one more for the entry; under the lock only."""
    session = file.session(holding=True)
    count = sum(unwanted(_whole(message), message.timestamp) for message in session.messages)
    count += sum(unwanted(summary.content, summary.compacted_at) for summary in session.summaries)
    count += _clean_entry(session.entry, unwanted) != session.entry
    return count + sum(len(_unwanted_lines(path, unwanted)) for path in files if path.suffix == ".jsonl")


def remove_unwanted(file: SessionFile, files: Sequence[Path], unwanted: Unwanted) -> int:
    """Write the session without what is unwanted, and return how many messages and summaries went.

    An entry that says it counts as one more.

    The file is written anew: comments of people go, too, because one of them could be what is to be forgotten. Copies
    of damaged files and journals are deleted whole.
    """
    session = file.session(holding=True)
    messages = [message for message in session.messages if not unwanted(_whole(message), message.timestamp)]
    summaries = [each for each in session.summaries if not unwanted(each.content, each.compacted_at)]
    count = len(session.messages) - len(messages) + len(session.summaries) - len(summaries)
    for path in files:
        if path == file.file.path:
            continue
        if path.suffix != ".jsonl":
            path.unlink(missing_ok=True)
            continue
        gone = _unwanted_lines(path, unwanted)
        if gone:
            lines = path.read_text(encoding="utf-8").split("\n")
            kept = "\n".join(line for number, line in enumerate(lines) if number not in gone)
            replace_file(path, kept.encode())
            count += len(gone)
    entry = _clean_entry(session.entry, unwanted)
    count += entry != session.entry
    if count:
        file.create(entry, messages, summaries)
    return count


def _clean_entry(entry: SessionEntry, unwanted: Unwanted) -> SessionEntry:
    """Return the entry without fields that say it, such as a title, or notes that wait to be written."""
    said = {name: getattr(entry, name) for name in SETTABLE}
    gone = {name: None for name, value in said.items() if value is not None and unwanted(_as_text(value), 0)}
    extra = {name: value for name, value in entry.extra.items() if not unwanted(_as_text(value), 0)}
    return replace(entry, **gone, extra=extra)  # type: ignore[arg-type]  # every one of them may be None


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _whole(message: Message) -> str:
    """Return everything a message says: text, thoughts, tool calls and fields of others."""
    return f"{message.text}\n{json.dumps(message_values(message), ensure_ascii=False, default=str)}"


def _unwanted_lines(path: Path, unwanted: Unwanted) -> set[int]:
    gone = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            message = message_of(values.get("message", values) if isinstance(values, dict) else values)
            hit = unwanted(_whole(message), message.timestamp)
        except (ValueError, SessionInputError):
            hit = unwanted(line, 0)
        if hit:
            gone.add(number)
    return gone
