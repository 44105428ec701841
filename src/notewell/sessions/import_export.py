"""Imports conversations from transcripts (JSONL) and session files (JSON5, JSON), and exports them as JSONL.

Exports look like OpenClaw's transcripts. Those of Claude Code and Codex can be imported as well, with their tool calls,
thoughts and token counts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import SessionExistsError, SessionInputError
from notewell.sessions.model import (
    COUNTED,
    Session,
    SessionEntry,
    SessionKind,
    Summary,
    entry_from_json,
    entry_to_json,
    summaries_in,
    summary_from_json,
    summary_to_json,
)
from notewell.sessions.session_folder import new_id
from notewell.sources.transcripts import (
    COMPACTED,
    CORRUPT,
    GROUPS,
    REGISTRY,
    SESSION_ENDING,
    checked_id,
    id_of_group,
    is_new_id,
)
from notewell.sources.transcripts.json5 import Json5Error, decode_json5, parse_object, write_json
from notewell.sources.transcripts.messages import (
    Json,
    Message,
    Parsed,
    message_to_json,
    milliseconds,
    now_ms,
    parse_record,
)
from notewell.sources.transcripts.session_files import FORMAT_VERSION, messages_in

if TYPE_CHECKING:
    from notewell.sessions.store import ConversationStore

SESSION_FILES = (SESSION_ENDING, ".json")  # one conversation each; other files are JSONL
_NOT_CONVERSATIONS = frozenset({REGISTRY, "registry.json", "sessions.json"})  # the last is OpenClaw's registry
_LEFT_FOLDERS = frozenset({CORRUPT, COMPACTED, "node_modules"})  # corrupt copies and compacted messages
LONGEST_LINE = 64 * 2**20  # characters; longer lines are images or mistakes, and are skipped


@dataclass(frozen=True, slots=True)
class Imported:
    """A conversation read from a transcript, and the number of skipped records by reason."""

    session: Session
    left_out: Mapping[str, int] = field(default_factory=dict)
    added: int = 0  # messages that were not stored before


def export_lines(session: Session) -> Iterator[str]:
    """Yield the conversation as lines of JSON, the session's own line first."""
    entry = replace(session.entry, compacted_files=())  # an export holds only what the session holds
    head = {"type": "session", "version": FORMAT_VERSION, "id": session.entry.session_id}
    yield write_json(head | {"timestamp": _iso(session.entry.created_at)} | {"entry": entry_to_json(entry)})
    for summary in session.summaries:
        yield write_json({"type": "compaction", "timestamp": _iso(summary.compacted_at)} | summary_to_json(summary))
    for message in session.messages:
        line = {"type": "message", "id": message.id, "timestamp": _iso(message.timestamp)}
        yield write_json(line | {"message": message_to_json(message)})


def files_to_import(folder: Path) -> list[Path]:
    """Return the transcripts and session files in a folder and those below it, sorted; links are not followed."""
    found: list[Path] = []
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _LEFT_FOLDERS]
        found += (
            Path(top, name)
            for name in names
            if name.lower().endswith((".jsonl", *SESSION_FILES))
            and not name.startswith(".")
            and name not in _NOT_CONVERSATIONS
        )
    return sorted(path for path in found if not path.is_symlink())


def import_file(
    store: ConversationStore, path: Path, *, session_id: str = "", kind: SessionKind | None = None
) -> tuple[Imported, SessionEntry]:
    """Import a transcript or a session file; if the conversation is already stored, append its new messages.

    The session's id is the given one, else that in the file, else one derived from the file's name. Raises
    SessionExistsError if another conversation has the id.
    """
    path = path.expanduser()
    if path.suffix.lower() in SESSION_FILES:
        imported = _from_session_file(path, session_id, kind)
    else:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            imported = import_lines(lines, session_id=session_id, fallback_id=id_of_group(path.stem.lower()), kind=kind)
    entry, added = merge(store, imported.session)
    return replace(imported, added=added), entry


def merge(store: ConversationStore, session: Session) -> tuple[SessionEntry, int]:
    """Store a conversation, or append its new messages if it is already stored.

    Returns the session's entry and the number of new messages. Compacted messages count as stored. Raises
    SessionExistsError if another conversation has the id.
    """
    entry = session.entry
    same_group = entry.group_id if entry.group_id and store.exists(entry.group_id) else None
    if not same_group:
        try:
            return store.restore(session), len(session.messages)
        except SessionExistsError:
            pass
    store.sweep(wait=True)  # pending archives of killed compactions count as stored
    known = store.entry(same_group or entry.session_id)
    messages = _complete(store.get(known.session_id).messages, known.created_at)  # files of other programs may lack ids
    stored = [*messages, *_compacted(store, known.session_id)]
    new = _unknown(session.messages, stored)
    is_other = stored and session.messages and len(new) == len(session.messages)
    if is_other or known.kind != entry.kind:  # private messages must not end up in a group
        raise SessionExistsError(known.session_id)
    if new:
        store.append(known.session_id, *new)
    return store.entry(known.session_id), len(new)


