"""A memory and a text in, an entry in a note and what was known already out."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from notewell.errors import NoteNotFoundError, NotewellError, PathRefusedError
from notewell.memory.remembering.appending import Appended, Provenance, append_note, daily_note, entry_text, notes_lock
from notewell.memory.remembering.likeness import Known, best_of, likenesses
from notewell.sources.front_matter import split_front_matter
from notewell.sources.privacy import Audience, Chat, audience_of, is_private
from notewell.types import KnownAlready, Remembered

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from notewell.settings import Settings
    from notewell.types import Hit, IndexReport, NoteText, SearchAnswer

LONGEST_QUERY = 400  # characters; a search for a page says no more than one for its beginning
CANDIDATES = 8  # hits that are compared: what says the same shares its words, and so is among the first
MOST_SHOWN = 3  # statements like it that are pointed out


class CatchingUp(Protocol):
    """What brings notes into the index without asking what that may cost."""

    def catch_up(self, *, paths: Collection[str] | None = None) -> IndexReport: ...


class Searched(Protocol):
    """The part of `Memory` that remembering needs."""

    workspace: Path
    settings: Settings
    audience: Audience

    def search(
        self, query: str, *, limit: int | None = None, min_score: float | None = None, chat: Chat | None = None
    ) -> SearchAnswer: ...

    def get(
        self, path: str, *, first_line: int = 1, lines: int | None = None, chat: Chat | None = None
    ) -> NoteText: ...

    @property
    def parts(self) -> CatchingUp: ...


def remember_in(
    memory: Searched,
    text: str,
    *,
    to: str | None,
    who: str,
    source: str,
    force: bool = False,
    chat: Chat | None = None,
    now: datetime | None = None,
) -> Remembered:
    """Append the text to a note, today's unless one is named, if nothing says the same yet or `force` is given."""
    moment = now or datetime.now().astimezone()
    path = to or daily_note(moment.date())
    audience = audience_of(chat, None, memory.audience)
    entry = entry_text(text).text
    in_note: list[Known] = []

    def says_so(note: str) -> bool:
        if audience.is_group and is_private(path, split_front_matter(note)[0], note):
            raise PathRefusedError(path)  # whether it is known there already is not for a group to learn
        in_note[:] = [known for known in likenesses(entry, path, note) if known.same]
        return bool(in_note) and not force

    with notes_lock(memory.workspace):
        known = best_of(_alike(memory, entry, audience), MOST_SHOWN)
        if known and known[0].same and not force:
            return _known_already(path, known, ())
        done = append_note(
            memory.workspace,
            path,
            text,
            provenance=Provenance(who, source, moment),
            extra_paths=memory.settings.extra_paths,
            unless=says_so,
            locked=True,
        )
    if done is None:  # another process wrote it a moment ago, and the index does not know yet
        return _known_already(path, best_of((*in_note, *known), MOST_SHOWN), _indexed(memory, path))
    return _written(done, known, _indexed(memory, done.path))


def _alike(memory: Searched, entry: str, audience: Audience) -> list[Known]:
    """Return statements like the entry, of what the audience may see; the notes themselves are read, not snippets."""
    query = " ".join(entry.split())[:LONGEST_QUERY]
    found: list[Known] = []
    for hit in memory.search(query, limit=CANDIDATES, min_score=0.0, chat=audience.chat).hits:
        if hit.source == "memory":
            found += likenesses(entry, hit.path, _lines_of(memory, hit, audience), first_line=hit.first_line)
    return found


def _lines_of(memory: Searched, hit: Hit, audience: Audience) -> str:
    try:
        count = hit.last_line - hit.first_line + 1
        return memory.get(hit.path, first_line=hit.first_line, lines=count, chat=audience.chat).text
    except NoteNotFoundError:  # gone since the search: nothing it could repeat
        return ""


def _indexed(memory: Searched, path: str) -> tuple[str, ...]:
    """Bring the note into the index; it is written, so what keeps it from being found is only told."""
    try:
        report = memory.parts.catch_up(paths=[path])
    except NotewellError as error:
        return (f"it is written, but not indexed yet: {error.message}; {error.hint}",)
    return (*report.notes, *(f"{problem.path}: {problem.reason}" for problem in report.problems))


def _written(done: Appended, known: Sequence[Known], notes: tuple[str, ...]) -> Remembered:
    if done.redacted:
        notes = (f"hidden before it was written: {', '.join(done.redacted)}", *notes)
    return Remembered(
        written=True,
        path=done.path,
        first_line=done.first_line,
        last_line=done.last_line,
        citation=done.citation,
        known=_shown(known),
        redacted=done.redacted,
        notes=notes,
    )


def _known_already(path: str, known: Sequence[Known], notes: tuple[str, ...]) -> Remembered:
    return Remembered(written=False, path=path, citation=known[0].citation, known=_shown(known), notes=notes)


def _shown(known: Sequence[Known]) -> tuple[KnownAlready, ...]:
    return tuple(KnownAlready(each.citation, each.text, each.likeness, each.same) for each in known)
