"""Finds what to forget: entries, lines, notes and conversations, also in the trash. Writes nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import (
    EntryNotFoundError,
    NoteNotFoundError,
    NotewellError,
    QueryError,
    SessionDamagedError,
    SessionNotFoundError,
    SessionTooNewError,
)
from notewell.memory.components import TRASH_FOLDER
from notewell.memory.note_files import check_cited
from notewell.memory.reading import check_author, find_entry
from notewell.memory.trash import TrashItem, open_trash, shown_item
from notewell.reports import ForgetReport, Forgotten, ForgottenLine
from notewell.search.dates.question import parse_day
from notewell.sources.notes import decode_note
from notewell.sources.transcripts import session_at
from notewell.text.entries import Entry, find_entries, without_comments
from notewell.text.phrases import Phrase
from notewell.types import Citation, Problem

if TYPE_CHECKING:
    from notewell.memory.components import Components
    from notewell.memory.storage import Transcripts
    from notewell.sessions import ConversationStore
    from notewell.types import Document

LONGEST_PHRASE = 2_000  # characters to be matched
LONGEST_PASSAGE = 200  # characters shown of a message
CHANGED = "it has changed since it was shown, so it was left as it is: look again"

_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Query:
    """What to forget: exactly one of the first four, optionally only from some day on."""

    entries: tuple[str, ...] = ()
    session: str | None = None
    path: str | None = None
    match: Phrase | None = None
    since: date | None = None
    for_good: bool = False

    def covers(self, day: date | None) -> bool:
        """Return whether a day is covered; undated text is covered only without `since`."""
        return self.since is None or (day is not None and day >= self.since)

    def covers_message(self, text: str, time_ms: int) -> bool:
        day = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone().date() if time_ms else None
        return self.covers(day) and (self.match is None or self.is_in(text))

    def is_in(self, text: str) -> bool:
        """Return whether a text contains the phrase, plain or escaped as in JSON."""
        assert self.match is not None
        return self.match.is_in(text) or ("\\" in text and self.match.is_in(_unescaped(text)))

    def lines_in(self, note: str) -> tuple[int, ...]:
        """Return the matching lines of a note; the comments of entries count only with `for_good`."""
        assert self.match is not None
        return self.match.lines_in(note if self.for_good else without_comments(note))


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to delete."""

    forgotten: Forgotten
    choose: Callable[[str], Collection[int]] | None = None  # lines of a note as it is now; None: all of it
    session: str | None = None  # of the session store; None: a note, or a transcript of another program
    item: TrashItem | None = None  # in the trash: it is erased
    dated: date | None = None


def checked_query(
    entries: Sequence[str],
    session: str | None,
    path: str | None,
    match: str | None,
    since: str | date | None,
    *,
    whole_words: bool,
    for_good: bool,
) -> Query:
    """Return the query; raises QueryError if it names nothing, or two things."""
    if path is not None and Citation.parse(path).first_line is not None:
        entries, path = (*entries, path), None
    if bool(entries) + sum(value is not None for value in (session, path, match)) != 1:
        raise QueryError(
            "name one thing to forget",
            hint="give ids or citations of entries, or one of --session ID, --path NOTE and --match TEXT",
        )
    if match is not None and len(match) > LONGEST_PHRASE:  # the time grows with its length times that of the notes
        raise QueryError(
            f"a text to match has {LONGEST_PHRASE:,} characters at most, this one {len(match):,}",
            hint="give its beginning, or forget the note with --path",
        )
    phrase = None if match is None else Phrase(match, whole_words)
    if phrase and phrase.is_too_short:
        raise QueryError(f"{match!r} is too short: it would be found everywhere", hint="use 3 characters or more")
    return Query(tuple(dict.fromkeys(entries)), session, path, phrase, _first_day(since, entries), for_good)


def _first_day(since: str | date | None, entries: Sequence[str]) -> date | None:
    if since is not None and entries:
        raise QueryError("an entry is forgotten whatever its day", hint="leave --since out")
    if not isinstance(since, str):
        return since
    days = parse_day(since, datetime.now().astimezone().date())
    return days[0] if isinstance(days, tuple) else days


def confirmed_lines(confirmed: ForgetReport | None) -> Mapping[str, frozenset[str]] | None:
    """Return the lines that were shown for confirmation, by note."""
    if confirmed is None:
        return None
    return {each.path: frozenset(line.text for line in each.lines) for each in confirmed.forgotten}


