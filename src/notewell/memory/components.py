"""Opens the parts of a memory, and narrows them to what a group may see."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.embedding.selection import Embedders
from notewell.errors import StoreError
from notewell.files.atomic import DRAFT_SUFFIX
from notewell.indexing.preparation import Preparation
from notewell.indexing.sync import Sync
from notewell.memory.answering import BetweenSearches
from notewell.memory.storage import FollowedSource, Storage, open_sqlite_index, open_storage
from notewell.search.tuning import TUNING
from notewell.settings import state_folder
from notewell.settings.workspace import WorkspaceInUse
from notewell.sources.included import count_uncovered, unsearched_conversations
from notewell.sources.notes import NotesSource
from notewell.sources.privacy import DIRECT, Audience
from notewell.sources.transcripts import ARCHIVE, CHATS, COMPACTED, CORRUPT, GROUPS, PENDING, names_of
from notewell.store.state_folder import TOP_FOLDER, StateFolder
from notewell.types import Scope, Uncovered

if TYPE_CHECKING:
    from collections.abc import Callable

    from notewell.memory.group_view import GroupSync
    from notewell.memory.note_files import NoteFiles
    from notewell.memory.storage import Notes, Transcripts
    from notewell.protocols import Embedder, EmbeddingCache, Source
    from notewell.search.options import SearchRequest
    from notewell.search.qmd import Qmd
    from notewell.search.tuning import Tuning
    from notewell.sessions import ConversationStore
    from notewell.settings import Settings
    from notewell.store.live_index import Generations, ReadAccess, StoreAccess
    from notewell.types import EmbedderIdentity, SearchAnswer

TRASH_FOLDER = ".trash"  # in the state folders of the workspace and of the agent; no agent can be called so
MOVED_FILE = "moved.json"
SESSIONS_FOLDER = "sessions"  # in the agent's state folder: the session store's own


@dataclass(frozen=True, slots=True)
class Components:
    """The parts that the services of a memory work with, opened when first used and safe for several threads.

    None of them holds what the audience may not see, so services need no checks of their own.
    """

    workspace: Path
    place: WorkspaceInUse  # the folder of the workspace, as it was when the memory was opened
    agent: str
    settings: Settings
    folder: StateFolder
    storage: Storage
    index: ReadAccess
    notes: Notes
    transcripts: Transcripts | None  # None where the settings leave conversations out
    sources: tuple[Source, ...]
    embedders: Embedders
    sync: Sync | GroupSync
    qmd: Qmd | None  # None where the settings choose the builtin index
    searched: ReadAccess  # `index`, but a search looks only at what it found for notes that became private
    search_qmd: Callable[[SearchRequest], SearchAnswer] | None  # where the settings choose QMD
    between: BetweenSearches
    tuning: Tuning
    audience: Audience = DIRECT
    behind: Components | None = None  # of a group's parts: those of the whole memory, for upkeep

    @property
    def whole(self) -> Components:
        """The whole memory, whatever the audience: for deleting and closing, never for reading."""
        return self.behind or self

    @property
    def indexes(self) -> Generations:
        """Where the indexes of this agent are kept."""
        return self.storage.indexes

    @property
    def cache(self) -> EmbeddingCache | None:
        """The embedding cache, if it is turned on; none for a group, since it counts the texts of all notes."""
        return None if self.audience.is_group else self.storage.caches.open()

    @property
    def sessions_folder(self) -> Path:
        return self.folder.path / SESSIONS_FOLDER

    @property
    def moved_file(self) -> Path:
        """The file that lists notes whose lines have moved since they were shown."""
        return self.workspace / TOP_FOLDER / MOVED_FILE

    @property
    def trash_folders(self) -> tuple[Path, Path]:
        """The trash of the workspace's notes and that of the agent's conversations."""
        return self.workspace / TOP_FOLDER / TRASH_FOLDER, self.folder.path / TRASH_FOLDER

    @property
    def note_files(self) -> NoteFiles:
        """The notes of the workspace as files that can be changed."""
        from notewell.memory.note_files import NoteFiles  # costs as much as a keyword search

        return NoteFiles(self.workspace, self.settings.extra_paths, self.settings.include)

    def conversations(self) -> ConversationStore:
        """Return the session store, for a group with no conversation but its own."""
        from notewell.sessions import ConversationStore

        self.folder.check_owner()
        if not self.folder.is_inside and self.folder.writable():
            self.folder.ensure()  # so that another workspace does not use it
        own = frozenset(names_of(self.audience.session) if self.audience.session else ())
        return ConversationStore(
            self.sessions_folder, group_only=own if self.audience.is_group else None, workspace=self.workspace
        )

    @property
    def jobs_folder(self) -> Path | None:
        """Where batch jobs are recorded; None for a group, since they hold chunks of any note."""
        return None if self.audience.is_group else self.folder.path

    def seen_by(self, audience: Audience) -> Components:
        """Return the parts as an audience sees them; this is decided only here."""
        if audience == self.audience:
            return self
        if not audience.is_group:
            return replace(self, audience=audience)
        from notewell.memory.group_view import GroupIndex, GroupSync, search_qmd_for_group

        whole = self.whole
        assert isinstance(whole.sync, Sync)
        scope = Scope(public_only=True, own_transcripts=audience.own_transcripts)
        searched = index = GroupIndex(self.storage.answering, scope)
        followed = searched if self.storage.follows else None
        notes, transcripts, sources = _open_sources(self.workspace, self.settings, self.folder, audience, followed)
        if not self.storage.follows:
            index = GroupIndex(
                self.storage.answering, scope, lambda path: whole.notes.exists(path) and not notes.exists(path)
            )
        return replace(
            whole,
            index=index,
            notes=notes,
            transcripts=transcripts,
            sources=sources,
            sync=GroupSync(whole.sync, index, sources),
            qmd=None,  # its state is that of all notes
            searched=searched,
            search_qmd=partial(search_qmd_for_group, whole.qmd, notes) if whole.qmd else None,
            between=BetweenSearches(),
            audience=audience,
            behind=whole,
        )

    def unsearched_conversations(self, *, own: bool = False) -> tuple[str, ...]:
        """Return notes on conversations that the settings leave out of search; with `own` only on this agent's."""
        if self.audience.is_group:
            return ()
        return tuple(unsearched_conversations(self.settings, self.agent, self.sessions_folder, self.workspace, own=own))

    def uncovered(self, limit_s: float | None = None) -> Uncovered:
        """Count the Markdown files of the workspace that are not notes; 0 for groups, and if `include` is set."""
        if self.settings.include is not None or self.audience.is_group or "memory" not in self.settings.sources:
            return Uncovered(0)
        if not isinstance(self.notes, NotesSource):  # the files are on another machine
            return Uncovered(0)
        return count_uncovered(
            os.path.realpath(self.workspace), {root.stored for root in self.notes.roots}, limit_s=limit_s
        )

    def uncovered_note(self, limit_s: float) -> tuple[str, ...]:
        """Return a note on Markdown files that are not indexed, if there are any."""
        uncovered = self.uncovered(limit_s)
        if not uncovered.count:
            return ()
        import shlex

        are = "is" if uncovered.count == 1 and uncovered.complete else "are"
        command = f"notewell init --yes {shlex.quote(str(self.workspace))}"
        return (f"{uncovered} here {are} not indexed: run `{command}` (--no: do not ask again)",)

    def close(self) -> None:
        """Stop the background work and release everything that is open; the next use opens it again."""
        if self.qmd:
            self.qmd.close()
        self.sync.background.stop()
        self.sync.follower.stop()
        self.storage.close()
        self.embedders.close()
        self.between.forget_queries()


