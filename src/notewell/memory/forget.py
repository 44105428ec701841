"""Moves entries, lines, notes and conversations to the trash, or erases them with every trace."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.embedding.jobs import JobFailures, Ledger
from notewell.errors import (
    EntryNotFoundError,
    IndexBusyError,
    NoteNotFoundError,
    NotewellError,
    QueryError,
    SessionNotFoundError,
    system_error,
)
from notewell.indexing.plan import SyncPolicy
from notewell.indexing.sync import BACKGROUND, LOCK_WAIT_S, Sync
from notewell.memory.components import open_components, open_qmd
from notewell.memory.forget_targets import CHANGED, Query, Target, TargetSearch, confirmed_lines
from notewell.memory.note_files import lines_move, notes_lock
from notewell.memory.note_lines import cut_lines
from notewell.memory.trash import Kind, TrashItem, hash_of, open_trash
from notewell.reports import ForgetReport, Forgotten, ForgottenLine
from notewell.settings import load_settings
from notewell.sources.notes import NotesSource, decode_note
from notewell.types import Problem

if TYPE_CHECKING:
    from notewell.memory.components import Components
    from notewell.sessions import LostPart

NOTHING = "no note or conversation contains this"


def forget(
    parts: Components,
    query: Query,
    *,
    one_entry: bool = False,
    dry_run: bool = False,
    confirmed: ForgetReport | None = None,
) -> ForgetReport:
    """Forget entries by id or citation, a conversation, a file, or every line and message containing a text.

    Files come first: if the process dies, running the same command again does the rest. With `for_good`, traces are
    erased even if nothing is found, because they may be all that is left.
    """
    erase_expired(parts)
    conversations = parts.conversations() if parts.sessions_folder.is_dir() else None
    seen = confirmed_lines(confirmed)
    search = TargetSearch(parts, query, conversations, one_entry=one_entry, dry_run=dry_run, confirmed=seen)
    work = _Work(search)
    if not dry_run:
        work.remove_drafts()
    try:
        targets, problems = search.run()
    except (SessionNotFoundError, NoteNotFoundError, EntryNotFoundError):
        if query.for_good and not dry_run:  # a process that was killed may have deleted the file and left traces
            work.rebuild_registry()
            erase_traces(parts)
        raise
    found = tuple(target.forgotten for target in targets)
    if dry_run:
        notes = () if found else (NOTHING,)
        return ForgetReport(True, found, problems=tuple(problems), notes=notes, for_good=query.for_good)
    return work.forget(targets, problems)


class _Work:
    """One call of `forget`."""

    def __init__(self, search: TargetSearch) -> None:
        self.parts, self.query = search.parts, search.query
        self.conversations = search.conversations
        self.confirmed = search.confirmed
        self.trash = open_trash(search.parts)
        self.batch = self.trash.open_batch()

    def forget(self, targets: Sequence[Target], problems: list[Problem]) -> ForgetReport:
        done: list[Forgotten] = []
        for target in targets:
            try:
                forgotten = self._delete(target)
            except NotewellError as error:
                problems.append(Problem(target.forgotten.path, error.full_message))
                continue
            if forgotten.whole or forgotten.count:
                done.append(forgotten)
                self.batch.next()
        self.rebuild_registry()
        notes: tuple[str, ...] = () if done or problems else (NOTHING,)
        if not self.query.for_good:
            if done:
                notes = take_from_index(self.parts, [each.path for each in done])
            undo = self.batch.id if done else ""
            return ForgetReport(False, tuple(done), problems=tuple(problems), notes=notes, undo=undo)
        erased = erase_traces(self.parts)
        if any(each.source == "memory" for each in done):
            elsewhere = erase_for_other_agents(self.parts.whole)
            problems += () if self.parts.audience.is_group else elsewhere  # of agents that a group has no part in
        notes = tuple(filter(None, (*notes, self.parts.indexes.leftovers)))
        problems += erased.problems
        return replace(erased, forgotten=tuple(done), problems=tuple(problems), notes=notes, for_good=True)

    def remove_drafts(self) -> None:
        """Remove drafts that killed processes left behind: one may contain what is to be forgotten."""
        self.parts.note_files.remove_drafts()
        if self.conversations is not None:
            self.conversations.sweep(wait=True)
        if self.query.for_good and any(map(Path.exists, self.parts.trash_folders)):
            with notes_lock(self.parts.workspace):
                self.trash.remove_debris()

    def rebuild_registry(self) -> None:
        """Rebuild the registry of sessions: a killed process may have left outdated entries."""
        if self.conversations is not None:
            self.conversations.rebuild_registry(drop_copies=True)

    # --- deleting ----------------------------------------------------------------------------------

    def _delete(self, target: Target) -> Forgotten:
        forgotten = target.forgotten
        if target.item is not None:
            self._erase_item(target.item)
            return forgotten
        if target.session is not None:
            return self._delete_from_session(forgotten, target.session)
        if forgotten.source == "sessions":
            self._delete_transcript(forgotten)
            return forgotten
        if forgotten.whole:
            return self._delete_note(target)
        return self._cut(target)

    def _delete_from_session(self, forgotten: Forgotten, session_id: str) -> Forgotten:
        assert self.conversations is not None

        def keep(lost: LostPart) -> None:
            item = self._item("session", forgotten)
            item = replace(item, session=lost.session_id, messages=lost.messages, left=lost.left)
            self.batch.put(item, lost.files)

        kept = None if self.query.for_good else keep
        if forgotten.whole:
            self.conversations.delete(session_id, keep=kept)
            return forgotten
        count = self.conversations.remove_messages(session_id, self.query.covers_message, keep=kept)
        return replace(forgotten, count=count)

    def _delete_transcript(self, forgotten: Forgotten) -> None:
        assert self.parts.transcripts is not None
        try:
            with suppress(FileNotFoundError):
                place = self.parts.transcripts.resolve(forgotten.path)
                if not self.query.for_good:
                    item = replace(self._item("transcript", forgotten), place=str(place))
                    self.batch.put(item, {place.name: place.read_bytes()})
                place.unlink()
        except OSError as error:
            raise system_error(error) from error

    def _delete_note(self, target: Target) -> Forgotten:
        forgotten = target.forgotten

        def keep(raw: bytes) -> None:
            if not self._has_seen(forgotten.path, raw):
                raise QueryError(CHANGED, hint="run the same command again")
            if not self.query.for_good:
                self.batch.put(self._item("note", forgotten, target.dated), {"content": raw})

        self.parts.note_files.delete(forgotten.path, keep)
        return forgotten

    def _has_seen(self, path: str, raw: bytes) -> bool:
        """Return whether every line of a note was shown to the person who confirmed."""
        shown = self.confirmed.get(path) if self.confirmed else None
        lines = raw.decode("utf-8", "replace").splitlines()
        return not shown or {line.strip() for line in lines} <= {line.strip() for line in shown}

    def _cut(self, target: Target) -> Forgotten:
        forgotten, choose = target.forgotten, target.choose
        assert choose is not None
        taken: list[tuple[int, str]] = []

        def change(raw: bytes, stored: str) -> bytes | None:
            text = decode_note(raw)
            listed = text.split("\n")
            numbers = sorted(number for number in choose(text) if number <= len(listed))
            taken[:] = [(number, listed[number - 1]) for number in numbers]
            if not numbers:
                return None
            content, cuts = cut_lines(raw, stored, numbers)
            lines_move(self.parts, stored, numbers[0])
            if not self.query.for_good:
                item = replace(self._item("lines", forgotten, target.dated), count=len(numbers), cuts=cuts)
                self.batch.put(replace(item, before=hash_of(raw), after=hash_of(content)))
            return content

        self.parts.note_files.change(forgotten.path, change)
        if not taken and self.confirmed is not None:
            raise QueryError(CHANGED, hint="run the same command again")
        return replace(forgotten, count=len(taken), lines=tuple(ForgottenLine(*each) for each in taken))

    def _item(self, kind: Kind, forgotten: Forgotten, dated: date | None = None) -> TrashItem:
        return TrashItem(kind, forgotten.path, count=forgotten.count, dated=dated.isoformat() if dated else "")

    # --- the trash ---------------------------------------------------------------------------------

    def _erase_item(self, item: TrashItem) -> None:
        """Erase an item, or only its matching lines."""
        trash, query = self.trash, self.query
        if query.match is None or query.is_in(item.path) or item.source == "sessions":
            trash.remove(item)
        elif item.kind == "note":
            raw = item.content("content")
            content, _ = cut_lines(raw, item.path, query.lines_in(decode_note(raw)))
            trash.write(item, {"content": content})
        else:
            cuts = []
            for cut in item.cuts:
                text = "".join(cut.lines)
                gone = set(query.lines_in(re.sub(r"\r\n|\r", "\n", text)))
                lines = tuple(line for number, line in enumerate(cut.lines, start=1) if number not in gone)
                instead = tuple(line for line in cut.instead if not query.is_in(line))
                cuts.append(replace(cut, lines=lines, instead=instead, above=(), below=()))
            left = tuple(cut for cut in cuts if cut.lines)
            if left:  # hashes of what was around it go, too
                trash.write(replace(item, cuts=left, before="", after=""))
            else:
                trash.remove(item)


# --- erasing -------------------------------------------------------------------------------------


def erase_expired(parts: Components) -> None:
    """Erase what has been in the trash for 30 days, with its traces.

    The files go last, so that the next call repeats whatever was interrupted. While another process is indexing, it is
    left to a later call.
    """
    expired = open_trash(parts.whole).expired()
    if not expired:
        return
    try:
        erase_traces(parts.whole)
        erase_for_other_agents(parts.whole)
    except IndexBusyError:
        return
    for folder in expired:
        shutil.rmtree(folder, ignore_errors=True)


def erase_traces(parts: Components) -> ForgetReport:
    """Sync the index, then erase what it, the cache, batch jobs and old files still hold; return the figures.

    The cache keeps only vectors of texts that are still in the memory: an earlier version of a note may have contained
    what is to be forgotten, and its vector cannot be told from others.
    """
    if parts.audience.is_group:
        erase_traces(parts.whole)
        return ForgetReport(dry_run=False)  # the figures are those of hidden notes as well
    folder, indexes, sync = parts.folder, parts.indexes, parts.sync
    if indexes.current() is None and not folder.path.exists():
        return ForgetReport(dry_run=False)
    with parts.index.use() as store:
        before = store.embedded_hashes() if store else set()
    # Takes the lock: a run that is embedding the text ends before anything is erased.
    sync.run(SyncPolicy(embed=False))
    with indexes.write_lock(LOCK_WAIT_S):
        assert isinstance(sync, Sync)
        with sync.live.use() as live:
            kept = live.embedded_hashes() if live else set()
            if live:
                indexes.remove_superseded()
                live.erase_deleted()
        cache = parts.cache
        vectors = cache.keep_only(kept) if cache else 0
        ledger = Ledger(folder.path)
        ledger.forget({digest for record in ledger.records() for digest in record.wanted} - kept)
        ledger.record_failures(JobFailures())  # what a provider said about a text could quote it
        in_use = {"cache.sqlite", (folder.current() or folder.cache_path).name} if indexes is folder else set()
        problems = tuple(_remove_leftovers(folder.path, in_use))
    assert isinstance(parts.notes, NotesSource)
    if (qmd := parts.qmd or open_qmd(parts.settings, parts.workspace, folder, parts.notes)).folder.exists():
        qmd.erase()
    return ForgetReport(dry_run=False, chunks=len(before - kept), vectors=vectors, problems=problems)


def _remove_leftovers(folder: Path, in_use: Collection[str]) -> Iterator[Problem]:
    """Delete databases that are unfinished, replaced or set aside as corrupt, with their logs."""
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


def erase_for_other_agents(parts: Components) -> list[Problem]:
    """Erase the note from what other agents of this workspace have indexed; their conversations are their own."""
    return _for_other_agents(parts, lambda theirs: erase_traces(theirs).problems)


def take_from_index(parts: Components, paths: Collection[str]) -> tuple[str, ...]:
    """Index the changed files for all agents, so that no search finds what was forgotten; return notes on failures."""

    def sync(its: Components) -> tuple[Problem, ...]:
        if its.indexes.current() is not None:
            its.sync.run(replace(BACKGROUND, paths=paths))
            if its.qmd:
                its.qmd.update()
        return ()

    problems: list[Problem] = []
    try:
        sync(parts)
    except NotewellError as error:
        problems.append(Problem("index", error.full_message))
    theirs = _for_other_agents(parts.whole, sync)
    problems += () if parts.audience.is_group else theirs
    return tuple(f"forgotten, but not yet removed from the {each.path}: {each.reason}" for each in problems)


def _for_other_agents(parts: Components, work: Callable[[Components], Iterable[Problem]]) -> list[Problem]:
    """Run `work` for every other agent that has an index of this workspace."""
    problems: list[Problem] = []
    for other in sorted({*parts.indexes.agents(), *parts.folder.agents()} - {parts.agent}):
        try:
            settings = load_settings(parts.workspace, agent=other).settings
            with closing(open_components(parts.workspace, settings, other)) as theirs:
                problems += work(theirs)
        except NotewellError as error:
            problems.append(Problem(f"index of agent {other}", error.full_message))
    return problems
