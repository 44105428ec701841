"""Opens the parts of a memory from its workspace and settings."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.embedding.selection import Embedders
from notewell.errors import DiskFullError, StoreError
from notewell.indexing.preparation import Preparation
from notewell.indexing.sync import Sync
from notewell.memory.answering import Answering
from notewell.settings import state_folder
from notewell.sources.notes import NotesSource
from notewell.store.live_index import LiveIndex
from notewell.store.sqlite import open_index
from notewell.store.sqlite.cache import SqliteEmbeddingCache
from notewell.store.state_folder import StateFolder

if TYPE_CHECKING:
    from notewell.protocols import Embedder, Source, Store, StoreAccess
    from notewell.search.qmd import Qmd
    from notewell.search.tuning import Tuning
    from notewell.settings import Settings
    from notewell.sources.transcripts.source import TranscriptSource
    from notewell.types import EmbedderIdentity

SESSIONS_FOLDER = "sessions"  # in the agent's state folder: the session store's own


@dataclass(frozen=True, slots=True)
class Components:
    """What the services of a memory work with. Each part is opened when first needed, and safe for several threads."""

    workspace: Path
    agent: str
    settings: Settings
    folder: StateFolder
    index: StoreAccess
    notes: NotesSource
    transcripts: TranscriptSource | None  # None where the settings leave conversations out
    sources: tuple[Source, ...]
    embedders: Embedders
    caches: CacheAccess
    sync: Sync
    answering: Answering
    qmd: Qmd | None  # None where the settings choose the builtin index

    @property
    def cache(self) -> SqliteEmbeddingCache | None:
        """The embedding cache, if it is turned on."""
        return self.caches.open()

    @property
    def sessions_folder(self) -> Path:
        return self.folder.path / SESSIONS_FOLDER

    def unsearched_conversations(self) -> tuple[str, ...]:
        """Return notes on conversations that the settings leave out of search."""
        return _unsearched(self.settings, self.agent, self.sessions_folder)

    def close(self) -> None:
        """Stop the background work and release everything that is open; the next use opens it again."""
        if self.qmd:
            self.qmd.close()
        self.sync.background.stop()
        self.sync.follower.stop()
        self.index.close()
        self.caches.close()
        self.embedders.close()
        self.answering.forget_queries()


def _unsearched(settings: Settings, agent: str, sessions_folder: Path) -> tuple[str, ...]:
    from notewell.sources.transcripts.unsearched import unsearched_conversations  # only answers without hits need it

    return tuple(unsearched_conversations(settings, agent, sessions_folder))


class CacheAccess:
    """Opens the embedding cache once there is a state folder for it."""

    def __init__(self, folder: StateFolder, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings.cache
        self._lock = threading.Lock()
        self._cache: SqliteEmbeddingCache | None = None

    def open(self) -> SqliteEmbeddingCache | None:
        with self._lock:
            if self._cache is None and self._settings.enabled and self._folder.path.exists():
                self._cache = SqliteEmbeddingCache(
                    self._folder.cache_path,
                    max_entries=self._settings.max_entries,
                    max_age_days=self._settings.max_age_days,
                )
            return self._cache

    def close(self) -> None:
        with self._lock:
            if self._cache:
                self._cache.close()
            self._cache = None


def open_components(
    workspace: Path,
    settings: Settings,
    agent: str,
    *,
    embedder: Embedder | None = None,
    tuning: Tuning | None = None,
) -> Components:
    """Return the parts of one agent's memory; an `embedder` takes the place of the configured one."""
    folder = StateFolder(state_folder(settings, workspace, agent))
    index = LiveIndex(folder, lambda path: _open_store(path, folder, settings))
    notes = NotesSource(workspace, settings.extra_paths, redacted=settings.redaction.notes)
    transcripts = _open_transcripts(settings, folder.path / SESSIONS_FOLDER)
    found = (notes if "memory" in settings.sources else None, transcripts)
    sources: tuple[Source, ...] = tuple(source for source in found if source is not None)
    embedders = Embedders(settings, embedder, lambda: _identity_of_vectors(index))
    caches = CacheAccess(folder, settings)
    chunking = settings.chunking
    preparation = Preparation(
        chunking.style, chunking.tokens, chunking.overlap, settings.redaction.notes, settings.store.fts.enabled
    )
    sync = Sync(
        folder=folder,
        live=index,
        create_store=lambda path: _open_index(path, settings, create=True),
        sources=sources,
        preparation=preparation,
        embedders=embedders,
        cache=caches.open,
        settings=settings,
    )
    qmd = open_qmd(settings, workspace, folder, notes) if settings.backend == "qmd" and notes in sources else None
    answering = Answering(
        workspace=workspace,
        settings=settings,
        index=index,
        notes=notes,
        transcripts=transcripts,
        embedders=embedders,
        sync=sync,
        unsearched=lambda: _unsearched(settings, agent, folder.path / SESSIONS_FOLDER),
        qmd=qmd,
        tuning=tuning,
    )
    return Components(
        workspace=workspace,
        agent=agent,
        settings=settings,
        folder=folder,
        index=index,
        notes=notes,
        transcripts=transcripts,
        sources=sources,
        embedders=embedders,
        caches=caches,
        sync=sync,
        answering=answering,
        qmd=qmd,
    )


def open_qmd(settings: Settings, workspace: Path, folder: StateFolder, notes: NotesSource) -> Qmd:
    """Return QMD's index of an agent's notes, which may be there although the builtin one answers now."""
    from notewell.search.qmd import Qmd  # few use it

    return Qmd(settings, workspace, folder, notes)


def _open_transcripts(settings: Settings, folder: Path) -> TranscriptSource | None:
    if "sessions" not in settings.sources:
        return None
    from notewell.sources.transcripts.source import TranscriptSource

    return TranscriptSource(folder, settings.sessions.paths, redact=_redacted)


def _redacted(text: str) -> str:
    from notewell.text.redaction import redact  # its patterns are compiled when the first message is read

    return redact(text).text


def _identity_of_vectors(index: LiveIndex) -> EmbedderIdentity | None:
    """Return the identity of the vectors that the index holds, as far as it can be read."""
    try:
        with index.use() as store:
            if store is None:
                return None
            with store.reading() as snapshot:
                return snapshot.embedder() if snapshot.counts().embedded else None
    except StoreError:
        return None


def _open_store(path: Path, folder: StateFolder, settings: Settings) -> Store:
    try:
        return _open_index(path, settings, read_only=not folder.writable())
    except DiskFullError:  # even opening for writing needs some room; searching does not
        return _open_index(path, settings, read_only=True)


def _open_index(path: Path, settings: Settings, *, create: bool = False, read_only: bool = False) -> Store:
    vector = settings.store.vector
    return open_index(
        path,
        create=create,
        read_only=read_only,
        vector_driver=vector.driver,
        extension_path=vector.extension_path,
    )
