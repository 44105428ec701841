"""A memory and a wish in, files without what is to be forgotten and no trace of it elsewhere out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING

from notewell.errors import NoteNotFoundError, NotewellError, SessionNotFoundError, system_error
from notewell.memory.following import SESSIONS_FOLDER
from notewell.memory.forgetting.targets import Target, Wish, checked_wish, find_targets
from notewell.memory.forgetting.traces import erase_traces
from notewell.memory.remembering.cutting import cut_lines, delete_note
from notewell.settings import STATE_FOLDER, load_settings
from notewell.store.state_folder import StateFolder
from notewell.types import ForgetReport, Forgotten, Problem

if TYPE_CHECKING:
    from notewell.memory.memory import Memory
    from notewell.sessions import ConversationStore

NOTHING = "nothing of this is in the notes or conversations"


def forget_in(
    memory: Memory,
    *,
    session: str | None = None,
    path: str | None = None,
    match: str | None = None,
    since: str | date | None = None,
    dry_run: bool = False,
) -> ForgetReport:
    """Forget a conversation, a file, or every line and message that says something.

    Files come first: if the process dies on the way, the same command does the rest. Traces are wiped also when nothing
    is found, because that is what is left to do then.
    """
    wish = checked_wish(session, path, match, since, datetime.now().astimezone().date())
    conversations = _conversations(memory)
    try:
        targets, problems = find_targets(memory, wish, conversations)
    except (SessionNotFoundError, NoteNotFoundError):
        if not dry_run:  # a process that was killed may have deleted the file and wiped nothing
            erase_traces(memory)
        raise
    told = tuple(target.told for target in targets)
    if dry_run:
        return ForgetReport(dry_run=True, forgotten=told, problems=tuple(problems), notes=() if told else (NOTHING,))
    done: list[Forgotten] = []
    for target in targets:
        try:
            done.append(_forget(memory, wish, target, conversations))
        except NotewellError as error:
            problems.append(Problem(target.told.path, f"{error.message}; {error.hint}"))
    erased = erase_traces(memory)
    if any(each.source == "memory" for each in done):
        problems += _erase_for_others(memory)
    return ForgetReport(
        dry_run=False,
        forgotten=tuple(done),
        chunks=erased.chunks,
        vectors=erased.vectors,
        problems=(*problems, *erased.problems),
        notes=() if done else (NOTHING,),
    )


def _erase_for_others(memory: Memory) -> list[Problem]:
    """Wipe the note from what other agents of this workspace have indexed of it; their conversations are their own."""
    problems: list[Problem] = []
    folder = memory.state.path.parent
    if folder.name != STATE_FOLDER:  # elsewhere nothing says which folders are agents'
        return problems
    for other in sorted(folder.iterdir()):
        if other == memory.state.path or StateFolder(other).current() is None:
            continue
        try:
            settings = load_settings(memory.workspace, agent=other.name).settings
            with type(memory)(memory.workspace, settings, agent=other.name) as theirs:
                problems += erase_traces(theirs).problems
        except NotewellError as error:
            problems.append(Problem(f"agent {other.name}", f"{error.message}; {error.hint}"))
    return problems


def _forget(memory: Memory, wish: Wish, target: Target, conversations: ConversationStore | None) -> Forgotten:
    told = target.told
    if target.session is not None:
        assert conversations is not None
        if told.whole:
            conversations.delete(target.session)
            return told
        return replace(told, count=conversations.remove_messages(target.session, wish.is_unwanted))
    extra = memory.settings.extra_paths
    if told.source == "sessions":
        _delete_transcript(memory, told.path)
    elif told.whole:
        delete_note(memory.workspace, told.path, extra_paths=extra)
    else:
        return replace(told, count=cut_lines(memory.workspace, told.path, target.lines, extra_paths=extra))
    return told


def _delete_transcript(memory: Memory, path: str) -> None:
    from notewell.sources.transcripts.source import TranscriptSource

    for source in memory.sources():
        if isinstance(source, TranscriptSource):
            try:
                with suppress(FileNotFoundError):
                    source.resolve(path).unlink()
            except OSError as error:
                raise system_error(error) from error


def _conversations(memory: Memory) -> ConversationStore | None:
    folder = memory.state.path / SESSIONS_FOLDER
    if not folder.is_dir():
        return None
    from notewell.sessions import ConversationStore

    return ConversationStore(folder)
