"""The session store: messages come in and are on disk when a call returns; sessions, listings and events go out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notewell.errors import (
    ConversationError,
    SessionDamagedError,
    SessionExistsError,
    SessionInputError,
    SessionNotFoundError,
)
from notewell.sessions.events import Listener, Listeners
from notewell.sessions.files import replace_file
from notewell.sessions.ids import SessionKind, checked_id, checked_kind, id_of_group, new_id
from notewell.sessions.json5 import Json5Error, require_json5
from notewell.sessions.jsonl import export_lines
from notewell.sessions.model import Message, Session, SessionEntry, SessionUpdate, Summary
from notewell.sessions.places import Places
from notewell.sessions.registry import Registry
from notewell.sessions.removal import Unwanted, remove_unwanted, unwanted_in
from notewell.sessions.salvage import salvage
from notewell.sessions.searching import Found, search_sessions
from notewell.sessions.session_file import SessionFile, as_stored
from notewell.sessions.values import checked_fields, message_of, now_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

LOCK_TIMEOUT_S = 10.0  # as long as OpenClaw waits for a session's lock


class ConversationStore:
    """One agent's conversations, in a folder. Safe to use from several threads and processes at once."""

    def __init__(self, folder: str | Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        self.folder = Path(folder)
        self._places = Places(self.folder, lock_timeout_s)
        self._registry = Registry(
            self.folder, lock_timeout_s, entries=self._readable_entries, aside=self._places.set_aside
        )
        self._listeners = Listeners()

    # --- events --------------------------------------------------------------------------------

    def on_update(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after each append of this object, once it is safely on disk; returns how to stop that.

        A listener that raises is logged: the messages are kept, so the append must not look as if it had failed.
        """
        return self._listeners.add(listener)

    # --- writing -------------------------------------------------------------------------------

    def create(
        self, session_id: str | None = None, *, kind: SessionKind = "direct", group_id: str | None = None, **fields: Any
    ) -> SessionEntry:
        """Begin a session and return its entry; raises SessionExistsError when the id is taken.

        Without an id a group's session gets one made from `group_id`, so that it is found again, and others a new one.
        """
        kind = "group" if group_id else checked_kind(kind)
        name = checked_id(session_id) if session_id else id_of_group(group_id) if group_id else new_id()
        values = checked_fields({**fields, "group_id": group_id})
        return self._create(SessionEntry(session_id=name, kind=kind, created_at=now_ms(), **values))

    def restore(self, session: Session) -> SessionEntry:
        """Write a whole conversation as a new session, such as one that was exported; its id must be free."""
        entry = replace(session.entry, session_id=checked_id(session.entry.session_id), damage="", archived_at=None)
        return self._create(entry, tuple(as_stored(message) for message in session.messages), session.summaries)

    def append(self, session_id: str, *messages: Message | Mapping[str, Any]) -> SessionUpdate:
        """Write messages at the end of a session and return where they stand; only the end of its file is touched.

        A conversation goes on even if its file was damaged: the file is set aside, what can be read of it is kept, and
        `notes` say so.
        """
        new = tuple(as_stored(each if isinstance(each, Message) else message_of(each)) for each in messages)
        if not new:
            raise SessionInputError("there is no message to append", hint="give at least one")
        notes: tuple[str, ...] = ()
        with self._writing(session_id) as file:
            try:
                span = file.append(new)
            except Json5Error as error:
                notes = (self._salvaged(file, str(error)),)
                span = file.append(new)
        path = file.file.path
        update = SessionUpdate(file.session_id, file.kind, path, span.first_byte, span.end_byte, new, notes)
        self._listeners.tell(update)
        return update

    def update(self, session_id: str, **fields: Any) -> SessionEntry:
        """Set fields of a session's entry, or take them away with None; the rest of its file stays as it is."""
        changes = checked_fields(fields)
        with self._writing(session_id) as file:
            file.set_fields(changes)
            return self._registered(file)

    def set_state(self, session_id: str, **values: Any) -> None:
        """Set small fields that change often, at the end of the file, where that is cheap; None takes one away."""
        with self._writing(session_id) as file:
            file.set_state(values)

    def flushing(self, session_id: str) -> AbstractContextManager[None]:
        """Be the only one that flushes a session to the notes; appends to it go on meanwhile."""
        return self._places.flushing(self._existing(session_id).session_id)

    def compact(self, session_id: str, summary: str, *, keep_last: int = 20, through: int | None = None) -> Session:
        """Let a summary take the place of the oldest messages, and return the session as it is then.

        All but the `keep_last` newest go, or exactly the first `through`. They are kept as JSONL in `compacted/`.
        """
        if not summary.strip():
            raise SessionInputError("a summary is needed in place of the messages", hint="say what they were about")
        if keep_last < 0 or (through is not None and through < 0):
            raise SessionInputError("the number of messages cannot be negative", hint="use 0 or more")
        with self._writing(session_id) as file:
            session = file.session(holding=True)
            count = len(session.messages)
            going = min(count, through) if through is not None else max(0, count - keep_last)
            if not going:
                return session
            self._keep_compacted(session, going)
            file.compact(going, Summary(summary.strip(), now_ms(), going))
            self._registered(file)
            return file.session(holding=True)

    def take_last(self, session_id: str) -> Message | None:
        """Take the newest message away and return it; None when there is none."""
        with self._writing(session_id) as file:
            message = file.take_last()
            if message is not None:
                self._registered(file)
        return message

    def archive(self, session_id: str) -> SessionEntry:
        """Put a session away: it is kept and found by its id, but no longer listed."""
        return self._put_away(session_id, archived=True)

    def unarchive(self, session_id: str) -> SessionEntry:
        """Bring a session back from the archive."""
        return self._put_away(session_id, archived=False)

    def delete(self, session_id: str) -> tuple[str, ...]:
        """Delete a session and everything that was kept of it; returns the files that are gone, below the folder."""
        name = checked_id(session_id)
        with self._places.locked(name):
            files = self._places.files_of(name)
            if not files and name not in self._registry.entries():
                raise SessionNotFoundError(name)
            self._places.remove(files)
            self._registry.remove(name)
        return tuple(path.relative_to(self.folder).as_posix() for path in files)

    def count_unwanted(self, session_id: str, unwanted: Unwanted) -> int:
        """Return how many messages and summaries `remove_messages` would delete."""
        with self._writing(session_id) as file:
            return unwanted_in(file, self._places.files_of(file.session_id), unwanted)

    def remove_messages(self, session_id: str, unwanted: Unwanted) -> int:
        """Delete what `unwanted` says yes to, given a text and its time, wherever it is kept; returns how much went."""
        with self._writing(session_id) as file:
            count = remove_unwanted(file, self._places.files_of(file.session_id), unwanted)
            self._registered(file)
        return count

    def repair(self, session_id: str) -> tuple[str, ...]:
        """Make a damaged session readable again, and return what was done; the damaged file is kept in `damaged/`."""
        with self._writing(session_id) as file:
            try:
                file.session(holding=True)
                done: tuple[str, ...] = ()
            except SessionDamagedError as error:
                done = (self._salvaged(file, error.message),)
            self._registered(file)
        return done

    # --- reading -------------------------------------------------------------------------------

    def get(self, session_id: str) -> Session:
        """Return a whole conversation."""
        return self._existing(session_id).session()

    def entry(self, session_id: str) -> SessionEntry:
        """Return what is known of a session, without reading its messages."""
        return self._existing(session_id).entry()

    def exists(self, session_id: str) -> bool:
        """Say whether there is such a session, archived or not."""
        return self._places.find(checked_id(session_id)) is not None

    def path_of(self, session_id: str) -> Path:
        """Return the file of a session."""
        return self._existing(session_id).file.path

    def files_of(self, session_id: str) -> list[Path]:
        """Return every file that holds something of a session: its own, compacted messages, damaged ones, a journal."""
        return self._places.files_of(checked_id(session_id))

    def list(self, *, kind: SessionKind | None = None, archived: bool = False) -> list[SessionEntry]:
        """Return the sessions, the one that changed last first; one that cannot be read says why in `damage`."""
        wanted = checked_kind(kind) if kind else None
        files = [file for file in self._places.sessions(archived=archived) if wanted in (None, file.kind)]
        entries = [entry for entry in map(self._listed, files) if entry]
        return sorted(entries, key=lambda entry: (-entry.updated_at, entry.session_id))

    def search(self, text: str, *, limit: int = 20, kind: SessionKind | None = None) -> Sequence[Found]:
        """Return the newest messages that hold every word of `text`, archived sessions included.

        The files are read one by one; one that cannot be read is left out here, and `list` says why.
        """
        if limit < 1:
            raise SessionInputError(f"the number of results must be at least 1, got {limit}", hint="ask for 1 or more")
        return search_sessions(self._readable_sessions(kind), text, limit=limit)

    def export_jsonl(self, session_id: str) -> Iterator[str]:
        """Yield a conversation as lines of JSON: one that says which session it is, then one a message."""
        return export_lines(self.get(session_id))

    def rebuild_registry(self) -> int:
        """Write the registry anew from the session files; returns how many sessions it holds."""
        return self._registry.rebuild()

    # --- parts ---------------------------------------------------------------------------------

    def _create(
        self, entry: SessionEntry, messages: Sequence[Message] = (), summaries: Sequence[Summary] = ()
    ) -> SessionEntry:
        require_json5()
        file = self._places.new(entry.session_id, entry.kind)
        with self._places.locked(entry.session_id):
            if self._places.find(entry.session_id):
                raise SessionExistsError(entry.session_id)
            self._places.ensure()
            file.create(replace(entry, session_file=file.place), messages, summaries)
            return self._registered(file)

    @contextmanager
    def _writing(self, session_id: str) -> Iterator[SessionFile]:
        """Be the only writer of a session that exists."""
        name = checked_id(session_id)
        with self._places.locked(name):
            file = self._existing(name)
            file.file.recover()
            yield file

    def _existing(self, session_id: str) -> SessionFile:
        name = checked_id(session_id)
        file = self._places.find(name)
        if file is None:
            raise SessionNotFoundError(name)
        return file

    def _registered(self, file: SessionFile) -> SessionEntry:
        entry = file.entry(holding=True)
        self._registry.put(entry)
        return entry

    def _listed(self, file: SessionFile) -> SessionEntry | None:
        """Return the entry of a file; whatever is wrong with it concerns no other session. None: it is gone by now."""
        try:
            return file.entry()
        except SessionNotFoundError:
            return None
        except ConversationError as error:
            reason = error.message
        except OSError as error:
            reason = f"the file of session {file.session_id!r} cannot be read: {error.strerror or error}"
        return file.entry_from(self._registry.entries().get(file.session_id, {}), damage=reason)

    def _readable_entries(self) -> Sequence[SessionEntry]:
        found = []
        for file in [*self._places.sessions(archived=False), *self._places.sessions(archived=True)]:
            with suppress(ConversationError, OSError):
                # As if holding its lock: who holds the registry's must not wait for a session's.
                found.append(file.entry(holding=True))
        return found

    def _readable_sessions(self, kind: SessionKind | None) -> Iterator[Session]:
        for entry in [*self.list(kind=kind), *self.list(kind=kind, archived=True)]:
            with suppress(ConversationError, OSError):
                yield self.get(entry.session_id)

    def _put_away(self, session_id: str, *, archived: bool) -> SessionEntry:
        with self._writing(session_id) as file:
            if self._places.is_archived(file) == archived:
                return file.entry(holding=True)
            file.set_fields({"archived_at": now_ms() if archived else None})
            return self._registered(self._places.move(file, archived=archived))

    def _keep_compacted(self, session: Session, count: int) -> None:
        path = self._places.compacted_path(session.entry.session_id)
        part = replace(session, messages=session.messages[:count])
        replace_file(path, "".join(f"{line}\n" for line in export_lines(part)).encode())

    def _salvaged(self, file: SessionFile, reason: str) -> str:
        """Put a sound file in place of a damaged one, which is kept; returns what was done."""
        data = file.file.path.read_bytes()
        known = self._registry.entries().get(file.session_id, {})
        saved = salvage(data, known, session_id=file.session_id, kind=file.kind, place=file.place)
        kept = self._places.keep_copy(file.file.path, data)
        file.file.replace(saved.text)
        lost = f", {saved.lost_lines} lines could not be read" if saved.lost_lines else ""
        return f"{reason}; {saved.messages} messages were saved{lost}; the damaged file is kept as {kept}"
