"""One session's file: messages and fields come in, the session out; every change keeps what it is not about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from notewell.errors import SessionDamagedError, SessionInputError, SessionNotFoundError, SessionTooNewError
from notewell.sessions.array_file import ArrayFile, Span
from notewell.sessions.ids import SessionKind
from notewell.sessions.json5 import Json5Error, write_json
from notewell.sessions.layout import Layout, new_text, set_head, with_appended, without_elements
from notewell.sessions.model import FORMAT_VERSION, Message, Session, SessionEntry, Summary
from notewell.sessions.values import (
    camel,
    entry_of,
    entry_values,
    message_of,
    message_values,
    milliseconds,
    now_ms,
    numbered,
    summary_of,
    summary_values,
    tokens_of,
)

MESSAGES = Layout(
    "messages",
    "A conversation, kept by notewell. You may edit it; comments and fields of your own are kept.\n"
    "One message a line, the newest last.",
)


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A session's file, where it lies, and what that says of it."""

    file: ArrayFile
    session_id: str
    kind: SessionKind
    place: str  # below the store's folder

    # --- reading -----------------------------------------------------------------------------

    def session(self, *, holding: bool = False) -> Session:
        """Return the whole conversation; `holding`: under the lock."""
        values = self._read(whole=True, holding=holding)
        try:
            messages = tuple(message_of(each) for each in _list(values.get("messages")))
        except SessionInputError as error:
            raise self._damaged(error.message) from error
        summaries = [summary_of(each) for each in _list(values.get("compactedHistory"))]
        return Session(self._entry_of(values), messages, tuple(each for each in summaries if each))

    def entry(self, *, holding: bool = False) -> SessionEntry:
        """Return what is known of the session beside its messages."""
        return self._entry_of(self._read(whole=False, holding=holding))

    def entry_from(self, values: Mapping[str, Any], *, damage: str) -> SessionEntry:
        """Return what the registry knows of a session whose file cannot be read."""
        entry = entry_of(values, kind=self.kind, session_id=self.session_id, session_file=self.place)
        return replace(entry, damage=damage)

    def _read(self, *, whole: bool, holding: bool) -> dict[str, Any]:
        try:
            values = self.file.read(holding=holding) if whole else self.file.read_ends(holding=holding)
        except Json5Error as error:
            raise self._damaged(str(error)) from error
        except FileNotFoundError as error:
            raise SessionNotFoundError(self.session_id) from error
        check_version(values)
        return values

    def _entry_of(self, values: dict[str, Any]) -> SessionEntry:
        if "messages" in values:  # the foot may be older than what a person wrote above it
            try:
                values = values | counted(values)
            except SessionInputError as error:
                raise self._damaged(error.message) from error
        return entry_of(values, kind=self.kind, session_id=self.session_id, session_file=self.place)

    def _damaged(self, reason: str) -> SessionDamagedError:
        return SessionDamagedError(
            f"the file of session {self.session_id!r} cannot be read: {reason}",
            hint=f"mend {self.file.path} by hand, or run `notewell sessions repair {self.session_id}`",
            path=self.file.path,
        )

    # --- writing; under the lock only ----------------------------------------------------------

    def create(self, entry: SessionEntry, messages: Sequence[Message] = (), summaries: Sequence[Summary] = ()) -> None:
        """Write a new file."""
        self.file.replace(text_of(entry, messages, summaries))

    def append(self, messages: Sequence[Message]) -> Span:
        """Write messages behind the last one. Raises Json5Error where the file cannot be read."""
        elements = [message_values(message) for message in messages]
        return self.file.append(elements, lambda foot: _foot_after(foot, messages), adopted)

    def set_state(self, values: Mapping[str, Any]) -> None:
        """Set fields of the foot."""
        changes = {camel(name): value for name, value in values.items()}
        try:
            self.file.append([], lambda _: changes, adopted)
        except Json5Error as error:
            raise self._damaged(str(error)) from error

    def set_fields(self, values: Mapping[str, Any]) -> None:
        """Set fields of the head."""
        changes = {camel(name): value for name, value in values.items()}
        self._rewrite(lambda text: set_head(MESSAGES, text, changes))

    def compact(self, count: int, summary: Summary) -> None:
        """Let the summary take the place of the first `count` messages."""
        done = self.entry(holding=True).compaction_count

        def change(text: str) -> str:
            text = without_elements(MESSAGES, text, 0, count)
            text = set_head(MESSAGES, text, {"compactionCount": done + 1})
            return with_appended(text, "compactedHistory", summary_values(summary), before=MESSAGES.array)

        self._rewrite(change)

    def take_last(self) -> Message | None:
        """Take the last message away and return it."""
        messages = self.session(holding=True).messages
        if messages:
            self._rewrite(lambda text: without_elements(MESSAGES, text, len(messages) - 1, len(messages)))
        return messages[-1] if messages else None

    def _rewrite(self, change: Any) -> None:
        try:
            self.file.recover()
            self.file.rewrite(change, adopted)
        except Json5Error as error:
            raise self._damaged(str(error)) from error


def text_of(entry: SessionEntry, messages: Sequence[Message] = (), summaries: Sequence[Summary] = ()) -> str:
    """Return the text of a new file."""
    head: dict[str, Any] = {"version": FORMAT_VERSION, **entry_values(entry)}
    if summaries:
        head["compactedHistory"] = [summary_values(summary) for summary in summaries]
    last = max((message.timestamp for message in messages), default=0)
    foot = _foot_after({}, messages) | {"updatedAt": max(entry.updated_at, entry.created_at, last)}
    if entry.memory_flush_at:
        foot["memoryFlushAt"] = entry.memory_flush_at
    return new_text(MESSAGES, head, [message_values(message) for message in messages], foot)


def as_stored(message: Message) -> Message:
    """Return the message with an id and a time, exactly as it will be read again; raises SessionInputError."""
    written: Any = json.loads(write_json(message_values(numbered(message))))
    return message_of(written)


def check_version(values: Mapping[str, Any]) -> None:
    """Raise SessionTooNewError when a newer release wrote this."""
    version = values.get("version", 1)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise SessionTooNewError(
            f"session {values.get('sessionId', '')!r} was written by a newer release (format {version})",
            hint="upgrade notewell",
        )


def adopted(values: dict[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return what head and foot of a file must hold that is brought into our layout, whoever wrote it."""
    check_version(values)
    try:
        foot = counted(values)
    except SessionInputError as error:
        raise Json5Error(error.message) from error
    head = {} if values.get("version") == FORMAT_VERSION else {"version": FORMAT_VERSION}
    return head, foot


def counted(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the foot must say of these messages. Tokens that were used stay used, whatever is deleted."""
    messages = [message_of(each) for each in _list(values.get("messages"))]
    last = max((message.timestamp for message in messages), default=0)
    foot: dict[str, Any] = {
        "updatedAt": max(milliseconds(values.get("updatedAt")), last),
        "messageCount": len(messages),
    }
    for position, name in enumerate(("inputTokens", "outputTokens")):
        if not isinstance(values.get(name), int):
            foot[name] = sum(tokens_of(message)[position] for message in messages)
    return foot


def _foot_after(foot: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    """Return the foot after an append."""
    added = [tokens_of(message) for message in messages]
    return {
        "updatedAt": max(now_ms(), _number(foot, "updatedAt")) if messages else _number(foot, "updatedAt"),
        "messageCount": _number(foot, "messageCount") + len(messages),
        "inputTokens": _number(foot, "inputTokens") + sum(tokens[0] for tokens in added),
        "outputTokens": _number(foot, "outputTokens") + sum(tokens[1] for tokens in added),
    }


def _number(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
