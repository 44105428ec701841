"""Appends texts and summaries of conversations to notes, unless a note already says the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from notewell.errors import EntryNotFoundError, NoteNotFoundError, NotewellError, PathRefusedError, RememberError
from notewell.memory.answering import search
from notewell.memory.note_files import (
    check_cited,
    daily_note,
    entry_text,
    index_notes,
    lines_move,
    notes_lock,
)
from notewell.memory.note_lines import check_statement, lines_marked_as_replaced, marked_as_replaced
from notewell.memory.reading import check_author, find_entry, read_note
from notewell.memory.statements import most_similar, similar_statements
from notewell.reports import KnownAlready, Listed, Remembered
from notewell.search.options import SearchOptions, build_request
from notewell.sources.privacy import is_private
from notewell.text.entries import Entry, checked_category, checked_importance
from notewell.text.redaction import redact
from notewell.types import Citation, EntryPlace

if TYPE_CHECKING:
    from notewell.memory.components import Components
    from notewell.sessions import ConversationStore, Flushed
    from notewell.sessions.flush import Summarize
    from notewell.types import Document

LONGEST_QUERY = 400  # characters; searching for more of a long text finds nothing else
CANDIDATES = 8  # hits that are compared; a note that says the same shares the words and ranks high
MOST_SHOWN = 3  # similar statements that are pointed out


def remember(
    parts: Components,
    entry: Entry,
    *,
    to: str | None,
    force: bool = False,
    keep_secret: bool = False,
    replaces: str | None = None,
) -> Remembered:
    """Append the entry to a note, by default today's, unless a note already says the same; `force` skips that check.

    With `replaces`, the id or citation of an older entry, list item or paragraph, it is always written, and the older
    one is marked as replaced.
    """
    force = force or replaces is not None
    checked_category(entry.category)
    checked_importance(entry.importance)
    moment = entry.date or datetime.now().astimezone()
    path = Citation.parse(to).path if to else daily_note(moment.date())
    cleaned = entry_text(entry.text)
    without_secrets = redact(cleaned).text  # what is searched for goes to an embedding provider
    text = cleaned if keep_secret else without_secrets
    in_note: list[KnownAlready] = []

    def says_so(note: str) -> bool:
        if parts.audience.is_group and is_private(path, note):
            raise PathRefusedError(path)  # a group must not learn what the note says
        in_note[:] = [known for known in similar_statements(text, path, note) if known.same]
        return bool(in_note) and not force

    if replaces is not None and Citation.parse(replaces).first_line is not None:
        cited = _entry_to_replace(parts, replaces, moment)
        check_cited(parts, _read(parts, cited.path), Citation.parse(cited.citation))
    with notes_lock(parts.workspace):
        older = None if replaces is None else _entry_to_replace(parts, replaces, moment)
        known = most_similar(_known(parts, text, without_secrets), MOST_SHOWN)
        if known and known[0].same and not force:
            return _known_already(path, known, ())
        entry = replace(
            entry, date=moment, chat=parts.audience.label, replaces=(older.entry,) if older and older.entry else ()
        )
        done = parts.note_files.append(path, entry, unless=says_so, keep_secret=keep_secret, locked=True)
        marked = _marked_as_replaced(parts, older, done.entry, moment) if older and done else ""
    if done is None:  # another process has just written it, and it is not indexed yet
        return _known_already(path, most_similar((*in_note, *known), MOST_SHOWN), index_notes(parts, [path]))
    if older is None:
        return _written(done, known, index_notes(parts, [done.path]))
    known = tuple(each for each in known if each.citation != str(Citation(older.path, older.first_line)))
    notes = index_notes(parts, list(dict.fromkeys((done.path, older.path))))
    place = EntryPlace(older.entry or "", older.citation)
    return replace(_written(done, known, (*filter(None, [marked]), *notes)), replaced=None if marked else place)


def _entry_to_replace(parts: Components, reference: str, moment: datetime) -> Listed:
    """Return the older entry; lines without a comment become an entry when they are marked."""
    cited = Citation.parse(reference.strip())
    try:
        older = find_entry(parts, reference)
    except EntryNotFoundError as error:
        if cited.first_line is None or error.count:
            raise
        try:
            older = _lines_to_replace(parts, cited, moment)
        except (NoteNotFoundError, PathRefusedError, FileNotFoundError):
            raise error from None
    check_author(parts.audience, older.chat or "", older.citation)
    if older.replaced_by:
        raise RememberError(
            f"{older.citation} is replaced already, by {older.replaced_by}", hint="replace that entry instead"
        )
    return older


def _read(parts: Components, path: str) -> Document:
    if parts.transcripts and parts.transcripts.may_hold(path):
        raise RememberError(f"{path} is a conversation", hint="only what notes say can be replaced")
    return parts.notes.read(parts.notes.stamp_of(path), as_written=True)


def _lines_to_replace(parts: Components, cited: Citation, moment: datetime) -> Listed:
    document = _read(parts, cited.path)
    path, first, last = document.stamp.path, cited.first_line or 1, cited.last_line or 1
    lines = document.text.split("\n")
    if path.startswith("@"):
        raise RememberError(f"{path} is outside the workspace", hint="edit that file yourself")
    if not max(document.body_first_line, 1) <= first <= last <= len(lines):
        raise RememberError(
            f"{Citation(path, first, last)} is not in the note", hint="search for its content to get its citation"
        )
    check_statement(path, document.text, range(first, last + 1))
    text = "\n".join(lines[first - 1 : last])
    citation = str(Citation(path, first, last))
    made = Entry(text, date=moment, source=citation)  # for its id only: when and by whom it was written is unknown
    return Listed("entry", path, citation, text, moment, "memory", first, last, entry=made.id)


def _marked_as_replaced(parts: Components, older: Listed, entry: str, moment: datetime) -> str:
    """Mark the older entry in its note; return the reason if that failed: the new entry is written anyway."""

    def change(raw: bytes, stored: str) -> bytes:
        if older.category is not None:
            return marked_as_replaced(raw, stored, older.entry or "", entry, moment)
        lines = range(older.first_line or 1, (older.last_line or 1) + 1)
        made = Entry(older.text, older.entry or "", replaced_by=entry, replaced_at=moment, line_count=len(lines))
        content = lines_marked_as_replaced(raw, stored, lines, made)
        lines_move(parts, stored, lines[-1] + 1)
        return content

    try:
        parts.note_files.change(older.path, change, locked=True)
    except NotewellError as error:
        return f"{older.citation} could not be marked as replaced: {error.full_message}"
    return ""


def flush_session(
    parts: Components,
    conversations: ConversationStore,
    session_id: str,
    *,
    summarize: Summarize | None,
    keep_last: int,
    now: datetime | None = None,
) -> Flushed:
    """Append what should outlive the compaction of a session to today's note, and index the note."""
    from notewell.sessions.flush import flush

    done = flush(conversations, session_id, NoteWriter(parts), summarize=summarize, keep_last=keep_last, now=now)
    notes = index_notes(parts, [done.path]) if done.path else ()
    return replace(done, note="; ".join(filter(None, (done.note, *notes))))


