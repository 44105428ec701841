"""Stores an agent's conversations; a change is on disk when the call returns."""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notewell.errors import (
    ConversationError,
    SessionBusyError,
    SessionDamagedError,
    SessionExistsError,
    SessionInputError,
    SessionNotFoundError,
)
from notewell.sessions.forgetting import Keep, LostPart, Unwanted, put_back, remove_unwanted
from notewell.sessions.import_export import export_lines
from notewell.sessions.model import (
    Session,
    SessionEntry,
    SessionKind,
    SessionUpdate,
    Summary,
    checked_fields,
    checked_kind,
)
from notewell.sessions.session_file import SessionFile, as_stored, salvage, text_of
from notewell.sessions.session_folder import Registry, SessionFolder, new_id
from notewell.settings.arguments import checked_calls
from notewell.sources.transcripts import REGISTRY, checked_id, id_of_group, is_session_name
from notewell.sources.transcripts.json5 import Json5Error, require_json5
from notewell.sources.transcripts.messages import Message, message_from_json, now_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

LOCK_TIMEOUT_S = 10.0  # as long as OpenClaw waits for a session's lock


Listener = Callable[[SessionUpdate], object]
_log = logging.getLogger("notewell.sessions")


@dataclass(frozen=True, slots=True)
class Found:
    """A message found by `search`."""

    entry: SessionEntry
    number: int  # 1-based position of the message in the session
    message: Message