def sweep_conversations(folder: Path) -> None:
    """Clean up after killed processes in the session store; if there is nothing to do, only file names are read."""
    places = ("", CHATS, GROUPS, f"{ARCHIVE}/{CHATS}", f"{ARCHIVE}/{GROUPS}", COMPACTED, CORRUPT)
    if any(_has_debris(folder / place) for place in places):
        from notewell.sessions import ConversationStore

        ConversationStore(folder).sweep()


def _has_debris(folder: Path) -> bool:
    try:
        return any(name.endswith((DRAFT_SUFFIX, PENDING)) for name in os.listdir(folder))  # noqa: PTH208
    except OSError:
        return False


def open_components(
    workspace: Path, settings: Settings, agent: str, *, embedder: Embedder | None = None, tuning: Tuning | None = None
) -> Components:
    """Return the parts of one agent's memory; an `embedder` replaces the configured one."""
    folder = StateFolder(
        state_folder(settings, workspace, agent), workspace, lambda: _holds_same_notes(folder, workspace, settings)
    )
    folder.check_owner()
    storage = open_storage(settings, workspace, folder, agent)
    followed = storage.answering if storage.follows else None
    notes, transcripts, sources = _open_sources(workspace, settings, folder, DIRECT, followed)
    embedders = Embedders(settings, embedder, lambda: _identity_of_vectors(storage.answering))
    chunking = settings.chunking
    preparation = Preparation(
        chunking.style, chunking.tokens, chunking.overlap, settings.redaction.notes, settings.store.fts.enabled
    )
    sync = Sync(
        folder=folder,
        indexes=storage.indexes,
        live=storage.live,
        create_store=storage.create_store,
        sources=sources,
        preparation=preparation,
        embedders=embedders,
        cache=storage.caches.open,
        settings=settings,
    )
    qmd = None
    if settings.backend == "qmd" and isinstance(notes, NotesSource) and notes in sources:
        qmd = open_qmd(settings, workspace, folder, notes)
    return Components(
        workspace=workspace,
        place=WorkspaceInUse(workspace),
        agent=agent,
        settings=settings,
        folder=folder,
        storage=storage,
        index=storage.answering,
        notes=notes,
        transcripts=transcripts,
        sources=sources,
        embedders=embedders,
        sync=sync,
        qmd=qmd,
        searched=storage.answering,
        search_qmd=qmd.search if qmd else None,
        between=BetweenSearches(),
        tuning=tuning or TUNING,
    )