@dataclass(frozen=True, slots=True)
class NoteWriter:
    """Appends the entries of a flush to notes, each once: a note that contains the mark already has it."""

    parts: Components

    def __call__(self, path: str, text: str, *, source: str, mark: str, when: datetime) -> bool:
        entry = Entry(text, date=when, author=self.parts.agent, source=source, chat=self.parts.audience.label)
        return self.parts.note_files.append(path, entry, unless=lambda note: mark in note) is not None


def _known(parts: Components, text: str, searched: str) -> list[KnownAlready]:
    """Return similar statements that the audience may see; the notes themselves are read, not snippets."""
    query = " ".join(searched.split())[:LONGEST_QUERY]
    options = SearchOptions(limit=CANDIDATES, min_score=0.0)
    request = build_request(parts.settings, query, options, opened_for=parts.audience)
    found: list[KnownAlready] = []
    for hit in search(parts, request).hits:
        if hit.source != "memory" or hit.replaced_by:
            continue
        count = hit.last_line - hit.first_line + 1
        try:
            note = read_note(parts.notes, hit.path, first_line=hit.first_line, lines=count)
        except NoteNotFoundError:  # gone since the search
            continue
        found += similar_statements(text, hit.path, note.text, first_line=hit.first_line)
    return found


def _written(done: Remembered, known: tuple[KnownAlready, ...], notes: tuple[str, ...]) -> Remembered:
    if secrets := done.kept or done.redacted:
        done_with = "written as it is, because you asked for it" if done.kept else "redacted before it was written"
        notes = (f"{done_with}: {', '.join(secrets)}", *notes)
    return replace(done, known=known, notes=notes)


def _known_already(path: str, known: tuple[KnownAlready, ...], notes: tuple[str, ...]) -> Remembered:
    return Remembered(written=False, path=path, citation=known[0].citation, known=known, notes=notes)