@dataclass(frozen=True, slots=True)
class TargetSearch:
    """Finds what a query covers, for one audience."""

    parts: Components
    query: Query
    conversations: ConversationStore | None
    one_entry: bool = False  # refuse a citation of more than one entry
    dry_run: bool = False  # only show what is found
    confirmed: Mapping[str, frozenset[str]] | None = None  # lines that a person has seen, by note

    def run(self) -> tuple[list[Target], list[Problem]]:
        """Return the targets, and what cannot be read or is not ours to change."""
        problems: list[Problem] = []
        in_trash = list(self._in_trash(problems)) if self.query.for_good else []
        try:
            if self.query.entries:
                targets = [target for each in self.query.entries for target in self._entry(each, problems)]
            elif self.query.session is not None:
                targets = list(self._session(self.query.session, problems))
            elif self.query.path is not None:
                targets = list(self._path(self.query.path, problems))
            else:
                targets = list(self._matches(problems))
        except (SessionNotFoundError, NoteNotFoundError, EntryNotFoundError):
            if not in_trash:
                raise
            targets = []
        return [*targets, *in_trash], problems

    # --- entries -----------------------------------------------------------------------------------

    def _entry(self, name: str, problems: list[Problem]) -> Iterator[Target]:
        cited = Citation.parse(name.strip())
        if cited.first_line is not None:
            yield self._cited(cited, problems)
        elif "/" in name or name.casefold().endswith(".md"):
            if self.one_entry:
                raise QueryError(f"{name!r} is a whole file", hint="name one entry by its id, or by path#L5-L9")
            yield from self._path(name, problems)
        else:
            yield self._by_id(name, problems)

    def _by_id(self, entry_id: str, problems: list[Problem]) -> Target:
        try:
            listed = find_entry(self.parts, entry_id)
        except EntryNotFoundError as error:
            if not error.count:
                error.hint += "; `notewell forget --match TEXT` takes the lines that contain a text"
            raise
        document = self.parts.notes.read(self.parts.notes.stamp_of(listed.path), as_written=True)
        entry = next((each for each in find_entries(document.text).entries if each.id == entry_id), None)
        if entry is None:  # gone in the meantime
            raise EntryNotFoundError(entry_id)
        path, dated = document.stamp.path, document.dated
        check_author(self.parts.audience, entry.chat, str(Citation(path, entry.first_line, entry.last_line)))
        self._check_inside(path)
        problems += self._other_names(path)

        def choose(text: str) -> Collection[int]:
            now = next((each for each in find_entries(text).entries if each.id == entry_id), None)
            return range(now.first_line, now.last_line + 1) if now else ()

        lines = tuple(
            ForgottenLine(number, text) for number, text in enumerate(entry.text.split("\n"), start=entry.first_line)
        )
        return Target(Forgotten(path, "memory", whole=False, count=len(lines), lines=lines), choose, dated=dated)

    def _cited(self, cited: Citation, problems: list[Problem]) -> Target:
        document = self._cited_note(cited.path)
        first, last = cited.first_line or 1, cited.last_line or 1
        stored, listed = document.stamp.path, document.text.split("\n")
        if not 0 < first <= last or first > len(listed) - (not listed[-1]):
            raise QueryError(
                f"{Citation(stored, first, last)} is not in the note", hint="search for its content to get its citation"
            )
        numbers = range(first, min(last, len(listed)) + 1)
        if any(listed[number - 1].strip() for number in set(numbers) - self._own(document.text, numbers)):
            check_author(self.parts.audience, "", str(cited))
        entries = [
            each
            for each in find_entries(document.text).entries
            if each.first_line <= numbers[-1] and numbers[0] <= each.comment_line
        ]
        if self.one_entry:
            _check_one(stored, numbers, listed, entries)
        self._check_inside(stored)
        problems += self._other_names(stored)
        expected = [listed[number - 1] for number in numbers]
        if self.confirmed is not None and not self.confirmed.get(stored, frozenset()).issuperset(expected):
            raise QueryError(f"{stored}: {CHANGED}", hint="run the same command again")
        if self.confirmed is None and not self.dry_run:
            check_cited(self.parts, document, Citation(stored, numbers[0], numbers[-1]))
        return Target(_lines_of(stored, listed, numbers), _choose_same(numbers, expected), dated=document.dated)

    def _cited_note(self, path: str) -> Document:
        if self.parts.transcripts and self.parts.transcripts.may_hold(path):
            raise QueryError(
                f"{path} is a conversation, of which no single lines can be forgotten",
                hint="use --match TEXT, or --path for all of it",
            )
        if self.parts.notes not in self.parts.sources:
            raise NoteNotFoundError(path)
        return self.parts.notes.read(self.parts.notes.stamp_of(path), as_written=True)

    def _own(self, text: str, numbers: Collection[int]) -> set[int]:
        """Return the lines that the audience may forget: for a group, only those of entries that it wrote."""
        if not self.parts.audience.is_group:
            return set(numbers)
        own = (each for each in find_entries(text).entries if each.chat == self.parts.audience.label)
        return {number for each in own for number in range(each.first_line, each.comment_line + 1)} & set(numbers)

    @staticmethod
    def _check_inside(path: str) -> None:
        if path.startswith("@"):
            raise QueryError(f"{path} is outside the workspace", hint="edit that file yourself")

    # --- conversations and files -------------------------------------------------------------------

    def _session(self, session_id: str, problems: list[Problem]) -> Iterator[Target]:
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
        with suppress(NotewellError):  # corrupt or half deleted: it is deleted anyway
            count = self.conversations.entry(session_id).message_count
        yield Target(Forgotten(shown, "sessions", whole=True, count=count), session=session_id)

    def _part_of_session(
        self, conversations: ConversationStore, session_id: str, problems: list[Problem]
    ) -> Iterator[Target]:
        shown: dict[str, None] = {}

        def unwanted(text: str, time_ms: int) -> bool:
            covered = self.query.covers_message(text, time_ms)
            if covered:
                shown[self._passage(text)] = None
            return covered

        try:
            count = conversations.count_unwanted(session_id, unwanted)
            place = conversations.files_of(session_id)[0].relative_to(conversations.folder).as_posix()
        except (SessionDamagedError, SessionTooNewError) as error:
            problems.append(Problem(f"session {session_id}", error.full_message))
            return
        if count:
            lines = tuple(ForgottenLine(0, text) for text in list(shown)[:count])
            yield Target(
                Forgotten(f"sessions/{place}", "sessions", whole=False, count=count, lines=lines), session=session_id
            )

    def _passage(self, text: str) -> str:
        """Return an excerpt of a message: the line that contains the text, or the beginning."""
        span = next(self.query.match.spans(text), None) if self.query.match else None
        start, end = span or (0, 0)
        line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        line_end = len(text) if line_end < 0 else line_end
        first = max(line_start, start - LONGEST_PASSAGE // 2)
        return text[first : min(line_end, first + LONGEST_PASSAGE)].strip()

    def _path(self, path: str, problems: list[Problem]) -> Iterator[Target]:
        source = next((source for source in self.parts.sources if source.may_hold(path)), None)
        own = session_at(path) if source and source.name == "sessions" else None
        if own and self.conversations is not None:
            yield from self._session(own, problems)
            return
        stamp = next(iter(source.list([path]).files), None) if source else None
        if source is None or stamp is None:
            raise NoteNotFoundError(path)
        if source.name == "sessions":
            yield Target(Forgotten(stamp.path, "sessions", whole=True, count=0))
            return
        check_author(self.parts.audience, "", stamp.path)
        document = self.parts.notes.read(stamp, as_written=True)
        problems += self._other_names(document.stamp.path)
        listed = document.text.removesuffix("\n").split("\n") if document.text else []
        found = _lines_of(document.stamp.path, listed, range(1, len(listed) + 1))
        yield Target(replace(found, whole=True), dated=document.dated)

    def _other_names(self, path: str) -> Iterator[Problem]:
        """Yield a problem if the file has other names, under which the text stays."""
        if self.parts.notes.resolve(path).stat().st_nlink > 1:
            yield Problem(path, "has another name (a hard link), which keeps the text: delete that file, too")

    # --- matches -----------------------------------------------------------------------------------

    def _matches(self, problems: list[Problem]) -> Iterator[Target]:
        yield from self._matching_notes(problems)
        if self.conversations is not None:
            for session_id in self.conversations.ids():
                with suppress(SessionNotFoundError):  # deleted in the meantime
                    yield from self._part_of_session(self.conversations, session_id, problems)
            if not self.parts.audience.is_group:  # a group may not see the rest of the folder
                problems += self._unknown_files(self.conversations)
        if self.parts.transcripts is not None:
            problems += self._matching_transcripts(self.parts.transcripts)

    def _unknown_files(self, conversations: ConversationStore) -> Iterator[Problem]:
        """Yield the files in the state folder that contain the text and belong to no session, database or index."""
        for top, folders, names in os.walk(self.parts.folder.path):
            if TRASH_FOLDER in folders:
                folders.remove(TRASH_FOLDER)
            for path in (Path(top, name) for name in sorted(names)):
                if conversations.owns(path) or ".sqlite" in path.name:
                    continue
                with suppress(OSError):
                    content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                    if self.query.is_in(content.decode("utf-8", "replace")):
                        shown = path.relative_to(self.parts.folder.path).as_posix()
                        yield Problem(shown, "contains the text, but is not a file of notewell: delete it yourself")

    def _matching_transcripts(self, transcripts: Transcripts) -> Iterator[Problem]:
        """Yield the transcripts of other programs that contain the text; they are not ours to edit."""
        for stamp in transcripts.list().files:
            if session_at(stamp.path):
                continue
            if any(map(self.query.is_in, transcripts.rendered(stamp.path, 1))):
                hint = f"delete it there, or run notewell forget --path {stamp.path}"
                yield Problem(stamp.path, f"is a transcript of another program: {hint}")

    def _matching_notes(self, problems: list[Problem]) -> Iterator[Target]:
        notes = self.parts.notes
        if notes not in self.parts.sources:
            return
        listing = notes.list()
        problems += listing.problems
        for stamp in listing.files:
            path = stamp.path
            try:
                document = notes.read(stamp, as_written=True)
            except OSError as error:
                problems.append(Problem(path, error.strerror or str(error)))
                continue
            if not self.query.covers(document.dated):
                continue
            if self.query.is_in(path) or self.query.is_in(re.sub(r"[-_/.]+", " ", path)):
                hint = f"notewell forget --path {path}"
                problems.append(Problem(path, f"its name contains the text, too: {hint}"))
            found = self.query.lines_in(document.text)
            numbers = sorted(self._own(document.text, found))
            if found and path.startswith("@"):
                problems.append(Problem(path, "is outside the workspace: edit that file yourself"))
                continue
            if len(numbers) < len(found):
                problems.append(Problem(path, "holds the text where others than this group wrote it"))
            if numbers:
                problems += self._other_names(path)
                forgotten = _lines_of(path, document.text.split("\n"), numbers)
                yield Target(forgotten, self._choose_matches(path), dated=document.dated)

    def _choose_matches(self, path: str) -> Callable[[str], Collection[int]]:
        def choose(text: str) -> Collection[int]:
            numbers = sorted(self._own(text, self.query.lines_in(text)))
            if self.confirmed is None:
                return numbers
            seen, listed = self.confirmed.get(path, frozenset()), text.split("\n")
            return [number for number in numbers if listed[number - 1] in seen]

        return choose

    # --- the trash ---------------------------------------------------------------------------------

    def _in_trash(self, problems: list[Problem]) -> Iterator[Target]:
        trash = open_trash(self.parts)
        for item in trash.everything():
            if self._is_meant(item) and self.query.covers(item.day):
                yield Target(replace(shown_item(item), in_trash=True), item=item)
        if not self.parts.audience.is_group:
            problems += (Problem(str(path), "cannot be read: delete it yourself") for path in trash.unreadable())

    def _is_meant(self, item: TrashItem) -> bool:
        query = self.query
        if query.path is not None:
            return item.path == query.path
        if query.session is not None:
            return item.kind == "session" and item.session == query.session
        if query.match is not None:
            return query.is_in(item.path) or any(map(query.is_in, _texts_of(item)))
        return any(f"id={entry} " in text for text in _texts_of(item) for entry in query.entries)


def _lines_of(path: str, listed: Sequence[str], numbers: Sequence[int]) -> Forgotten:
    lines = tuple(ForgottenLine(number, listed[number - 1]) for number in numbers)
    return Forgotten(path, "memory", whole=False, count=len(lines), lines=lines)


def _texts_of(item: TrashItem) -> Iterator[str]:
    """Yield all that an item holds."""
    for cut in item.cuts:
        yield "".join((*cut.lines, *cut.instead))
    for name in item.contents:
        with suppress(OSError):
            yield decode_note(item.content(name))


def _check_one(path: str, numbers: range, listed: Sequence[str], entries: Sequence[Entry]) -> None:
    """Raise QueryError where lines are more than one entry, paragraph or list item."""
    texts = [listed[number - 1] for number in numbers]
    bullets = sum(bool(_BULLET.match(text)) for text in texts)
    if len(entries) == 1 and all(entries[0].first_line <= number <= entries[0].comment_line for number in numbers):
        return
    if entries or bullets > 1 or not all(text.strip() for text in texts) or (bullets and not _BULLET.match(texts[0])):
        raise QueryError(
            f"{Citation(path, numbers[0], numbers[-1])} is more than one entry",
            hint="name one entry by its id, or cite the lines of one paragraph or list item",
        )


def _choose_same(numbers: range, expected: Sequence[str]) -> Callable[[str], Collection[int]]:
    """Return a function that finds the same lines in a note that may have changed: in place, or where they moved."""

    wanted = "\n".join(["", *expected, ""])

    def choose(text: str) -> Collection[int]:
        if text.split("\n")[numbers[0] - 1 : numbers[-1]] == list(expected):
            return numbers
        text = f"\n{text}\n"
        place = text.find(wanted)
        if place < 0 or text.find(wanted, place + 1) >= 0:
            return ()
        first = text.count("\n", 0, place) + 1
        return range(first, first + len(expected))

    return choose


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")
