"""Remembers: appends texts and summaries of conversations to notes, unless a note says the same already."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from notewell.errors import NoteNotFoundError, NotewellError, PathRefusedError
from notewell.indexing.sync import BACKGROUND
from notewell.memory.note_writing import Appended, append_note, daily_note, entry_text, notes_lock
from notewell.memory.reading import read_note
from notewell.search.options import SearchOptions, build_request
from notewell.sources.privacy import DIRECT, Audience, is_private
from notewell.text.entries import (
    CATEGORY,
    IMPORTANCE,
    Entry,
    checked_category,
    checked_importance,
    without_comments,
)
from notewell.text.redaction import redact
from notewell.types import Category, Citation, KnownAlready, Remembered

if TYPE_CHECKING:
    from notewell.memory.components import Components
    from notewell.sessions import ConversationStore, Flushed
    from notewell.sessions.flush import Summarize

LONGEST_QUERY = 400  # characters; a search for a page says no more than one for its beginning
CANDIDATES = 8  # hits that are compared: what says the same shares its words, and so is among the first
MOST_SHOWN = 3  # similar statements that are pointed out
SAME = 0.8  # share of words in common from which two statements say the same, if no name, number or `not` differs
SIMILAR = 0.5  # from here on a person should look at both
MOST_PIECES = 400  # statements of one note that are compared; a diary of years has more, and the newest come last

_WORD = re.compile(r"[^\W_]+(?:['’.@:/_-]?[^\W_]+)*")
_BULLET = re.compile(r"^\s*+(?:[-*+>]|\d{1,9}[.)])\s+")
_NEGATIONS = frozenset("no not never none nothing without cannot nicht kein keine nie pas jamais nunca".split())
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
# Words that carry no statement of their own: without them a reworded sentence is seen to be the same.
_LIGHT = frozenset(
    "a an the is are was were be been it its this that of to in on at for and or by with as our my".split()
)


def remember(
    parts: Components,
    text: str,
    *,
    to: str | None,
    who: str,
    source: str,
    category: Category = CATEGORY,
    importance: int = IMPORTANCE,
    force: bool = False,
    keep_secret: bool = False,
    audience: Audience = DIRECT,
    now: datetime | None = None,
) -> Remembered:
    """Append the text to a note, today's unless one is named, if nothing says the same yet or `force` is given."""
    category, importance = checked_category(category), checked_importance(importance)
    moment = now or datetime.now().astimezone()
    path = Citation.parse(to).path if to else daily_note(moment.date())
    cleaned = entry_text(text)
    without_secrets = redact(cleaned).text  # what is searched for goes to an embedding provider
    entry = cleaned if keep_secret else without_secrets
    in_note: list[Known] = []

    def says_so(note: str) -> bool:
        if audience.is_group and is_private(path, note):
            raise PathRefusedError(path)  # a group must not learn whether it is known there already
        in_note[:] = [known for known in similar_statements(entry, path, note) if known.same]
        return bool(in_note) and not force

    with notes_lock(parts.workspace):
        known = most_similar(_known(parts, entry, without_secrets, audience), MOST_SHOWN)
        if known and known[0].same and not force:
            return _known_already(path, known, ())
        done = append_note(
            parts.workspace,
            path,
            Entry(text, date=moment, author=who, source=source, category=category, importance=importance),
            extra_paths=parts.settings.extra_paths,
            include=parts.settings.include,
            unless=says_so,
            keep_secret=keep_secret,
            locked=True,
        )
    if done is None:  # another process wrote it a moment ago, and the index does not know yet
        return _known_already(path, most_similar((*in_note, *known), MOST_SHOWN), _indexed(parts, path))
    return _written(done, known, _indexed(parts, done.path))


def flush_session(
    parts: Components,
    conversations: ConversationStore,
    session_id: str,
    *,
    summarize: Summarize | None,
    keep_last: int,
    now: datetime | None = None,
) -> Flushed:
    """Append what must outlive the compaction of a session to today's note, and index the note."""
    from notewell.sessions.flush import flush

    done = flush(conversations, session_id, NoteWriter(parts), summarize=summarize, keep_last=keep_last, now=now)
    if not done.path:
        return done
    try:
        parts.sync.run(replace(BACKGROUND, paths=[done.path]))
    except NotewellError as error:  # it is written: the failure is only noted
        note = f"it is written, but not indexed yet: {error.message}"
        return replace(done, note=f"{done.note}; {note}" if done.note else note)
    return done


@dataclass(frozen=True, slots=True)
class NoteWriter:
    """Appends entries of a flush to notes; an entry whose mark a note holds already is not written again."""

    parts: Components

    def __call__(self, path: str, text: str, *, source: str, mark: str, when: datetime) -> bool:
        done = append_note(
            self.parts.workspace,
            path,
            Entry(text, date=when, author=self.parts.agent, source=source),
            extra_paths=self.parts.settings.extra_paths,
            include=self.parts.settings.include,
            unless=lambda note: mark in note,
        )
        return done is not None


