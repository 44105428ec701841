"""Reads and changes the file of a session, and salvages corrupt ones."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from notewell.errors import SessionDamagedError, SessionInputError, SessionNotFoundError
from notewell.sessions.append_journal import locked, overwrite_end, recover, replace_file
from notewell.sessions.model import (
    COUNTED,
    Session,
    SessionEntry,
    SessionKind,
    Summary,
    camel,
    entry_from_json,
    entry_to_json,
    summaries_in,
    summary_from_json,
    summary_to_json,
)
from notewell.sources.transcripts.json5 import (
    Json5Error,
    Parts,
    decode_json5,
    element_lines,
    parse_json5,
    parse_object,
    with_appended,
    write_json,
)
from notewell.sources.transcripts.messages import (
    Json,
    Message,
    message_from_json,
    message_to_json,
    milliseconds,
    now_ms,
    tokens_of,
)
from notewell.sources.transcripts.session_files import (
    FORMAT_VERSION,
    MESSAGE_ARRAY,
    MESSAGES,
    check_version,
    messages_in,
    whole_elements,
)

FIRST_LOOK = 4096  # bytes read at either end of a file; a head has about 500, a foot 200


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The file of a session, with its lock and journal; nothing is held open."""

    path: Path
    lock: Path
    journal: Path
    timeout_s: float
    session_id: str
    kind: SessionKind
    place: str  # below the store's folder

    def locked(self) -> AbstractContextManager[None]:
        """Hold the lock of this session."""
        return locked(self.lock, self.timeout_s, f"session {self.session_id!r}")

    def exists(self) -> bool:
        """Return whether the file exists; links do not count."""
        return self.path.is_file() and not self.path.is_symlink()

    # --- reading -----------------------------------------------------------------------------

    def session(self, *, holding: bool = False) -> Session:
        """Return the whole conversation; `holding` says that the caller has the lock."""
        values = self._read(lambda: parse_object(self._text()), holding=holding)
        try:
            messages = tuple(messages_in(values))
        except SessionInputError as error:
            raise self._corrupt(error.message) from error
        return Session(self._entry_of(values), messages, tuple(summaries_in(values)))

    def entry(self, *, holding: bool = False) -> SessionEntry:
        """Return the session's entry; in our own layout messages are not read."""
        return self._entry_of(self._read(self._ends, holding=holding))

    def entry_from(self, values: Json, *, damage: str) -> SessionEntry:
        """Return the entry of a session whose file cannot be read, from the registry."""
        entry = entry_from_json(values, kind=self.kind, session_id=self.session_id, session_file=self.place)
        return replace(entry, damage=damage)

    def _text(self) -> str:
        return decode_json5(self.path.read_bytes())

    def _read(self, look: Callable[[], dict[str, Any]], *, holding: bool) -> dict[str, Any]:
        """Look without the lock; if the file looks broken, look again under it, when nobody is writing."""
        try:
            try:
                values = look()
            except Json5Error:
                if holding or not os.access(self.path, os.W_OK):  # cannot be fixed without permission to write
                    raise
                with self.locked():
                    recover(self.path, self.journal)
                    values = look()
        except Json5Error as error:
            raise self._corrupt(str(error)) from error
        except FileNotFoundError as error:
            raise SessionNotFoundError(self.session_id) from error
        check_version(values)
        return values

    def _ends(self) -> dict[str, Any]:
        """Return the head and the foot; also the messages if the file is not in our layout."""
        with self.path.open("rb") as file:
            head, found, _ = file.read(FIRST_LOOK).partition(f"\n{MESSAGES.opening}".encode())
            parts, _ = _end_of(file)
        if not found or parts is None:
            return parse_object(self._text())
        values = parse_object(decode_json5(head) + "\n}")
        values.pop(MESSAGES.array, None)
        return values | parts.values

    def _entry_of(self, values: dict[str, Any]) -> SessionEntry:
        if "messages" in values:  # the foot may be older than edits above it
            try:
                values = values | _counted(values)
            except SessionInputError as error:
                raise self._corrupt(error.message) from error
        return entry_from_json(values, kind=self.kind, session_id=self.session_id, session_file=self.place)

    def _corrupt(self, reason: str) -> SessionDamagedError:
        return SessionDamagedError(
            f"the file of session {self.session_id!r} cannot be read: {reason}",
            hint=f"fix {self.path} by hand, or run `notewell sessions repair {shlex.quote(self.session_id)}`",
            path=self.path,
        )

    # --- writing; under the lock only ----------------------------------------------------------

    def recover(self) -> None:
        """Finish an interrupted append."""
        recover(self.path, self.journal)

    def replace(self, text: str) -> None:
        """Create or replace the file."""
        replace_file(self.path, text.encode())

    def append(self, messages: Sequence[Message]) -> tuple[int, int]:
        """Append messages and return where they begin and end; only the end of the file is written.

        A file that was edited, or written by another release, is first brought into our layout. Raises Json5Error if it
        cannot be read.
        """
        return self._append(messages, lambda foot: _foot_after(foot, messages))

    def set_state(self, values: Json) -> None:
        """Set fields of the foot."""
        changes = {camel(name): value for name, value in values.items()}
        try:
            self._append([], lambda _: changes)
        except Json5Error as error:
            raise self._corrupt(str(error)) from error

    def set_fields(self, values: Json) -> None:
        """Set fields of the head."""
        changes = {camel(name): value for name, value in values.items()}
        self._change(lambda text: MESSAGES.set_head(text, changes))

    def compact(self, count: int, summary: Summary, archives: Sequence[str]) -> None:
        """Replace the first `count` messages, which are in the last archive, with the summary."""
        done = self.entry(holding=True).compaction_count

        def change(text: str) -> str:
            text = MESSAGES.without_elements(text, 0, count)
            text = MESSAGES.set_head(text, {"compactionCount": done + 1, "compactedFiles": list(archives)})
            return with_appended(text, "compactedHistory", summary_to_json(summary), before=MESSAGES.array)

        self._change(change)

    def take_last(self) -> Message | None:
        """Remove the last message and return it."""
        messages = self.session(holding=True).messages
        if messages:
            self._change(lambda text: MESSAGES.without_elements(text, len(messages) - 1, len(messages)))
        return messages[-1] if messages else None

    def _append(self, messages: Sequence[Message], foot: Callable[[Json], Json]) -> tuple[int, int]:
        self.recover()
        parts, offset = self._end()
        if parts is None:
            self._rewrite(lambda text: text)
            parts, offset = self._end()
            assert parts is not None, "what was just arranged is in our layout"
        lines = element_lines([message_to_json(message) for message in messages])
        end_byte = offset + len(lines.encode())
        new = lines + MESSAGES.end_of(end_byte, parts.foot, foot(parts.values))
        overwrite_end(self.path, self.journal, offset, new.encode())
        return offset, end_byte

    def _change(self, change: Callable[[str], str]) -> None:
        try:
            self.recover()
            self._rewrite(change)
        except Json5Error as error:
            raise self._corrupt(str(error)) from error

    def _rewrite(self, change: Callable[[str], str]) -> None:
        """Replace the file with what `change` makes of its text, in our layout."""
        text = change(self._text())
        values = parse_object(text)
        try:
            foot = _counted(values)
        except SessionInputError as error:
            raise Json5Error(error.message) from error
        if values.get("version") != FORMAT_VERSION:
            text = MESSAGES.set_head(text, {"version": FORMAT_VERSION})
        parts = MESSAGES.arrange(text)
        self.replace(MESSAGES.join(parts.body, parts.foot, foot))

    def _end(self) -> tuple[Parts | None, int]:
        with self.path.open("rb") as file:
            return _end_of(file)