def _holds_same_notes(folder: StateFolder, workspace: Path, settings: Settings) -> bool:
    """Return whether at least half of the indexed notes are here, under the same path and of the same size."""
    path = folder.current()
    if path is None:
        return False
    try:
        with closing(open_sqlite_index(path, settings, read_only=True)) as store, store.reading() as snapshot:
            indexed = {stored: known.stamp.size for (_, stored), known in snapshot.documents("memory").items()}
    except (StoreError, FileNotFoundError):
        return False
    notes = _open_notes(workspace, settings, DIRECT)
    here = {stamp.path: stamp.size for stamp in notes.list().files}
    same = sum(here.get(stored) == size for stored, size in indexed.items())
    return bool(same) and same * 2 >= len(indexed)


def _open_notes(workspace: Path, settings: Settings, audience: Audience) -> NotesSource:
    return NotesSource(
        workspace, settings.extra_paths, include=settings.include, redacted=settings.redaction.notes, audience=audience
    )


def _open_sources(
    workspace: Path, settings: Settings, folder: StateFolder, audience: Audience, followed: ReadAccess | None
) -> tuple[Notes, Transcripts | None, tuple[Source, ...]]:
    """Return the sources of notes and conversations (a followed database in place of files), and those indexed."""
    notes: Notes = FollowedSource(followed, "memory") if followed else _open_notes(workspace, settings, audience)
    transcripts: Transcripts | None = None
    if "sessions" in settings.sources and followed:
        transcripts = FollowedSource(followed, "sessions")
    elif "sessions" in settings.sources:
        from notewell.sources.transcripts.source import TranscriptSource

        transcripts = TranscriptSource(folder.path / SESSIONS_FOLDER, settings.sessions.paths, audience=audience)
    found = (notes if "memory" in settings.sources else None, transcripts)
    return notes, transcripts, tuple(source for source in found if source is not None)


def open_qmd(settings: Settings, workspace: Path, folder: StateFolder, notes: NotesSource) -> Qmd:
    """Return QMD's index of an agent's notes, which may exist even if the builtin one answers."""
    from notewell.search.qmd import Qmd  # few use it

    return Qmd(settings, workspace, folder, notes)


def _identity_of_vectors(index: StoreAccess) -> EmbedderIdentity | None:
    """Return the identity of the vectors that the index holds, as far as it can be read."""
    try:
        with index.use() as store:
            if store is None:
                return None
            with store.reading() as snapshot:
                return snapshot.embedder() if snapshot.counts().embedded else None
    except StoreError:
        return None
