"""Forgets: moves entries, lines, notes and conversations to the trash, or erases them with every trace."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING

from notewell.errors import (
    EntryNotFoundError,
    NoteNotFoundError,
    NotewellError,
    QueryError,
    SessionNotFoundError,
    system_error,
)
from notewell.memory.forget_targets import CHANGED, Query, Target, TargetSearch, checked_query, confirmed_lines
from notewell.memory.moved_lines import MovedLines
from notewell.memory.note_lines import cut_lines
from notewell.memory.note_writing import change_note, delete_note, notes_lock, remove_drafts
from notewell.memory.traces import erase_for_other_agents, erase_traces, take_from_index
from notewell.memory.trash import Kind, OpenBatch, TrashItem, open_trash
from notewell.memory.undo import erase_expired
from notewell.reports import ForgetReport, Forgotten, ForgottenLine
from notewell.sources.notes import decode_note
from notewell.types import Problem

if TYPE_CHECKING:
    from notewell.memory.components import Components
    from notewell.sessions import ConversationStore, LostPart

NOTHING = "no note or conversation contains this"


def forget(
    parts: Components,
    *entries: str,
    session: str | None = None,
    path: str | None = None,
    match: str | None = None,
    since: str | date | None = None,
    whole_words: bool = True,
    for_good: bool = False,
    one_entry: bool = False,
    dry_run: bool = False,
    confirmed: ForgetReport | None = None,
) -> ForgetReport:
    """Forget entries by id or citation, a conversation, a file, or every line and message containing a text.

    Files come first: if the process dies on the way, the same command does the rest. Where it is for good, traces are
    erased also when nothing is found, because then only they may be left.
    """
    query = checked_query(
        entries, session=session, path=path, match=match, since=since, whole_words=whole_words, for_good=for_good
    )
    erase_expired(parts)
    conversations = parts.conversations() if parts.sessions_folder.is_dir() else None
    search = TargetSearch(
        parts,
        query,
        conversations,
        one_entry=one_entry,
        dry_run=dry_run,
        confirmed=confirmed_lines(confirmed),
    )
    work = _Work(search)
    if not dry_run:
        work.remove_drafts()
    try:
        targets, problems = search.run()
    except (SessionNotFoundError, NoteNotFoundError, EntryNotFoundError):
        if for_good and not dry_run:  # a process that was killed may have deleted the file and erased no traces
            work.rebuild_registry()
            erase_traces(parts)
        raise
    found = tuple(target.forgotten for target in targets)
    if dry_run:
        notes = () if found else (NOTHING,)
        return ForgetReport(True, found, problems=tuple(problems), notes=notes, for_good=for_good)
    return work.forget(targets, problems)


@dataclass(slots=True)
class _Work:
    """One call of `forget`."""

    search: TargetSearch
    batch: OpenBatch = field(init=False)

    def __post_init__(self) -> None:
        self.batch = open_trash(self.search.parts).open_batch()

    @property
    def parts(self) -> Components:
        return self.search.parts

    @property
    def query(self) -> Query:
        return self.search.query

    @property
    def conversations(self) -> ConversationStore | None:
        return self.search.conversations

    def forget(self, targets: Sequence[Target], problems: list[Problem]) -> ForgetReport:
        done: list[Forgotten] = []
        for target in targets:
            try:
                forgotten = self._delete(target)
            except NotewellError as error:
                problems.append(Problem(target.forgotten.path, f"{error.message}; {error.hint}"))
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
        return ForgetReport(
            dry_run=False,
            forgotten=tuple(done),
            chunks=erased.chunks,
            vectors=erased.vectors,
            problems=(*problems, *erased.problems),
            notes=tuple(filter(None, (*notes, self.parts.indexes.leftovers))),
            for_good=True,
        )

    def remove_drafts(self) -> None:
        """Remove what killed processes left of notes and conversations: a draft may hold what is to be forgotten."""
        settings = self.parts.settings
        remove_drafts(self.parts.workspace, extra_paths=settings.extra_paths, include=settings.include)
        if self.conversations is not None:
            self.conversations.sweep(wait=True)
        trash = open_trash(self.parts)
        if self.query.for_good and any(folder.exists() for folder in (trash.notes_folder, trash.sessions_folder)):
            with notes_lock(self.parts.workspace):
                trash.remove_debris()

    def rebuild_registry(self) -> None:
        """Bring the registry up to date: a process that was killed may have left an entry as it was."""
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
            if self.search.confirmed is not None and not self._has_seen(forgotten.path, raw):
                raise QueryError(CHANGED, hint="run the same command again")
            if not self.query.for_good:
                self.batch.put(self._item("note", forgotten, target.dated), {"content": raw})

        extra, include = self.parts.settings.extra_paths, self.parts.settings.include
        delete_note(self.parts.workspace, forgotten.path, extra_paths=extra, include=include, keep=keep)
        return forgotten

    def _has_seen(self, path: str, raw: bytes) -> bool:
        assert self.search.confirmed is not None
        shown = self.search.confirmed.get(path, frozenset())
        return not shown or {line.strip() for line in raw.decode("utf-8", "replace").splitlines()} <= {
            line.strip() for line in shown
        }

    def _cut(self, target: Target) -> Forgotten:
        forgotten, choose = target.forgotten, target.choose
        assert choose is not None
        taken: list[tuple[int, str]] = []
        moved = MovedLines(self.parts)

        def change(raw: bytes, stored: str) -> bytes | None:
            text = decode_note(raw)
            listed = text.split("\n")
            numbers = sorted(number for number in choose(text) if number <= len(listed))
            taken[:] = [(number, listed[number - 1]) for number in numbers]
            if not numbers:
                return None
            content, cuts = cut_lines(raw, stored, numbers)
            moved.add(stored, numbers[0])
            if not self.query.for_good:
                item = replace(self._item("lines", forgotten, target.dated), count=len(numbers), cuts=cuts)
                self.batch.put(replace(item, before=_hash(raw), after=_hash(content)))
            return content

        extra, include = self.parts.settings.extra_paths, self.parts.settings.include
        change_note(self.parts.workspace, forgotten.path, change, extra_paths=extra, include=include)
        if not taken and self.search.confirmed is not None:
            raise QueryError(CHANGED, hint="run the same command again")
        return replace(forgotten, count=len(taken), lines=tuple(ForgottenLine(*each) for each in taken))

    def _item(self, kind: Kind, forgotten: Forgotten, dated: date | None = None) -> TrashItem:
        return TrashItem(
            kind,
            forgotten.path,
            agent="",
            chat="",
            count=forgotten.count,
            dated=dated.isoformat() if dated else "",
        )

    # --- the trash ---------------------------------------------------------------------------------

    def _erase_item(self, item: TrashItem) -> None:
        """Erase an item, or the matching lines of it."""
        trash, query = open_trash(self.parts), self.query
        if query.match is None or query.is_in(item.path) or item.source == "sessions":
            trash.remove(item)
        elif item.kind == "note":
            raw = item.content("content")
            content, _ = cut_lines(raw, item.path, query.lines_in(decode_note(raw)))
            trash.rewrite(item, {"content": content})
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
                trash.rewrite(replace(item, cuts=left, before="", after=""))
            else:
                trash.remove(item)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
