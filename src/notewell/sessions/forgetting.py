"""Removes messages from a session and all its files, and restores what was removed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from notewell.errors import SessionExistsError, SessionInputError, SessionNotFoundError
from notewell.files.no_follow import read_regular
from notewell.sessions.append_journal import replace_file
from notewell.sessions.model import SETTABLE, Session, SessionEntry, entry_from_json, summaries_in
from notewell.sessions.session_file import text_of
from notewell.sessions.session_folder import ARCHIVE_ENDING, SessionFolder, key_of, message_in_line
from notewell.sources.transcripts import TOP, session_at
from notewell.sources.transcripts.json5 import decode_json5, parse_object
from notewell.sources.transcripts.messages import Message, message_to_json
from notewell.sources.transcripts.session_files import messages_in
from notewell.sources.walk import parts_of

Unwanted = Callable[[str, int], bool]  # asked about a text and its time, in milliseconds since 1970


@dataclass(frozen=True, slots=True)
class LostPart:
    """A session, or the part of it, that is about to be removed; `put_back` restores it."""

    session_id: str
    files: Mapping[str, bytes]  # before the removal, by path below the folder
    messages: tuple[str, ...] = ()  # keys of the messages that go
    left: str = ""  # hash of what is left of the session's own file; empty: the whole session goes


Keep = Callable[[LostPart], None]


def remove_unwanted(
    files: SessionFolder, session_id: str, unwanted: Unwanted, *, dry_run: bool, keep: Keep | None = None
) -> tuple[int, bool]:
    """Remove what is unwanted, under the session's lock; return how much, and whether the session's own file changed.

    See `ConversationStore.remove_messages`.
    """
    file = files.find(session_id)
    if file is None:  # somebody deleted its file; others may be left
        if not files.files_of(session_id):
            raise SessionNotFoundError(session_id)
        if keep:
            keep(LostPart(session_id, files.contents_of(session_id), left=_hash(b"")))
        return _remove_beside(files, session_id, None, unwanted, found=0, dry_run=dry_run), False
    file.recover()
    session = file.session(holding=True)
    files.archives(session_id).settle(session.entry.compacted_files)
    messages = [each for each in session.messages if not unwanted(_everything_in(each), each.timestamp)]
    summaries = [each for each in session.summaries if not unwanted(each.content, each.compacted_at)]
    entry = _without_unwanted(session.entry, unwanted)
    count = len(session.messages) - len(messages) + len(session.summaries) - len(summaries)
    count += entry != session.entry
    new = text_of(entry, messages, summaries)
    # Comments that people wrote are in no message; rewriting the file removes them.
    count += not count and not unwanted(new, 0) and _holds_unwanted(file.path, unwanted, dated=False)
    if keep and (count or _remove_beside(files, session_id, file.path, unwanted, found=0, dry_run=True)):
        kept_keys = {key_of(each) for each in messages}
        gone = tuple(key for each in session.messages if (key := key_of(each)) not in kept_keys)
        keep(LostPart(session_id, files.contents_of(session_id), gone, _hash(new.encode())))
    count = _remove_beside(files, session_id, file.path, unwanted, found=count, dry_run=dry_run)
    changed = bool(count) and not dry_run
    if changed:
        file.replace(new)
    return count, changed


def put_back(files: SessionFolder, lost: LostPart) -> bool:
    """Restore what a session lost, under its lock; return whether its own file was written.

    See `ConversationStore.put_back`.
    """
    own = next((place for place in lost.files if session_at(f"{TOP}/{place}")), None)
    file = files.find(lost.session_id)
    if file and not lost.left:
        if own and file.path.read_bytes() == lost.files[own]:
            return False  # the process was killed before it was deleted
        raise SessionExistsError(lost.session_id)
    for place, data in lost.files.items():
        path = _path_of(files, place)
        if place != own and (not path.exists() or _holds_part_of(path, data)):
            replace_file(path, data)
    if own is None:  # somebody had deleted the session's own file
        return False
    if file is None or _hash(file.path.read_bytes()) == lost.left:
        replace_file(file.path if file else _path_of(files, own), lost.files[own])
    else:
        file.recover()
        file.replace(_with_lost(file.session(holding=True), lost.files[own], lost.messages))
    return True


def _path_of(files: SessionFolder, place: str) -> Path:
    """Return the path of a file of the store; raises SessionInputError for others."""
    if not place or parts_of(place) is None:
        raise SessionInputError(f"{place!r} is no file of a session", hint="it cannot be restored")
    return files.path / place


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _holds_part_of(path: Path, data: bytes) -> bool:
    """Return whether a file holds only lines that it held before."""
    return set(path.read_bytes().split(b"\n")) <= set(data.split(b"\n"))


def _with_lost(session: Session, before: bytes, keys: Collection[str]) -> str:
    """Return a session's text with the lost messages, each after the one that it followed."""
    values = parse_object(decode_json5(before))
    messages = list(session.messages)
    known = [key_of(message) for message in messages]
    at = 0  # after the nearest earlier message that is still there
    for message in messages_in(values):
        key = key_of(message)
        if key in keys and key not in known:
            messages.insert(at, message)
            known.insert(at, key)
        at = known.index(key) + 1 if key in known else at
    old = entry_from_json(values, kind=session.entry.kind, session_id=session.entry.session_id, session_file="")
    missing = {name: getattr(old, name) for name in SETTABLE if getattr(session.entry, name) is None}
    entry = replace(session.entry, **missing, extra={**old.extra, **session.entry.extra})
    lost = [each for each in summaries_in(values) if each not in session.summaries]
    return text_of(entry, messages, [*lost, *session.summaries])


