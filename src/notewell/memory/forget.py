"""Forgets: deletes conversations, notes or single lines, and every trace of them in the index and the caches."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.embedding.batch.ledger import JobFailures, Ledger
from notewell.errors import (
    NoteNotFoundError,
    NotewellError,
    QueryError,
    SessionDamagedError,
    SessionNotFoundError,
    SessionTooNewError,
    system_error,
)
from notewell.indexing.plan import SyncPolicy
from notewell.indexing.sync import LOCK_WAIT_S, Sync
from notewell.memory.components import open_components, open_qmd
from notewell.memory.note_writing import cut_lines, delete_note, remove_drafts
from notewell.search.dates.question import parse_day
from notewell.settings import STATE_FOLDER, load_settings
from notewell.sources.transcripts.session_ids import session_at
from notewell.store.state_folder import StateFolder
from notewell.types import ForgetReport, Forgotten, Problem

if TYPE_CHECKING:
    from notewell.memory.components import Components
    from notewell.sessions import ConversationStore
    from notewell.sources.transcripts.source import TranscriptSource

SHORTEST_MATCH = 3  # characters; less would be found on every page
NOTHING = "no note or conversation contains this"


def forget(
    parts: Components,
    *,
    session: str | None = None,
    path: str | None = None,
    match: str | None = None,
    since: str | date | None = None,
    dry_run: bool = False,
) -> ForgetReport:
    """Forget a conversation, a file, or every line and message containing a text.

    Files come first: if the process dies on the way, the same command does the rest. Traces are erased also when
    nothing is found, because then only they may be left.
    """
    query = _checked_query(session, path, match, since, datetime.now().astimezone().date())
    search = _TargetSearch(parts, query, _conversations(parts))
    if not dry_run:
        _remove_drafts(parts, search.conversations)
    try:
        targets, problems = search.run()
    except (SessionNotFoundError, NoteNotFoundError):
        if not dry_run:  # a process that was killed may have deleted the file and erased no traces
            if search.conversations is not None:
                search.conversations.rebuild_registry(drop_copies=True)
            _erase_traces(parts)
        raise
    found = tuple(target.forgotten for target in targets)
    if dry_run:
        return ForgetReport(dry_run=True, forgotten=found, problems=tuple(problems), notes=() if found else (NOTHING,))
    done: list[Forgotten] = []
    for target in targets:
        try:
            done.append(_delete(parts, query, target, search.conversations))
        except NotewellError as error:
            problems.append(Problem(target.forgotten.path, f"{error.message}; {error.hint}"))
    if search.conversations is not None:
        # A process that was killed may have left an entry as it was.
        search.conversations.rebuild_registry(drop_copies=True)
    erased = _erase_traces(parts)
    if any(each.source == "memory" for each in done):
        elsewhere = _erase_for_other_agents(parts.whole)
        problems += () if parts.audience.is_group else elsewhere  # they are of agents that a group has no part in
    return ForgetReport(
        dry_run=False,
        forgotten=tuple(done),
        chunks=erased.chunks,
        vectors=erased.vectors,
        problems=(*problems, *erased.problems),
        notes=() if done else (NOTHING,),
    )


# --- finding what to forget ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Query:
    """What is to be forgotten: exactly one of the first three, all of it or what is of some day or later."""

    session: str | None = None
    path: str | None = None
    match: str | None = None
    since: date | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """Finds the text in any case, and wherever lines are broken in it."""
        assert self.match is not None
        return re.compile(r"\s+".join(map(re.escape, self.match.split())), re.IGNORECASE)

    def covers(self, day: date | None) -> bool:
        """Return whether a day is covered; what has no day is covered only without `since`."""
        return self.since is None or (day is not None and day >= self.since)

    def covers_message(self, text: str, time_ms: int) -> bool:
        day = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone().date() if time_ms else None
        return self.covers(day) and (self.match is None or self.pattern.search(text) is not None)


@dataclass(frozen=True, slots=True)
class _Target:
    """One thing to delete."""

    forgotten: Forgotten
    lines: tuple[int, ...] = ()  # of a note; empty: all of it
    session: str | None = None  # of the session store; None: a note, or a transcript of another program


def _checked_query(
    session: str | None, path: str | None, match: str | None, since: str | date | None, today: date
) -> _Query:
    if sum(value is not None for value in (session, path, match)) != 1:
        raise QueryError("name one thing to forget", hint="use one of --session ID, --path NOTE and --match TEXT")
    if match is not None and len("".join(match.split())) < SHORTEST_MATCH:
        raise QueryError(
            f"{match!r} is too short: it would be found everywhere", hint=f"use {SHORTEST_MATCH} characters or more"
        )
    if isinstance(since, str):
        days = parse_day(since, today)
        since = days[0] if isinstance(days, tuple) else days
    return _Query(session, path, match, since)


def _conversations(parts: Components) -> ConversationStore | None:
    return parts.conversations() if parts.sessions_folder.is_dir() else None


@dataclass(frozen=True, slots=True)
class _TargetSearch:
    """Finds what a query covers; writes nothing."""

    parts: Components
    query: _Query
    conversations: ConversationStore | None

    def run(self) -> tuple[list[_Target], list[Problem]]:
        """Return the targets, and what could not be read or is not ours to change."""
        problems: list[Problem] = []
        if self.query.session is not None:
            targets = self._session(self.query.session, problems)
        elif self.query.path is not None:
            targets = self._path(self.query.path, problems)
        else:
            targets = self._matches(problems)
        return list(targets), problems

    def _session(self, session_id: str, problems: list[Problem]) -> Iterator[_Target]:
        if self.conversations is None:
            raise SessionNotFoundError(session_id)
        if self.query.since is not None:
            yield from self._part_of_session(self.conversations, session_id, problems)
            return
        files = self.conversations.files_of(session_id)
        if not files:
            raise SessionNotFoundError(session_id)
        stored = [path for path in files if path.suffix == ".json5" and path.parent.name in {"chats", "groups"}]
        shown = f"sessions/{(stored or files)[0].relative_to(self.conversations.folder).as_posix()}"
        count = 0
        with suppress(NotewellError):  # corrupt or half deleted: it goes all the same
            count = self.conversations.entry(session_id).message_count
        yield _Target(Forgotten(shown, "sessions", whole=True, count=count), session=session_id)

    def _part_of_session(
        self, conversations: ConversationStore, session_id: str, problems: list[Problem]
    ) -> Iterator[_Target]:
        try:
            count = conversations.count_unwanted(session_id, self.query.covers_message)
            place = conversations.files_of(session_id)[0].relative_to(conversations.folder).as_posix()
        except (SessionDamagedError, SessionTooNewError) as error:
            problems.append(Problem(f"session {session_id}", f"{error.message}; {error.hint}"))
            return
        if count:
            yield _Target(Forgotten(f"sessions/{place}", "sessions", whole=False, count=count), session=session_id)

    def _path(self, path: str, problems: list[Problem]) -> Iterator[_Target]:
        source = next((source for source in self.parts.sources if source.may_hold(path)), None)
        own = session_at(path) if source and source.name == "sessions" else None
        if own and self.conversations is not None:
            yield from self._session(own, problems)
            return
        stamp = next(iter(source.list([path]).files), None) if source else None
        if source is None or stamp is None:
            raise NoteNotFoundError(path)
        if source.name == "sessions":
            yield _Target(Forgotten(stamp.path, "sessions", whole=True, count=0))
            return
        document = source.read(stamp)
        problems += self._other_names(document.stamp.path)
        lines = document.text.count("\n") + (not document.text.endswith("\n") and bool(document.text))
        yield _Target(Forgotten(document.stamp.path, "memory", whole=True, count=lines))

    def _matches(self, problems: list[Problem]) -> Iterator[_Target]:
        yield from self._matching_notes(problems)
        if self.conversations is not None:
            for session_id in self.conversations.ids():
                with suppress(SessionNotFoundError):  # deleted this very moment
                    yield from self._part_of_session(self.conversations, session_id, problems)
            if not self.parts.audience.is_group:  # a group has no part in the rest of the folder
                problems += self._unknown_files(self.conversations)
        if self.parts.transcripts is not None:
            problems += self._matching_transcripts(self.parts.transcripts)

    def _unknown_files(self, conversations: ConversationStore) -> Iterator[Problem]:
        """Yield the files in the state folder that contain the text and belong to no session, database or index."""
        for top, _, names in os.walk(self.parts.folder.path):
            for path in (Path(top, name) for name in sorted(names)):
                if conversations.owns(path) or ".sqlite" in path.name:
                    continue
                with suppress(OSError):
                    content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                    if self.query.pattern.search(content.decode("utf-8", "replace")):
                        shown = path.relative_to(self.parts.folder.path).as_posix()
                        yield Problem(shown, "contains the text and is no file of notewell: delete it yourself")

    def _matching_transcripts(self, transcripts: TranscriptSource) -> Iterator[Problem]:
        """Yield the transcripts of other programs that contain the text; they are not ours to edit."""
        for stamp in transcripts.list().files:
            if session_at(stamp.path):
                continue
            if any(self.query.pattern.search(line.text) for line in transcripts.rendered(stamp.path, 1)):
                hint = f"delete it there, or run notewell forget --path {stamp.path}"
                yield Problem(stamp.path, f"is a transcript of another program: {hint}")

    def _other_names(self, path: str) -> Iterator[Problem]:
        """Yield that the file has other names: what is forgotten under one stays under the others."""
        if self.parts.notes.resolve(path).stat().st_nlink > 1:
            yield Problem(path, "has another name (a hard link), which keeps the text: delete that file, too")

    def _matching_notes(self, problems: list[Problem]) -> Iterator[_Target]:
        pattern, notes = self.query.pattern, self.parts.notes
        if notes not in self.parts.sources:
            return
        listing = notes.list()
        problems += listing.problems
        for stamp in listing.files:
            try:
                document = notes.read(stamp)
            except OSError as error:
                problems.append(Problem(stamp.path, error.strerror or str(error)))
                continue
            if not self.query.covers(document.dated):
                continue
            if pattern.search(stamp.path) or pattern.search(re.sub(r"[-_/.]+", " ", stamp.path)):
                hint = f"notewell forget --path {stamp.path}"
                problems.append(Problem(stamp.path, f"its name contains the text, too: {hint}"))
            lines = _matching_lines(document.text, pattern)
            if lines and stamp.path.startswith("@"):
                problems.append(Problem(stamp.path, "is outside the workspace: edit that file yourself"))
            elif lines:
                problems += self._other_names(stamp.path)
                yield _Target(Forgotten(stamp.path, "memory", whole=False, count=len(lines)), lines=lines)


def _matching_lines(text: str, pattern: re.Pattern[str]) -> tuple[int, ...]:
    """Return the lines that hold a match or a part of one."""
    lines: set[int] = set()
    for found in pattern.finditer(text):
        first = text.count("\n", 0, found.start()) + 1
        lines.update(range(first, first + found.group().count("\n") + 1))
    return tuple(sorted(lines))


# --- deleting it ---------------------------------------------------------------------------------


def _remove_drafts(parts: Components, conversations: ConversationStore | None) -> None:
    """Remove what killed processes left of notes and conversations: a draft may hold what is to be forgotten."""
    remove_drafts(parts.workspace, extra_paths=parts.settings.extra_paths, include=parts.settings.include)
    if conversations is not None:
        conversations.sweep(wait=True)


def _delete(parts: Components, query: _Query, target: _Target, conversations: ConversationStore | None) -> Forgotten:
    forgotten = target.forgotten
    if target.session is not None:
        assert conversations is not None
        if forgotten.whole:
            conversations.delete(target.session)
            return forgotten
        return replace(forgotten, count=conversations.remove_messages(target.session, query.covers_message))
    extra, include = parts.settings.extra_paths, parts.settings.include
    if forgotten.source == "sessions":
        assert parts.transcripts is not None
        try:
            with suppress(FileNotFoundError):
                parts.transcripts.resolve(forgotten.path).unlink()
        except OSError as error:
            raise system_error(error) from error
    elif forgotten.whole:
        delete_note(parts.workspace, forgotten.path, extra_paths=extra, include=include)
    else:
        count = cut_lines(parts.workspace, forgotten.path, target.lines, extra_paths=extra, include=include)
        return replace(forgotten, count=count)
    return forgotten


@dataclass(frozen=True, slots=True)
class _Erased:
    """How much of what was derived is gone."""

    chunks: int = 0
    vectors: int = 0
    problems: tuple[Problem, ...] = ()


def _erase_traces(parts: Components) -> _Erased:
    """Bring the index up to date and erase what it, the cache, batch jobs and older files still hold.

    The cache keeps only vectors of texts that are still in the memory: an earlier wording of a note may have contained
    what is to be forgotten, and its vector has no name by which it could be found.
    """
    if parts.audience.is_group:
        _erase_traces(parts.whole)
        return _Erased()  # the figures are those of hidden notes as well
    folder, sync = parts.folder, parts.sync
    if folder.current() is None and not folder.path.exists():
        return _Erased()
    with parts.index.use() as store:
        before = store.embedded_hashes() if store else set()
    # Another process at work has the lock: a run that embeds the text right now ends before anything is erased.
    sync.run(SyncPolicy(embed=False))
    with folder.write_lock(LOCK_WAIT_S):
        assert isinstance(sync, Sync)
        with sync.live.use() as live:
            kept = live.embedded_hashes() if live else set()
            if live:
                live.erase_deleted()
        cache = parts.cache
        vectors = cache.keep_only(kept) if cache else 0
        ledger = Ledger(folder.path)
        ledger.forget({digest for record in ledger.records() for digest in record.wanted} - kept)
        ledger.record_failures(JobFailures())  # what a provider said about a text could quote it
        problems = tuple(_remove_leftovers(folder.path, folder.current()))
    if (qmd := parts.qmd or open_qmd(parts.settings, parts.workspace, folder, parts.notes)).folder.exists():
        qmd.erase()
    return _Erased(len(before - kept), vectors, problems)


def _remove_leftovers(folder: Path, current: Path | None) -> Iterator[Problem]:
    """Delete databases that are no longer used: unfinished, replaced or set aside as corrupt, with their logs."""
    in_use = {"cache.sqlite"} | ({current.name} if current else set())
    for path in sorted(folder.glob("*.sqlite*")):
        owner = path.name
        for suffix in ("-wal", "-shm", ".in-use"):
            owner = owner.removesuffix(suffix)
        if owner in in_use:
            continue
        try:
            with suppress(FileNotFoundError):
                path.unlink()
        except OSError as error:  # Windows deletes no open file
            yield Problem(path.name, f"cannot be deleted now: {error.strerror}; run the same command again")


def _erase_for_other_agents(parts: Components) -> list[Problem]:
    """Erase the note from what other agents of this workspace have indexed; their conversations are their own."""
    problems: list[Problem] = []
    folder = parts.folder.path.parent
    if folder.name != STATE_FOLDER:  # elsewhere nothing says which folders are agents'
        return problems
    for other in sorted(folder.iterdir()):
        if other == parts.folder.path or StateFolder(other).current() is None:
            continue
        try:
            settings = load_settings(parts.workspace, agent=other.name).settings
            with closing(open_components(parts.workspace, settings, other.name)) as theirs:
                problems += _erase_traces(theirs).problems
        except NotewellError as error:
            problems.append(Problem(f"agent {other.name}", f"{error.message}; {error.hint}"))
    return problems
