"""What a memory is made of: a workspace and settings in, sources, index, cache, embedders and the way to write out."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.embedding.prices import estimate, price_of
from notewell.embedding.selection import Embedders
from notewell.errors import DiskFullError, StoreError
from notewell.indexing.deadline import NEVER, Deadline
from notewell.indexing.fallback import embedder_problem, with_fallback
from notewell.indexing.patience import PatientSource
from notewell.indexing.preparation import Preparation
from notewell.indexing.update import IndexUpdate
from notewell.memory.following import open_transcripts
from notewell.settings import state_folder
from notewell.sources.notes import NotesSource
from notewell.store.live_index import LiveIndex
from notewell.store.sqlite import open_index
from notewell.store.sqlite.cache import SqliteEmbeddingCache
from notewell.store.state_folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from notewell.indexing.unasked import SpendingLimit
    from notewell.protocols import Embedder, Source, Store
    from notewell.settings import Settings
    from notewell.types import CostEstimate, EmbedderIdentity, IndexReport, Price, SourceName, StoredDocument


class Parts:
    """The parts of one memory, each opened when it is first needed. Safe to use from several threads."""

    def __init__(self, workspace: Path, settings: Settings, agent: str, embedder: Embedder | None) -> None:
        self.workspace = workspace
        self.settings = settings
        self.notes = NotesSource(workspace, settings.extra_paths, redacted=settings.redaction.notes)
        self.state = StateFolder(state_folder(settings, workspace, agent))
        self.transcripts = open_transcripts(settings, self.state.path)
        self.live = LiveIndex(self.state, self._open_store)
        self.embedders = Embedders(settings, embedder, self.built_with)
        self._lock = threading.Lock()
        self._cache: SqliteEmbeddingCache | None = None

    def close(self) -> None:
        """Release everything that is open; the next use opens it again."""
        with self._lock:
            self.live.close()
            if self._cache:
                self._cache.close()
            self.embedders.close()
            self._cache = None

    # --- what is there ---------------------------------------------------------------------------

    def sources(self) -> list[Source]:
        """Return where the documents come from."""
        notes: list[Source] = [self.notes] if "memory" in self.settings.sources else []
        return [*notes, self.transcripts] if self.transcripts else notes

    @contextmanager
    def store(self) -> Iterator[Store | None]:
        """Yield the store that answers now; None when nothing has been indexed."""
        with self.live.use() as store:
            yield store

    @property
    def cache(self) -> SqliteEmbeddingCache | None:
        """The embedding cache, if it is turned on."""
        with self._lock:
            if self._cache is None and self.settings.cache.enabled and self.state.path.exists():
                self._cache = SqliteEmbeddingCache(self.state.cache_path, max_entries=self.settings.cache.max_entries)
            return self._cache

    def stored(self, source: SourceName) -> Mapping[tuple[SourceName, str], StoredDocument]:
        """Return what the index remembers of the documents of a source."""
        with self.live.use() as store:
            if store is None:
                return {}
            with store.reading() as snapshot:
                return snapshot.documents(source)

    def paths_of(self, source: SourceName) -> list[str]:
        """Return the paths of a source, those that are gone from it but not from the index included."""
        if source == "sessions" and self.transcripts is None:
            from notewell.search.options import sessions_off

            raise sessions_off()
        listed = [stamp.path for each in self.sources() if each.name == source for stamp in each.list().files]
        return [*listed, *(path for _, path in self.stored(source) if path not in set(listed))]

    def stored_paths(self, files: Collection[str]) -> list[str]:
        """Return the paths under which files on disk are stored; those that are no part of the memory are left out."""
        places = [self.notes.stored_path(Path(file)) for file in files]
        if self.transcripts:
            places += [self.transcripts.stored_path(Path(file)) for file in files]
        return sorted(filter(None, places))

    def built_with(self) -> EmbedderIdentity | None:
        """Return whose vectors the index holds, as far as it can be read."""
        try:
            with self.live.use() as store:
                if store is None:
                    return None
                with store.reading() as snapshot:
                    return snapshot.embedder() if snapshot.counts().embedded else None
        except StoreError:
            return None

    def embedder_in_use(self) -> Embedder | None:
        """Return the embedder that gives searches their vectors now."""
        return self.embedders.answering(self.built_with())[0]

    # --- what embedding costs --------------------------------------------------------------------

    @property
    def price(self) -> Price | None:
        """What the embedder in use charges; None without one."""
        embedder = self.embedders.selection.embedder
        return price_of(embedder, self.settings) if embedder else None

    def estimate(self) -> Callable[[int], CostEstimate] | None:
        """Return what says how much so many tokens would cost; None without an embedder."""
        embedder = self.embedders.selection.embedder
        return partial(estimate, embedder, self.settings) if embedder else None

    def spending_limit(self, embedder: Embedder | None) -> SpendingLimit | None:
        """Return what this embedder may cost without asking; None where it costs nothing, as far as is known."""
        usd_per_million = price_of(embedder, self.settings).usd_per_million if embedder else None
        if not usd_per_million:
            return None
        from notewell.indexing.unasked import SpendingLimit  # most people pay nothing

        return SpendingLimit(self.settings.cost.confirm_above_usd, usd_per_million)

    # --- writing ---------------------------------------------------------------------------------

    def update(self, embedder: Embedder | None, *, patient: bool = False) -> IndexUpdate:
        """Return the way to write the index; a patient one leaves conversations alone that have grown only a little."""
        chunking = self.settings.chunking
        sources = self.sources()
        if patient and self.transcripts:
            waiting = PatientSource(self.transcripts, self.settings.sync.sessions, lambda: self.stored("sessions"))
            sources = [waiting if source is self.transcripts else source for source in sources]
        if self.state.writable():
            self.state.ensure()
        return IndexUpdate(
            self.state,
            self.live,
            self._create_store,
            sources,
            Preparation(chunking.style, chunking.tokens, chunking.overlap, self.settings.redaction.notes),
            embedder,
            self.cache,
        )

    def unasked(self, embedder: Embedder | None, *, patient: bool = False) -> IndexUpdate:
        """Return the way to write the index that spends no more than the settings allow without asking."""
        update = self.update(embedder, patient=patient)
        limit = self.spending_limit(embedder)
        if limit is None:
            return update
        from notewell.indexing.unasked import within_limit

        return within_limit(update, limit)

    def catch_up(self, *, paths: Collection[str] | None = None, deadline: Deadline = NEVER) -> IndexReport:
        """Bring the index up to date without asking anybody: what would cost more than the settings allow waits."""

        def run(update: IndexUpdate, _: bool) -> IndexReport:
            limit = self.spending_limit(update.embedder)
            if limit is None:
                return update.run(paths=paths, deadline=deadline, tidy=True)
            from notewell.indexing.unasked import run_without_asking

            return run_without_asking(update, limit, paths=paths, deadline=deadline)

        return self.indexed(run)

    def indexed(self, run: Callable[[IndexUpdate, bool], IndexReport]) -> IndexReport:
        """Run an update; if its embedder fails, again with the fallback, where there is one."""
        report = run(self.update(self.embedders.for_indexing()), False)
        problem = embedder_problem(report)
        instead = self.embedders.fall_back(problem.reason) if problem else None
        if instead is not None:
            report = with_fallback(report, run(self.update(instead), True))
        with self.live.use() as store:
            if store is not None:
                self.embedders.remember_fallback(store)
        return report

    def _open_store(self, path: Path) -> Store:
        try:
            return self._open_index(path, create=False, read_only=not self.state.writable())
        except DiskFullError:  # even opening for writing needs some room; searching does not
            return self._open_index(path, create=False, read_only=True)

    def _create_store(self, path: Path) -> Store:
        return self._open_index(path, create=True, read_only=False)

    def _open_index(self, path: Path, *, create: bool, read_only: bool) -> Store:
        vector = self.settings.store.vector
        return open_index(
            path,
            create=create,
            read_only=read_only,
            vector_driver=vector.driver,
            extension_path=vector.extension_path,
        )