@checked_calls(SessionInputError)
class ConversationStore:
    """One agent's conversations, in a folder. Safe to use from several threads and processes at once."""

    def __init__(
        self,
        folder: str | Path,
        *,
        lock_timeout_s: float = LOCK_TIMEOUT_S,
        group_only: frozenset[str] | None = None,  # the sessions of a group; others are hidden
        workspace: Path | None = None,  # holds the folder; nothing is created after it was moved away
    ) -> None:
        self.folder = Path(folder)
        self._files = SessionFolder(self.folder, lock_timeout_s, group_only, workspace)
        self._registry = Registry(self._files, self._entries_of_files)
        self._listeners: list[Listener] = []
        self._listeners_lock = threading.Lock()

    # --- events --------------------------------------------------------------------------------

    def on_update(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after each append of this object, once it is on disk; returns a function that removes it.

        If a listener raises, that is logged: the messages are stored, so the append has not failed.
        """
        with self._listeners_lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._listeners_lock, suppress(ValueError):
                self._listeners.remove(listener)

        return stop

    def _announce(self, update: SessionUpdate) -> None:
        with self._listeners_lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            try:
                listener(update)
            except Exception:  # noqa: BLE001 - whatever a listener does
                _log.exception("a listener failed on session %s", update.session_id)

    # --- writing -------------------------------------------------------------------------------

    def create(
        self, session_id: str | None = None, *, kind: SessionKind = "direct", group_id: str | None = None, **fields: Any
    ) -> SessionEntry:
        """Start a session and return its entry; raises SessionExistsError if the id is taken.

        Without an id, a group's session gets one derived from `group_id`, and others a new one.
        """
        kind = "group" if group_id else checked_kind(kind)
        name = checked_id(session_id) if session_id else id_of_group(group_id) if group_id else new_id()
        values = checked_fields({**fields, "group_id": group_id})
        known = self._files.find(group_id) if group_id and not session_id else None
        if known:
            raise SessionExistsError(known.session_id)
        return self._create(SessionEntry(session_id=name, kind=kind, created_at=now_ms(), **values))

    def restore(self, session: Session) -> SessionEntry:
        """Store a whole conversation as a new session, such as an exported one; its id must be free."""
        entry = replace(
            session.entry,
            session_id=checked_id(session.entry.session_id),
            damage="",
            archived_at=None,
            compacted_files=(),
        )
        return self._create(entry, tuple(as_stored(message) for message in session.messages), session.summaries)

    def append(self, session_id: str, *messages: Message | Mapping[str, Any]) -> SessionUpdate:
        """Append messages to a session and return where they are; only the end of its file is written.

        This works even if the file is corrupt: it is set aside, what can be read is kept, and `notes` say so.
        """
        new = tuple(as_stored(each if isinstance(each, Message) else message_from_json(each)) for each in messages)
        if not new:
            raise SessionInputError("there is no message to append", hint="give at least one")
        notes: tuple[str, ...] = ()
        with self._writing(session_id) as file:
            try:
                span = file.append(new)
            except Json5Error as error:
                notes = (self._salvaged(file, str(error)),)
                span = file.append(new)
        update = SessionUpdate(file.session_id, file.kind, file.path, *span, new, notes)
        self._announce(update)
        return update

    def update(self, session_id: str, **fields: Any) -> SessionEntry:
        """Set fields of a session's entry; None removes one."""
        changes = checked_fields(fields)
        with self._writing(session_id) as file:
            file.set_fields(changes)
            return self._registered(file)

    def set_state(self, session_id: str, **values: Any) -> None:
        """Set small fields that change often, cheaply, at the end of the file; None removes one."""
        with self._writing(session_id) as file:
            file.set_state(values)

    def flushing(self, session_id: str) -> AbstractContextManager[None]:
        """Hold the lock for flushing a session to the notes; appends are not blocked."""
        return self._files.flushing(self._existing(session_id).session_id)

    def compact(self, session_id: str, summary: str, *, keep_last: int = 20, through: int | None = None) -> Session:
        """Replace the oldest messages with a summary, and return the resulting session.

        All but the `keep_last` newest are replaced, or exactly the first `through`; they are kept as JSONL in
        `compacted/`.
        """
        if not summary.strip():
            raise SessionInputError("a summary of the messages is needed", hint="say what they were about")
        if keep_last < 0 or (through is not None and through < 0):
            raise SessionInputError("the number of messages cannot be negative", hint="use 0 or more")
        with self._writing(session_id) as file:
            session = file.session(holding=True)
            count = len(session.messages)
            going = min(count, through) if through is not None else max(0, count - keep_last)
            if not going:
                return session
            part = replace(session, messages=session.messages[:going])
            archives = self._files.archives(file.session_id)
            named = self._settled(file, session)
            named = (*named, archives.begin(export_lines(part), named=named))
            file.compact(going, Summary(summary.strip(), now_ms(), going), named)
            archives.settle(named)
            self._registered(file)
            return file.session(holding=True)

    def take_last(self, session_id: str) -> Message | None:
        """Remove the newest message and return it; None if there is none."""
        with self._writing(session_id) as file:
            message = file.take_last()
            if message is not None:
                self._registered(file)
        return message

    def archive(self, session_id: str) -> SessionEntry:
        """Archive a session: it is kept and found by its id, but no longer listed."""
        return self._put_away(session_id, archived=True)

    def unarchive(self, session_id: str) -> SessionEntry:
        """Restore a session from the archive."""
        return self._put_away(session_id, archived=False)

    def delete(self, session_id: str, *, keep: Keep | None = None) -> tuple[str, ...]:
        """Delete a session with all its files; returns their paths below the folder.

        `keep` gets the files first: if it raises, the session stays.
        """
        name = self._name_of(session_id)
        if not self.folder.exists():
            raise SessionNotFoundError(name)
        with self._files.locked(name):
            files = self._files.files_of(name)
            if not files and name not in self._registry.entries():
                raise SessionNotFoundError(name)
            if keep:
                keep(LostPart(name, self._files.contents_of(name)))
            # Its own file goes last: after a kill, the session can be deleted again.
            self._files.remove(reversed(files))
            self._registry.remove(name)
        return tuple(path.relative_to(self.folder).as_posix() for path in files)

    def count_unwanted(self, session_id: str, unwanted: Unwanted) -> int:
        """Return how many messages and summaries `remove_messages` would delete."""
        return self._remove(session_id, unwanted, dry_run=True)

    def remove_messages(self, session_id: str, unwanted: Unwanted, *, keep: Keep | None = None) -> int:
        """Delete every message and summary that is `unwanted`, in all files of a session; returns how many.

        Unwanted fields of the entry are removed, too, and count as one. The file is rewritten without comments, since
        one of them could be what is to be forgotten. Copies of corrupt files and journals are deleted. `keep` gets what
        is about to be removed: if it raises, everything stays.
        """
        return self._remove(session_id, unwanted, dry_run=False, keep=keep)

    def put_back(self, lost: LostPart) -> None:
        """Restore a deleted session, or messages that were removed; messages appended since stay.

        Raises SessionExistsError if another session has taken the id.
        """
        with self._files.locked(lost.session_id):
            if put_back(self._files, lost):
                self._registered(self._existing(lost.session_id))

    def repair(self, session_id: str) -> tuple[str, ...]:
        """Repair a corrupt session and return what was done; the corrupt file is kept in `damaged/`."""
        with self._writing(session_id) as file:
            try:
                file.session(holding=True)
                done: tuple[str, ...] = ()
            except SessionDamagedError as error:
                done = (self._salvaged(file, error.message),)
            session = file.session(holding=True)
            named = self._settled(file, session)
            if named != session.entry.compacted_files:
                file.set_fields({"compacted_files": list(named)})
                done = (*done, "compacted messages that were kept twice are kept once")
            self._registered(file)
        return done

    # --- reading -------------------------------------------------------------------------------

    def get(self, session_id: str) -> Session:
        """Return a whole conversation."""
        return self._existing(session_id).session()

    def entry(self, session_id: str) -> SessionEntry:
        """Return a session's entry, without reading its messages."""
        return self._existing(session_id).entry()

    def exists(self, session_id: str) -> bool:
        """Return whether the session exists, archived or not."""
        return self._files.find(session_id) is not None

    def path_of(self, session_id: str) -> Path:
        """Return the file of a session."""
        return self._existing(session_id).path

    def files_of(self, session_id: str) -> list[Path]:
        """Return all files of a session: its own, compacted messages, corrupt copies and the journal."""
        return self._files.files_of(self._name_of(session_id))

    def list(self, *, kind: SessionKind | None = None, archived: bool = False) -> list[SessionEntry]:
        """Return the sessions, most recently changed first; `damage` says why one cannot be read."""
        wanted = checked_kind(kind) if kind else None
        files = [file for file in self._files.sessions(archived=archived) if wanted in (None, file.kind)]
        entries = [entry for entry in map(self._listed, files) if entry]
        return sorted(entries, key=lambda entry: (-entry.updated_at, entry.session_id))

    def search(self, text: str, *, limit: int = 20, kind: SessionKind | None = None) -> Sequence[Found]:
        """Return the newest messages containing every word of `text`, ignoring case, also from archived sessions.

        Files are read one by one; those that cannot be read are skipped, and `list` says why.
        """
        if limit < 1:
            raise SessionInputError(f"the number of results must be at least 1, got {limit}", hint="ask for 1 or more")
        words = text.casefold().split()
        found = (
            Found(session.entry, number, message)
            for session in self._readable_sessions(kind)
            for number, message in enumerate(session.messages, start=1)
            if words and all(map(message.text.casefold().__contains__, words))
        )
        return heapq.nlargest(
            limit, found, key=lambda each: (each.message.timestamp, each.entry.session_id, each.number)
        )

    def export_jsonl(self, session_id: str) -> Iterator[str]:
        """Yield a conversation as lines of JSON: the session, then one line a message."""
        return export_lines(self.get(session_id))

    def sweep(self, *, wait: bool = False) -> None:
        """Clean up after killed processes: drafts, and archives of incomplete compactions.

        A session that is being written to is skipped, unless `wait` is set; on a read-only disk nothing happens.
        """
        files = replace(self._files, group_only=None)  # all sessions: their names of archives decide what is debris
        files = files if wait else replace(files, timeout_s=0)
        for owner, drafts in files.debris().items():
            lock = files.locked(owner) if owner else self._registry.locked(files.timeout_s)
            with suppress(OSError, *(() if wait else (SessionBusyError,))), lock:
                files.remove(drafts)
                file = files.find(owner) if owner else None
                with suppress(ConversationError):  # unreadable: left to `repair`
                    named = file.entry(holding=True).compacted_files if file else ()
                    files.archives(owner).settle(named)

    def ids(self) -> Sequence[str]:
        """Return the ids of all sessions that have any file, sorted, even if a session's own file is gone."""
        return sorted(each for each in self._files.ids() if not self._files.is_hidden(each))

    def owns(self, path: Path) -> bool:
        """Return whether a file below the folder belongs to a session or is the registry."""
        own = (self.folder / REGISTRY, *self._files.registry_copies())
        return path in own or (path.is_relative_to(self.folder) and bool(self._files.owner(path)))

    def rebuild_registry(self, *, drop_copies: bool = False) -> int:
        """Rebuild the registry from the session files; returns the number of sessions.

        `drop_copies` deletes corrupt registries that were set aside, since they contain titles.
        """
        count = self._registry.rebuild()
        if drop_copies:
            self._files.remove(self._files.registry_copies())
        return count if self._files.group_only is None else len(self.list()) + len(self.list(archived=True))

    # --- parts ---------------------------------------------------------------------------------

    def _create(
        self, entry: SessionEntry, messages: Sequence[Message] = (), summaries: Sequence[Summary] = ()
    ) -> SessionEntry:
        require_json5()
        self._files.check_may_create(entry.session_id, entry.kind)
        file = self._files.new(entry.session_id, entry.kind)
        with self._files.locked(entry.session_id):
            if self._files.find(entry.session_id):
                raise SessionExistsError(entry.session_id)
            self._files.ensure()
            file.replace(text_of(replace(entry, session_file=file.place), messages, summaries))
            return self._registered(file)

    @contextmanager
    def _writing(self, session_id: str) -> Iterator[SessionFile]:
        """Hold the lock of an existing session."""
        name = self._existing(session_id).session_id
        with self._files.locked(name):
            file = self._existing(name)
            file.recover()
            yield file

    def _existing(self, session_id: str) -> SessionFile:
        file = self._files.find(session_id) if isinstance(session_id, str) else None
        if file is None:
            raise SessionNotFoundError(self._name_of(session_id))
        return file

    def _name_of(self, session_id: str) -> str:
        """Return the id of a session as it is stored, even if its file is gone; raises SessionInputError."""
        file = self._files.find(session_id) if isinstance(session_id, str) else None
        if file:
            return file.session_id
        if not is_session_name(session_id):
            return checked_id(session_id)  # raises, and says what is wrong
        left = next((name for name in (session_id, session_id.lower()) if self._files.files_of(name)), "")
        return left or session_id.lower()

    def _registered(self, file: SessionFile) -> SessionEntry:
        entry = file.entry(holding=True)
        self._registry.put(entry)
        return entry

    def _listed(self, file: SessionFile) -> SessionEntry | None:
        """Return the entry of a file, with `damage` if it cannot be read; None if it is gone."""
        try:
            return file.entry()
        except SessionNotFoundError:
            return None
        except ConversationError as error:
            reason = error.message
        except OSError as error:
            reason = f"the file of session {file.session_id!r} cannot be read: {error.strerror or error}"
        return file.entry_from(self._registry.entries().get(file.session_id, {}), damage=reason)

    def _entries_of_files(self, known: Mapping[str, Mapping[str, Any]]) -> Sequence[SessionEntry]:
        """Return the entries of all sessions; of unreadable files those that are known."""
        found = []
        files = replace(self._files, group_only=None)  # the registry is one for all
        for file in [*files.sessions(archived=False), *files.sessions(archived=True)]:
            try:
                # As if holding its lock: the holder of the registry's lock must not wait for a session's.
                found.append(file.entry(holding=True))
            except (ConversationError, OSError):
                if file.session_id in known:
                    found.append(file.entry_from(known[file.session_id], damage=""))
        return found

    def _readable_sessions(self, kind: SessionKind | None) -> Iterator[Session]:
        for entry in [*self.list(kind=kind), *self.list(kind=kind, archived=True)]:
            with suppress(ConversationError, OSError):
                yield self.get(entry.session_id)

    def _put_away(self, session_id: str, *, archived: bool) -> SessionEntry:
        with self._writing(session_id) as file:
            if self._files.is_archived(file) == archived:
                return file.entry(holding=True)
            file.set_fields({"archived_at": now_ms() if archived else None})
            return self._registered(self._files.move(file, archived=archived))

    def _remove(self, session_id: str, unwanted: Unwanted, *, dry_run: bool, keep: Keep | None = None) -> int:
        name = self._name_of(session_id)
        if not self.folder.exists():
            raise SessionNotFoundError(name)
        with self._files.locked(name):
            count, changed = remove_unwanted(self._files, name, unwanted, dry_run=dry_run, keep=keep)
            if changed:
                self._registered(self._existing(name))
        return count

    def _settled(self, file: SessionFile, session: Session) -> tuple[str, ...]:
        """Return the archives of a session after settling pending ones and removing duplicates."""
        archives, named = self._files.archives(file.session_id), session.entry.compacted_files
        archives.settle(named)
        return archives.adopt(named, session.messages) if archives.unnamed(named) else named

    def _salvaged(self, file: SessionFile, reason: str) -> str:
        """Replace a corrupt file with a valid one, keeping a copy; returns what was done."""
        data = file.path.read_bytes()
        known = self._registry.entries().get(file.session_id, {})
        text, saved, lost_lines = salvage(file, data, known)
        kept = self._files.keep_copy(file.path, data)
        archives = self._files.archives(file.session_id)
        archives.rescue()
        file.replace(text)
        session = file.session(holding=True)
        named = archives.adopt(session.entry.compacted_files, session.messages)
        if named != session.entry.compacted_files:
            file.set_fields({"compacted_files": list(named)})
        lost = f", {lost_lines} lines could not be read" if lost_lines else ""
        return f"{reason}; {saved} messages were saved{lost}; the corrupt file is kept as {kept}"