# --- what is unwanted ----------------------------------------------------------------------------


def _remove_beside(
    files: SessionFolder, session_id: str, own: Path | None, unwanted: Unwanted, *, found: int, dry_run: bool
) -> int:
    """Remove messages from a session's other files; returns the number of removals, including `found`.

    A corrupt copy that contains something unwanted counts as one. If anything was found, all such copies are deleted: a
    copy may contain half of it.
    """
    beside = [path for path in files.files_of(session_id) if path != own]
    copies = [path for path in beside if path.suffix != ARCHIVE_ENDING]
    found += sum(_remove_lines(path, unwanted, dry_run=dry_run) for path in beside if path not in copies)
    found += sum(_holds_unwanted(path, unwanted) for path in copies)
    if found and not dry_run:
        files.remove(copies)
    return found


def _remove_lines(path: Path, unwanted: Unwanted, *, dry_run: bool) -> int:
    """Remove unwanted messages from an archive, and return how many."""
    lines = path.read_text(encoding="utf-8").split("\n")
    kept = [line for line in lines if not (line.strip() and _is_unwanted(line, unwanted))]
    if len(kept) < len(lines) and not dry_run:
        replace_file(path, "\n".join(kept).encode())
    return len(lines) - len(kept)


def _everything_in(message: Message) -> str:
    """Return everything a message says: its text, and all fields as JSON."""
    return f"{message.text}\n{json.dumps(message_to_json(message), ensure_ascii=False, default=str)}"


def _is_unwanted(line: str, unwanted: Unwanted) -> bool:
    message = message_in_line(line)
    return unwanted(line, 0) if message is None else unwanted(_everything_in(message), message.timestamp)


def _without_unwanted(entry: SessionEntry, unwanted: Unwanted) -> SessionEntry:
    """Return the entry without unwanted fields, such as a title or notes waiting to be flushed."""
    values = {name: getattr(entry, name) for name in SETTABLE}
    gone = {name: None for name, value in values.items() if value is not None and unwanted(_as_text(value), 0)}
    extra = {name: value for name, value in entry.extra.items() if not unwanted(_as_text(value), 0)}
    return replace(entry, **gone, extra=extra)  # type: ignore[arg-type]  # every one of them may be None


def _holds_unwanted(path: Path, unwanted: Unwanted, *, dated: bool = True) -> bool:
    """Return whether a file contains unwanted text, plain or escaped as in JSON; `dated` passes the file's own time."""
    try:
        text = read_regular(path).strip(b"\0").decode("utf-8", "replace")
        changed_ms = path.stat().st_mtime_ns // 1_000_000 if dated else 0
    except FileNotFoundError:
        return False
    if not text:
        return False  # a journal that was overwritten with zeros
    unescaped = text.replace('\\"', '"').replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")
    return unwanted(text, changed_ms) or (unescaped != text and unwanted(unescaped, changed_ms))


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