def _known(parts: Components, entry: str, searched: str, audience: Audience) -> list[Known]:
    """Return similar statements that the audience may see; the notes themselves are read, not snippets."""
    query = " ".join(searched.split())[:LONGEST_QUERY]
    options = SearchOptions(limit=CANDIDATES, min_score=0.0)
    request = build_request(parts.settings, query, options, opened_for=audience)
    found: list[Known] = []
    for hit in parts.answering.search(request).hits:
        if hit.source != "memory":
            continue
        count = hit.last_line - hit.first_line + 1
        try:
            note = read_note(parts.notes, hit.path, first_line=hit.first_line, lines=count)
        except NoteNotFoundError:  # gone since the search
            continue
        found += similar_statements(entry, hit.path, note.text, first_line=hit.first_line)
    return found


def _indexed(parts: Components, path: str) -> tuple[str, ...]:
    """Index the note and return what to tell about it; it is written, so a failure is only noted."""
    try:
        report = parts.sync.run(replace(BACKGROUND, paths=[path]))
    except NotewellError as error:
        return (f"it is written, but not indexed yet: {error.message}; {error.hint}",)
    return (*report.notes, *(f"{problem.path}: {problem.reason}" for problem in report.problems))


def _written(done: Appended, known: Sequence[Known], notes: tuple[str, ...]) -> Remembered:
    if done.secrets:
        done_with = "written as it is, because you asked for it" if done.kept else "redacted before it was written"
        notes = (f"{done_with}: {', '.join(done.secrets)}", *notes)
    return Remembered(
        written=True,
        path=done.path,
        first_line=done.first_line,
        last_line=done.last_line,
        citation=done.citation,
        entry=done.entry,
        known=_shown(known),
        redacted=() if done.kept else done.secrets,
        kept=done.secrets if done.kept else (),
        notes=notes,
    )


def _known_already(path: str, known: Sequence[Known], notes: tuple[str, ...]) -> Remembered:
    return Remembered(written=False, path=path, citation=known[0].citation, known=_shown(known), notes=notes)


def _shown(known: Sequence[Known]) -> tuple[KnownAlready, ...]:
    return tuple(KnownAlready(each.citation, each.text, each.likeness, each.same) for each in known)


# --- similarity of statements --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """A statement of a note that is similar to a new text."""

    path: str
    line: int  # 1-based
    text: str
    likeness: float  # 0 to 1; 1 is the same words
    same: bool  # says the same: writing it again would add nothing

    @property
    def citation(self) -> str:
        return str(Citation(self.path, self.line))


def similar_statements(text: str, path: str, note: str, *, first_line: int = 1) -> list[Known]:
    """Return the statements of a note, or of a part of it, that are similar to `text`, the most similar first."""
    words = _words(text)
    if not words:
        return []
    found = []
    for line, piece in _pieces(without_comments(note).split("\n"), text):
        likeness, same = _compare(words, _words(piece))
        if likeness >= SIMILAR:
            found.append(Known(path, first_line + line, piece.strip(), round(likeness, 3), same))
    return sorted(found, key=lambda known: (not known.same, -known.likeness, known.line))


def most_similar(found: Iterable[Known], limit: int) -> tuple[Known, ...]:
    """Return the most similar statements, each place once."""
    places: dict[tuple[str, int], Known] = {}
    for known in sorted(found, key=lambda known: (not known.same, -known.likeness)):
        places.setdefault((known.path, known.line), known)
    return tuple(places.values())[:limit]


def _pieces(lines: list[str], text: str) -> Iterator[tuple[int, str]]:
    """Yield lines, sentences and, for a text of several lines, runs of as many lines, the last of a note first."""
    height = max(1, len([line for line in text.split("\n") if line.strip()]))
    filled = [(number, _BULLET.sub("", line, count=1)) for number, line in enumerate(lines) if line.strip()]
    for number, line in filled[-MOST_PIECES:]:
        yield number, line
        sentences = _SENTENCE_END.split(line)
        if len(sentences) > 1:
            yield from ((number, sentence) for sentence in sentences)
    if height > 1:
        for at in range(max(0, len(filled) - MOST_PIECES), len(filled) - height + 1):
            yield filled[at][0], "\n".join(line for _, line in filled[at : at + height])


def _words(text: str) -> dict[str, str]:
    """Return the words that count, folded, each with how it was written."""
    written = {word.casefold(): word for word in _WORD.findall(text)}
    return {word: shown for word, shown in written.items() if word not in _LIGHT} or written


def _compare(new: dict[str, str], known: dict[str, str]) -> tuple[float, bool]:
    shared = new.keys() & known.keys()
    if not shared:
        return 0.0, False
    likeness = len(shared) / len(new.keys() | known.keys())
    differing = [(word, new.get(word) or known[word]) for word in new.keys() ^ known.keys()]
    return likeness, likeness >= SAME and not any(_decides(word, shown) for word, shown in differing)


def _decides(word: str, shown: str) -> bool:
    """Return whether a word alone changes what a sentence states: a number, a name, a negation."""
    return word in _NEGATIONS or shown != word or any(map(str.isdigit, word))