def _end_of(file: BinaryIO) -> tuple[Parts | None, int]:
    """Return the end of a file in parts and the offset of its end mark; no parts if the file is not in our layout."""
    size, look = file.seek(0, 2), FIRST_LOOK
    while True:
        file.seek(max(0, size - look))
        parts = MESSAGES.parts_of_end(file.read().decode("utf-8", "ignore"))
        if parts or look >= size:
            break
        look *= 16
    offset = size - len(parts.foot.encode()) - len(MESSAGES.end_mark) if parts else 0
    return (parts, offset) if parts and parts.values.get(MESSAGES.end_field) == offset else (None, 0)


def text_of(entry: SessionEntry, messages: Sequence[Message] = (), summaries: Sequence[Summary] = ()) -> str:
    """Return the text of a new file."""
    head: dict[str, Any] = {"version": FORMAT_VERSION, **entry_to_json(entry)}
    if summaries:
        head["compactedHistory"] = [summary_to_json(summary) for summary in summaries]
    last = max((message.timestamp for message in messages), default=0)
    foot = _foot_after({}, messages) | {"updatedAt": max(entry.updated_at, entry.created_at, last)}
    if entry.memory_flush_at:
        foot["memoryFlushAt"] = entry.memory_flush_at
    return MESSAGES.new_text(head, [message_to_json(message) for message in messages], foot)