def _compacted(store: ConversationStore, session_id: str) -> Iterator[Message]:
    for path in store.files_of(session_id):
        if path.suffix == ".jsonl":
            # Nothing to import if every message in it was forgotten.
            with path.open(encoding="utf-8", errors="replace", newline="\n") as lines, suppress(SessionInputError):
                yield from import_lines(lines).session.messages


def _unknown(messages: Iterable[Message], stored: Iterable[Message]) -> list[Message]:
    """Return the messages that are not stored, by id or by content and time."""
    ids, said = set(), Counter[tuple[object, ...]]()
    for message in stored:
        ids.add(message.id)
        said[_what_is_said(message)] += 1
    new = []
    for message in messages:
        known = said[_what_is_said(message)] > 0
        said[_what_is_said(message)] -= known
        if not known and message.id not in ids:
            new.append(message)
    return new


def _what_is_said(message: Message) -> tuple[object, ...]:
    return message.role, message.timestamp, message.tool_call_id, message.text


def _from_session_file(path: Path, session_id: str, kind: SessionKind | None) -> Imported:
    """Return the conversation in a JSON5 or JSON file; in a folder `groups`, files are named after the group's id."""
    try:
        values = parse_object(decode_json5(path.read_bytes()))
    except Json5Error as error:
        raise SessionInputError(f"cannot be read as a session: {error}", hint="fix it by hand") from error
    stated, group_id = values.get("sessionId"), values.get("groupId")
    if path.parent.name == GROUPS:
        stated, kind = id_of_group(path.stem), kind or "group"
        group_id = group_id or path.stem
    head: Json = {
        "id": stated,
        "timestamp": values.get("createdAt"),
        "entry": values | ({"groupId": group_id} if group_id else {}),
    }
    fallback_id = id_of_group(path.stem.lower())
    return _imported(head, messages_in(values), summaries_in(values), session_id, fallback_id, kind=kind)


def import_lines(
    lines: Iterable[str], *, session_id: str = "", fallback_id: str = "", kind: SessionKind | None = None
) -> Imported:
    """Return the conversation in a transcript; raises SessionInputError if it has no messages.

    Its id is `session_id`, else that in the transcript, else `fallback_id`, else a new one.
    """
    head: Json = {}
    messages: list[Message] = []
    summaries: list[Summary] = []
    left_out: Counter[str] = Counter()
    usage_seen: set[str] = set()
    for parsed in map(_parsed, filter(str.strip, lines)):
        if parsed.left_out:
            left_out[parsed.left_out] += 1
        head = {**parsed.head, **head}
        if parsed.summary and (summary := _summary(parsed.summary)):
            summaries.append(summary)
        again = parsed.usage_id in usage_seen  # an answer over several lines repeats its token counts
        messages += (replace(message, usage=None) if again else message for message in parsed.messages)
        if parsed.usage_id:
            usage_seen.add(parsed.usage_id)
    found = _imported(head, messages, summaries, session_id, fallback_id, kind=kind)
    return replace(found, left_out=dict(left_out))


def _summary(record: Json) -> Summary | None:
    unknown = {"type", "id", "parentId", "timestamp", "summary"}
    summary = summary_from_json({key: value for key, value in record.items() if key not in unknown})
    if summary is None or not summary.content:
        return None
    return replace(summary, compacted_at=summary.compacted_at or milliseconds(record.get("timestamp")))


def _imported(
    head: Json,
    messages: list[Message],
    summaries: list[Summary],
    session_id: str,
    fallback_id: str,
    *,
    kind: SessionKind | None,
) -> Imported:
    if not messages and not summaries:
        raise SessionInputError(
            "it contains no message to import",
            hint="import a transcript (JSONL) of OpenClaw, Claude Code, Codex or `notewell sessions export`, or a "
            "session file (JSON5, JSON)",
        )
    stated = head["id"].lower() if isinstance(head.get("id"), str) else ""
    name = checked_id(session_id or (stated if is_new_id(stated) else "") or fallback_id or new_id())
    known = head.get("entry")
    values = {key: value for key, value in known.items() if key not in COUNTED} if isinstance(known, Mapping) else {}
    first = min((message.timestamp for message in messages if message.timestamp), default=0)
    values.setdefault("createdAt", milliseconds(head.get("timestamp")) or first)
    chosen: SessionKind = kind or ("group" if values.get("kind") == "group" else "direct")
    entry = entry_from_json(values, kind=chosen, session_id=name, session_file="")
    return Imported(Session(entry, tuple(_complete(messages, entry.created_at)), tuple(summaries)))


def _complete(messages: Iterable[Message], created_at: int) -> Iterator[Message]:
    """Yield the messages with ids, if need be made from the content, and times, if need be of the message before."""
    last_time = created_at or now_ms()
    seen = Counter[str]()
    for message in messages:
        last_time = message.timestamp or last_time
        said = json.dumps(_what_is_said(message))
        seen[said] += 1
        own_id = message.id or hashlib.sha256(f"{seen[said]} {said}".encode()).hexdigest()[:12]
        yield replace(message, id=own_id, timestamp=last_time)


def _parsed(line: str) -> Parsed:
    if len(line) > LONGEST_LINE:
        return Parsed(left_out="too long")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return Parsed(left_out="not JSON")
    return parse_record(record) if isinstance(record, Mapping) else Parsed(left_out="not a record")


def _iso(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
