"""Memory: builds the parts from the settings and joins the write path, the read path and the health checks."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Self

from recollect.embedding.selection import Selection, select_embedder
from recollect.errors import DiskFullError, EmbedderUnavailableError, IndexCorruptError, MemoryDisabledError
from recollect.indexing.preparation import Preparation
from recollect.indexing.preview import preview_changes
from recollect.indexing.update import IndexUpdate
from recollect.reading import read_note
from recollect.requests import build_request
from recollect.search.query_embedding import QueryEmbedding
from recollect.search.searcher import Found, SearchRequest, find
from recollect.settings import Settings, checked_agent, load_settings, state_folder
from recollect.sources.notes import NotesSource
from recollect.store.live_index import LiveIndex
from recollect.store.sqlite import open_index
from recollect.store.sqlite.cache import SqliteEmbeddingCache
from recollect.store.state_folder import StateFolder
from recollect.types import (
    Check,
    Counts,
    IndexPreview,
    IndexReport,
    IndexState,
    NoteText,
    ProgressCallback,
    SearchAnswer,
    Status,
)
from recollect.workspace import checked_workspace, expanded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from recollect.protocols import Embedder, Reranker, Store, Vector
    from recollect.search.fusion import Fusion
    from recollect.types import SourceName

NO_NOTES = "no notes yet: write MEMORY.md or memory/<topic>.md in {workspace}"


class Memory:
    """One agent's memory of one workspace. Safe to use from several threads; close it, or use it in a `with` block."""

    def __init__(
        self, workspace: Path, settings: Settings, *, agent: str = "main", embedder: Embedder | None = None
    ) -> None:
        self.workspace = workspace
        self.settings = settings
        self.agent = checked_agent(agent)
        self._notes = NotesSource(workspace, settings.extra_paths)
        self.state = StateFolder(state_folder(settings, workspace, self.agent))
        self._live = LiveIndex(self.state, self._open_store)
        self._lock = threading.Lock()
        self._given = Selection(embedder, "given by the caller") if embedder else None
        self._selection: Selection | None = None
        self._cache: SqliteEmbeddingCache | None = None
        self._queries: QueryEmbedding | None = None

    @classmethod
    def open(
        cls,
        workspace: str | Path,
        *,
        agent: str = "main",
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        **overrides: object,
    ) -> Self:
        """Open the memory of a workspace.

        Without `settings` they are read from the usual layers; `overrides` come last: `provider="none"`, or
        `query__max_results=10` for a nested key. An `embedder` of your own takes the place of the configured one.
        """
        folder = checked_workspace(expanded(Path(workspace)))
        if settings is None:
            flags = {key.replace("__", "."): value for key, value in overrides.items()}
            settings = load_settings(folder, agent=agent, flags=flags).settings
        return cls(folder, settings, agent=agent, embedder=embedder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the index, the cache and the embedder; the next call opens them again."""
        with self._lock:
            self._live.close()
            if self._cache:
                self._cache.close()
            if self._selection and self._selection.embedder:
                self._selection.embedder.close()
            self._cache = self._selection = self._queries = None

    # --- writing ---------------------------------------------------------------------------------

    def index(
        self,
        *,
        paths: Collection[str] | None = None,
        force: bool = False,
        progress: ProgressCallback | None = None,
    ) -> IndexReport:
        """Bring the index up to date with the notes; `force` builds it anew beside the old one.

        Who knows what changed can name those `paths`, as `search` gives them: the other notes are not looked at.
        """
        self._check_enabled()
        report = self._update(self.selection.embedder).run(paths=paths, force=force, progress=progress)
        if paths is None and not (report.added or report.changed or report.renamed or report.unchanged):
            report = replace(report, notes=(*report.notes, NO_NOTES.format(workspace=self.workspace)))
        return replace(report, notes=(*report.notes, *self._embedder_notes()))

    def preview(self) -> IndexPreview:
        """Say what `index` would do, without writing anything."""
        update = self._update(self.selection.embedder)
        with self._live.use() as store:
            reason = update.rebuild_reason(store) if store else ""
            return preview_changes(
                store, self.sources(), update.preparation, update.embedder, update.cache, rebuild_reason=reason
            )

    # --- reading ---------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        min_score: float | None = None,
        fusion: Fusion | None = None,
        keyword_only: bool = False,
        since: str | date | None = None,
        until: str | date | None = None,
        on: str | date | None = None,
        rerank: bool | Reranker | None = None,
        explain: bool = False,
        sync: bool | None = None,
    ) -> SearchAnswer:
        """Return the best hits for `query`, how they were found and how fresh the index is.

        `since`, `until` and `on` (a date, "2026-03", "last week") let only notes of those days through. `rerank` asks
        the configured reranker, or the one given, for a second look at the best.

        What is new is indexed first, for `sync.search_budget_ms` at most; `sync=False` answers from the index as it is.
        """
        self._check_enabled()
        request = build_request(
            self.settings,
            query,
            limit=limit,
            min_score=min_score,
            fusion=fusion,
            since=since,
            until=until,
            on=on,
            rerank=rerank,
            explain=explain,
        )
        embedder = None if keyword_only else self.selection.embedder
        wanted = self.settings.sync.on_search if sync is None else sync
        synced = self._sync(embedder) if wanted else None
        try:
            return self._answer(request, synced, keyword_only=keyword_only)
        except IndexCorruptError as error:
            synced = self._update(embedder).heal(error, self.settings.sync.search_budget_ms / 1000)
            return self._answer(request, synced, keyword_only=keyword_only)

    def get(self, path: str, *, first_line: int = 1, lines: int | None = None) -> NoteText:
        """Return lines of one memory file, as it is on disk now; paths outside the memory are refused."""
        self._check_enabled()
        return read_note(self._notes, path, first_line=first_line, lines=lines)

    def status(self, *, deep: bool = False) -> Status:
        """Say where the memory is, what it holds and how it would answer; `deep` also checks that it all works."""
        from recollect.health import memory_status

        return memory_status(self, deep=deep)

    def doctor(self) -> tuple[Check, ...]:
        """Try every part and return what was found, with the next step where something is wrong."""
        from recollect.health import run_checks

        return tuple(run_checks(self))

    # --- parts -----------------------------------------------------------------------------------

    @contextmanager
    def store(self) -> Iterator[Store | None]:
        """Yield the store that answers now; None when nothing has been indexed."""
        with self._live.use() as store:
            yield store

    @property
    def selection(self) -> Selection:
        """Which embedder is used, and why; a provider that cannot run here leaves keyword search, with the reason."""
        with self._lock:
            if self._selection is None:
                self._selection = self._select()
            return self._selection

    @property
    def cache(self) -> SqliteEmbeddingCache | None:
        """The embedding cache, if it is turned on."""
        with self._lock:
            if self._cache is None and self.settings.cache.enabled and self.state.path.exists():
                self._cache = SqliteEmbeddingCache(self.state.cache_path, max_entries=self.settings.cache.max_entries)
            return self._cache

    def _select(self) -> Selection:
        if self._given:
            return self._given
        if not self.settings.store.vector.enabled:
            return Selection(None, "vectors are turned off (store.vector.enabled)")
        try:
            return select_embedder(self.settings)
        except EmbedderUnavailableError as error:
            return Selection(None, error.message, error.hint)

    def sources(self) -> list[NotesSource]:
        """Return where the documents come from."""
        return [self._notes] if "memory" in self.settings.sources else []

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

    def _check_enabled(self) -> None:
        if not self.settings.enabled:
            raise MemoryDisabledError

    def _update(self, embedder: Embedder | None) -> IndexUpdate:
        chunking = self.settings.chunking
        if self.state.writable():
            self.state.ensure()
        return IndexUpdate(
            self.state,
            self._live,
            self._create_store,
            self.sources(),
            Preparation(chunking.style, chunking.tokens, chunking.overlap),
            embedder,
            self.cache,
        )

    def _sync(self, embedder: Embedder | None) -> IndexReport:
        return self._update(embedder).run_within(self.settings.sync.search_budget_ms / 1000)

    def _answer(self, request: SearchRequest, synced: IndexReport | None, *, keyword_only: bool) -> SearchAnswer:
        notes = [] if keyword_only else self._embedder_notes()
        if synced:
            notes += [*synced.notes, *(f"{problem.path}: {problem.reason}" for problem in synced.problems)]
        with self._live.use() as store:
            if store is None:
                notes.append("nothing is indexed yet: run `recollect index`")
                return SearchAnswer(request.query, "keyword", (), IndexState(0, 0, 0, stale=True), tuple(notes))
            with store.reading() as snapshot:
                counts = snapshot.counts()
                embedding = None if keyword_only else self._query_embedding()
                vector, reason = embedding.vector_of(request.query, snapshot) if embedding else (None, "")
                found = find(snapshot, request, vector, cosine_range=self._cosine_range(vector), exists=self._exists)
        notes += [reason, *self._answer_notes(request, counts, found, by_vector=vector is not None)]
        stale = True if found.missing_files else None if synced is None else not synced.complete
        return SearchAnswer(
            query=request.query,
            mode="keyword" if vector is None else "hybrid",
            hits=found.hits,
            index=IndexState(counts.files, counts.chunks, counts.pending, stale=stale),
            notes=tuple(dict.fromkeys(note for note in notes if note)),
        )

    def _answer_notes(self, request: SearchRequest, counts: Counts, found: Found, *, by_vector: bool) -> list[str]:
        notes: list[str] = [found.note]
        if request.explain and request.ordering.reading:
            notes.append(f"read as a time: {request.ordering.reading.meaning}")
        if not request.query.strip():
            notes.append("the query is empty: say what to look for")
        if not counts.files:
            notes.append(NO_NOTES.format(workspace=self.workspace))
        if by_vector and counts.pending:
            notes.append(f"{counts.pending} chunks are found by keyword only until `recollect index` has embedded them")
        if found.missing_files:
            notes.append(f"the index is stale: {len(found.missing_files)} notes are gone; run `recollect index`")
        return notes

    def _query_embedding(self) -> QueryEmbedding | None:
        embedder = self.selection.embedder
        with self._lock:
            if self._queries is None and embedder:
                self._queries = QueryEmbedding(embedder)
            return self._queries

    def _cosine_range(self, vector: Vector | None) -> tuple[float, float]:
        embedder = self.selection.embedder
        return embedder.cosine_range if embedder and vector is not None else (0.0, 1.0)  # asking may load a model

    def _embedder_notes(self) -> list[str]:
        selection = self.selection
        if selection.embedder or not self.settings.store.vector.enabled:
            return []
        return [f"keyword search only: {selection.reason}" + (f"; {selection.hint}" if selection.hint else "")]

    def _exists(self, source: SourceName, path: str) -> bool:
        return source != "memory" or self._notes.exists(path)