def as_stored(message: Message) -> Message:
    """Return the message with an id and a time, exactly as it will be read back; raises SessionInputError."""
    message = replace(message, timestamp=message.timestamp or now_ms(), id=message.id or secrets.token_hex(6))
    return message_from_json(json.loads(write_json(message_to_json(message))))


def _counted(values: Json) -> dict[str, Any]:
    """Return the foot for these messages. Token counts are kept even if messages were deleted."""
    messages = messages_in(values)
    last = max((message.timestamp for message in messages), default=0)
    foot: dict[str, Any] = {
        "updatedAt": max(milliseconds(values.get("updatedAt")), last),
        "messageCount": len(messages),
    }
    for position, name in enumerate(("inputTokens", "outputTokens")):
        if not isinstance(values.get(name), int):
            foot[name] = sum(tokens_of(message.usage or {})[position] for message in messages)
    return foot


def _foot_after(foot: Json, messages: Sequence[Message]) -> dict[str, Any]:
    """Return the foot after an append."""
    added = [tokens_of(message.usage or {}) for message in messages]
    updated_at = _number(foot, "updatedAt")
    return {
        "updatedAt": max(now_ms(), updated_at) if messages else updated_at,
        "messageCount": _number(foot, "messageCount") + len(messages),
        "inputTokens": _number(foot, "inputTokens") + sum(tokens[0] for tokens in added),
        "outputTokens": _number(foot, "outputTokens") + sum(tokens[1] for tokens in added),
    }


def _number(values: Json, name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0


# --- corrupt files --------------------------------------------------------------------------------

_HEAD_LINE = re.compile(r"""^ {0,4}["']?(\w+)["']?\s*:\s*(.+)$""")


def salvage(file: SessionFile, data: bytes, known: Json) -> tuple[str, int, int]:
    """Return a valid text of what can be read, the number of messages saved and of lines lost.

    Fields that cannot be read come from `known`, the registry's copy.
    """
    text = data.decode("utf-8", "replace").replace("\x00", "")
    array = MESSAGE_ARRAY.search(text)
    head = _fields(text[: array.start()] if array else "")
    messages: list[Message] = []
    summaries: list[Summary] = []
    lost = 0
    for _, value in whole_elements(text):
        summary = summary_from_json(value) if isinstance(value, dict) and "originalMessageCount" in value else None
        if summary:
            summaries.append(summary)
            continue
        try:
            messages.append(message_from_json(value))
        except SessionInputError:
            lost += 1
    summaries = [*summaries_in(head), *summaries]
    _, found, foot = text.rpartition("\n" + MESSAGES.end_mark)  # above all what was already flushed to the notes
    values = {**known, **head, **(_fields("{\n" + foot.rstrip().removesuffix("}")) if found else {})}
    values = {key: value for key, value in values.items() if key not in COUNTED}
    entry = entry_from_json(values, kind=file.kind, session_id=file.session_id, session_file=file.place)
    return text_of(entry, messages, summaries), len(messages), lost


def _fields(head: str) -> dict[str, Any]:
    """Return the fields of the head; if it is invalid, those that can be read line by line."""
    try:
        return parse_object(head + "\n}")
    except Json5Error:
        found: dict[str, Any] = {}
        for line in head.split("\n"):
            match = _HEAD_LINE.match(line)
            if match:
                try:
                    found[match[1]] = parse_json5(match[2].rstrip().removesuffix(","))
                except Json5Error:
                    continue
        return found
