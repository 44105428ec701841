"""What someone wants forgotten in, the notes and conversations that hold it out; nothing is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from notewell.errors import NoteNotFoundError, NotewellError, QueryError, SessionDamagedError
from notewell.search.dates.question import parse_day
from notewell.types import FileStamp, Forgotten, Problem

if TYPE_CHECKING:
    from notewell.memory.memory import Memory
    from notewell.sessions import ConversationStore

SHORTEST_MATCH = 3  # characters; less would be found on every page


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be forgotten: exactly one of the first three, all of it or what is of some day or later."""

    session: str | None = None
    path: str | None = None
    match: str | None = None
    since: date | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """Finds the text in whichever case, and wherever lines are broken in it."""
        assert self.match is not None
        return re.compile(r"\s+".join(map(re.escape, self.match.split())), re.IGNORECASE)

    def covers(self, day: date | None) -> bool:
        """Say whether something of this day is meant; what has no day is meant only when no day is named."""
        return self.since is None or (day is not None and day >= self.since)

    def is_unwanted(self, text: str, time_ms: int) -> bool:
        """Say whether a message is meant."""
        day = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone().date() if time_ms else None
        return self.covers(day) and (self.match is None or self.pattern.search(text) is not None)


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to do: how it is told, and what does it."""

    told: Forgotten
    lines: tuple[int, ...] = ()  # of a note; empty: all of it
    session: str | None = None  # of the session store; None: a note, or a transcript of another program


def checked_wish(
    session: str | None, path: str | None, match: str | None, since: str | date | None, today: date
) -> Wish:
    """Return the wish, or raise QueryError when it is none."""
    if sum(value is not None for value in (session, path, match)) != 1:
        raise QueryError("say one thing to forget", hint="use one of --session ID, --path NOTE and --match TEXT")
    if match is not None and len("".join(match.split())) < SHORTEST_MATCH:
        raise QueryError(
            f"{match!r} is too short: it would be found everywhere", hint=f"use {SHORTEST_MATCH} characters or more"
        )
    if isinstance(since, str):
        days = parse_day(since, today)
        since = days[0] if isinstance(days, tuple) else days
    return Wish(session, path, match, since)


def find_targets(
    memory: Memory, wish: Wish, conversations: ConversationStore | None
) -> tuple[list[Target], list[Problem]]:
    """Return what holds it, and what could not be looked at or is not ours to change."""
    problems: list[Problem] = []
    if wish.session is not None:
        return list(_session(wish, wish.session, conversations, problems)), problems
    if wish.path is not None:
        return list(_path(memory, wish.path, conversations, wish, problems)), problems
    return [
        *_matching_notes(memory, wish, problems),
        *_matching_sessions(memory, wish, conversations, problems),
    ], problems


def _session(
    wish: Wish, session_id: str, conversations: ConversationStore | None, problems: list[Problem]
) -> Iterator[Target]:
    from notewell.errors import SessionNotFoundError

    if conversations is None:
        raise SessionNotFoundError(session_id)
    if wish.since is None:
        files = conversations.files_of(session_id)
        stored = [path for path in files if path.suffix == ".json5" and path.parent.name in {"chats", "groups"}]
        if not files:
            raise SessionNotFoundError(session_id)
        shown = f"sessions/{(stored or files)[0].relative_to(conversations.folder).as_posix()}"
        yield Target(
            Forgotten(shown, "sessions", whole=True, count=_messages(conversations, session_id)), session=session_id
        )
        return
    yield from _part_of_session(wish, session_id, conversations, problems)


def _messages(conversations: ConversationStore, session_id: str) -> int:
    try:
        return conversations.entry(session_id).message_count
    except NotewellError:  # damaged or half deleted: it goes all the same
        return 0


def _part_of_session(
    wish: Wish, session_id: str, conversations: ConversationStore, problems: list[Problem]
) -> Iterator[Target]:
    try:
        place = conversations.path_of(session_id).relative_to(conversations.folder).as_posix()
        count = conversations.count_unwanted(session_id, wish.is_unwanted)
    except SessionDamagedError as error:
        problems.append(Problem(f"session {session_id}", f"{error.message}; {error.hint}"))
        return
    if count:
        yield Target(Forgotten(f"sessions/{place}", "sessions", whole=False, count=count), session=session_id)


def _path(
    memory: Memory, path: str, conversations: ConversationStore | None, wish: Wish, problems: list[Problem]
) -> Iterator[Target]:
    for source in memory.sources():
        if not source.may_hold(path):
            continue
        if source.name == "sessions":
            own = _own_session(path)
            if own and conversations is not None:
                yield from _session(wish, own, conversations, problems)
            else:
                stamp = next(iter(source.list([path]).files), None)
                if stamp is None:
                    raise NoteNotFoundError(path)
                yield Target(Forgotten(stamp.path, "sessions", whole=True, count=0))
            return
        document = source.read(next(iter(source.list([path]).files), None) or _missing(path))
        yield Target(Forgotten(document.stamp.path, "memory", whole=True, count=_line_count(document.text)))
        return
    raise NoteNotFoundError(path)


def _missing(path: str) -> FileStamp:
    raise NoteNotFoundError(path)


def _own_session(path: str) -> str | None:
    found = re.fullmatch(r"sessions/(?:archive/)?(?:chats|groups)/([a-z0-9][a-z0-9_-]*)\.json5", path)
    return found[1] if found else None


def _line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _matching_notes(memory: Memory, wish: Wish, problems: list[Problem]) -> Iterator[Target]:
    for source in memory.sources():
        if source.name != "memory":
            continue
        listing = source.list()
        problems += listing.problems
        for stamp in listing.files:
            try:
                document = source.read(stamp)
            except OSError as error:
                problems.append(Problem(stamp.path, error.strerror or str(error)))
                continue
            if not wish.covers(document.dated):
                continue
            if wish.pattern.search(stamp.path) or wish.pattern.search(re.sub(r"[-_/.]+", " ", stamp.path)):
                problems.append(Problem(stamp.path, f"its name says so, too: notewell forget --path {stamp.path}"))
            lines = _matching_lines(document.text, wish.pattern)
            if lines and stamp.path.startswith("@"):
                problems.append(Problem(stamp.path, "lies outside of the workspace: take it out of that file yourself"))
            elif lines:
                yield Target(Forgotten(stamp.path, "memory", whole=False, count=len(lines)), lines=lines)


def _matching_lines(text: str, pattern: re.Pattern[str]) -> tuple[int, ...]:
    """Return the lines that hold a match or a part of one."""
    lines: set[int] = set()
    for found in pattern.finditer(text):
        first = text.count("\n", 0, found.start()) + 1
        lines.update(range(first, first + found.group().count("\n") + 1))
    return tuple(sorted(lines))


def _matching_sessions(
    memory: Memory, wish: Wish, conversations: ConversationStore | None, problems: list[Problem]
) -> Iterator[Target]:
    if conversations is not None:
        for archived in (False, True):
            for entry in conversations.list(archived=archived):
                yield from _part_of_session(wish, entry.session_id, conversations, problems)
    problems += (
        Problem(path, f"is a transcript of another program: delete it there, or run notewell forget --path {path}")
        for path in _foreign_transcripts(memory, wish.pattern.search)
    )


def _foreign_transcripts(memory: Memory, holds: Callable[[str], object]) -> Iterator[str]:
    """Yield the transcripts of other programs that say it; they are not ours to edit."""
    from notewell.sources.transcripts.source import TranscriptSource

    for source in memory.sources():
        if isinstance(source, TranscriptSource):
            for stamp in source.list().files:
                if _own_session(stamp.path) is None and any(
                    holds(line.text) for line in source.rendered(stamp.path, 1)
                ):
                    yield stamp.path
