"""Erases what is derived from notes and conversations: rows of the index, cached vectors, batch jobs, older files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.embedding.batch.ledger import JobFailures, Ledger
from notewell.errors import NotewellError
from notewell.indexing.plan import SyncPolicy
from notewell.indexing.sync import BACKGROUND, LOCK_WAIT_S, Sync
from notewell.memory.components import open_components, open_qmd
from notewell.settings import STATE_FOLDER, load_settings
from notewell.store.state_folder import StateFolder
from notewell.types import Problem

if TYPE_CHECKING:
    from notewell.memory.components import Components


@dataclass(frozen=True, slots=True)
class Erased:
    """How much of what was derived is gone."""

    chunks: int = 0
    vectors: int = 0
    problems: tuple[Problem, ...] = ()


def erase_traces(parts: Components) -> Erased:
    """Bring the index up to date and erase what it, the cache, batch jobs and older files still hold.

    The cache keeps only vectors of texts that are still in the memory: an earlier wording of a note may have contained
    what is to be forgotten, and its vector has no name by which it could be found.
    """
    if parts.audience.is_group:
        erase_traces(parts.whole)
        return Erased()  # the figures are those of hidden notes as well
    folder, sync = parts.folder, parts.sync
    if folder.current() is None and not folder.path.exists():
        return Erased()
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
    return Erased(len(before - kept), vectors, problems)


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


def erase_for_other_agents(parts: Components) -> list[Problem]:
    """Erase the note from what other agents of this workspace have indexed; their conversations are their own."""
    return _for_other_agents(parts, lambda theirs: erase_traces(theirs).problems)


def take_from_index(parts: Components, paths: Collection[str]) -> tuple[str, ...]:
    """Index files that lost something, for this agent and the others, and return what to tell about it.

    What they lost is found by nobody then; its traces are erased with what the trash holds of it.
    """

    def sync(its: Components) -> tuple[Problem, ...]:
        if its.folder.current() is not None:
            its.sync.run(replace(BACKGROUND, paths=paths))
            if its.qmd:
                its.qmd.update()
        return ()

    problems: list[Problem] = []
    try:
        sync(parts)
    except NotewellError as error:
        problems.append(Problem("index", f"{error.message}; {error.hint}"))
    theirs = _for_other_agents(parts.whole, sync)
    problems += () if parts.audience.is_group else theirs
    return tuple(f"it is forgotten, but not yet out of the {each.path}: {each.reason}" for each in problems)


def _for_other_agents(parts: Components, work: Callable[[Components], Iterable[Problem]]) -> list[Problem]:
    """Do some work for every other agent that has an index of this workspace."""
    problems: list[Problem] = []
    folder = parts.folder.path.parent
    if folder.name != STATE_FOLDER or not folder.is_dir():  # elsewhere nothing says which folders are agents'
        return problems
    for other in sorted(folder.iterdir()):
        if other == parts.folder.path or StateFolder(other).current() is None:
            continue
        try:
            settings = load_settings(parts.workspace, agent=other.name).settings
            with closing(open_components(parts.workspace, settings, other.name)) as theirs:
                problems += work(theirs)
        except NotewellError as error:
            problems.append(Problem(f"index of agent {other.name}", f"{error.message}; {error.hint}"))
    return problems
