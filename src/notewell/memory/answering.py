"""Answers searches: syncs the index first, searches it, and notes what the reader should know about the answer."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from notewell.errors import IndexCorruptError
from notewell.indexing.spending import SpendingLimit
from notewell.search.query_embedding import QueryEmbedding
from notewell.search.searcher import Found, find
from notewell.search.tuning import TUNING
from notewell.types import IndexState, SearchAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from notewell.embedding.selection import Embedders
    from notewell.indexing.sync import Sync
    from notewell.memory.group_view import GroupSync
    from notewell.protocols import Embedder, ReadAccess, Snapshot, Vector
    from notewell.search.options import SearchRequest
    from notewell.search.tuning import Tuning
    from notewell.settings import Settings
    from notewell.sources.notes import NotesSource
    from notewell.sources.transcripts.source import TranscriptSource
    from notewell.types import Counts, IndexReport, SearchMode, SourceName

NO_NOTES = "no notes yet: write MEMORY.md or memory/<topic>.md in {workspace}"
NOT_INDEXED = "nothing is indexed yet: run `notewell index`"


class Answering:
    """Answers from the index as it is now; keeps the vectors of the latest queries."""

    def __init__(
        self,
        *,
        workspace: Path,
        settings: Settings,
        index: ReadAccess,
        notes: NotesSource,
        transcripts: TranscriptSource | None,
        embedders: Embedders,
        sync: Sync | GroupSync,
        tuning: Tuning | None = None,
    ) -> None:
        self._workspace = workspace
        self._settings = settings
        self._index = index
        self._notes = notes
        self._transcripts = transcripts
        self._embedders = embedders
        self._sync = sync
        self._tuning = tuning or TUNING  # others are for evaluations
        self._lock = threading.Lock()
        self._queries: QueryEmbedding | None = None

    def search(self, request: SearchRequest, *, sync: bool | None = None) -> SearchAnswer:
        """Answer a request; `sync` says whether what is new is indexed first, None leaves it to the settings.

        An index that turns out to be corrupt is replaced by a new one.
        """
        settings = self._settings.sync
        budget_s, embed = settings.search_budget_ms / 1000, request.mode != "keyword"
        wanted = settings.on_search if sync is None else sync
        synced = self._sync.before_search(budget_s, embed=embed) if wanted else None
        try:
            answer = self._answer(request, synced)
        except IndexCorruptError as error:
            answer = self._answer(request, self._sync.replace_corrupt(error, budget_s, embed=embed))
        problem = self._sync.follower.problem
        return replace(answer, notes=(*answer.notes, problem)) if problem else answer

    def _answer(self, request: SearchRequest, synced: IndexReport | None) -> SearchAnswer:
        """Return the hits and the notes; `synced` is the report of the sync before this search, if there was one."""
        notes = self._mode_notes(request.mode)
        if synced:
            notes += synced.notes
            notes += (f"{problem.path}: {problem.reason}" for problem in synced.problems)
        with self._index.use() as store:
            if store is None:
                return SearchAnswer(
                    request.query, "keyword", (), IndexState(0, 0, 0, stale=True), (*notes, NOT_INDEXED)
                )
            with store.reading() as snapshot:
                counts = snapshot.counts()
                embedder, told = self._answering_embedder(request, snapshot)
                embedding = self._query_embedding(embedder)
                vector, reason = embedding.vector_of(request.query, snapshot) if embedding else (None, "")
                cosine_range = _cosine_range(embedder, vector)
                found = find(
                    snapshot,
                    request,
                    vector,
                    cosine_range=cosine_range,
                    exists=self._exists,
                    tuning=self._tuning,
                )
                held_back = self._held_back(snapshot, embedder) if counts.pending else ""
        notes += [told if vector is not None else "", reason]
        notes += self._notes_on(request, counts, found, held_back or _pending_note(request, counts, vector))
        stale = True if found.missing_files else None if synced is None else not synced.complete or synced.postponed > 0
        return SearchAnswer(
            query=request.query,
            mode="keyword" if vector is None else request.mode,
            hits=found.hits,
            index=IndexState(counts.files, counts.chunks, counts.pending, stale=stale),
            notes=tuple(dict.fromkeys(note for note in notes if note)),
        )

    def embedder_notes(self) -> list[str]:
        """Return why searches cannot use vectors, if something keeps them from it."""
        vectors_wanted = self._settings.store.vector.enabled
        warning = self._embedders.selection.warning if vectors_wanted else ""
        return [warning] if warning else []

    def _mode_notes(self, mode: SearchMode) -> list[str]:
        """Return why a mode is not available as requested."""
        if mode == "keyword":
            return []
        selection = self._embedders.selection
        if mode == "semantic" and selection.embedder is None:
            reasons = filter(None, (selection.reason, selection.hint, "keyword search answered instead"))
            return [f"semantic search is not available: {'; '.join(reasons)}"]
        return self.embedder_notes()

    def forget_queries(self) -> None:
        """Drop the vectors of queries, because their embedder is closed."""
        with self._lock:
            self._queries = None

    def _held_back(self, snapshot: Snapshot, embedder: Embedder | None) -> str:
        """Describe what is pending because embedding it would exceed the spending limit."""
        limit = SpendingLimit.of(embedder, self._settings)
        return limit.remembered_note(snapshot, embedder.identity) if limit and embedder else ""

    def _notes_on(self, request: SearchRequest, counts: Counts, found: Found, waiting: str) -> Iterator[str]:
        yield from found.notes
        if request.explain and request.ordering.reading:
            yield f"read as a time: {request.ordering.reading.meaning}"
        if not request.query.strip():
            yield "the query is empty: say what to look for"
        if not counts.files:
            yield NO_NOTES.format(workspace=self._workspace)
        if waiting:
            yield waiting
        if found.missing_files:
            yield f"the index is stale: {len(found.missing_files)} notes are gone; run `notewell index`"

    def _answering_embedder(self, request: SearchRequest, snapshot: Snapshot) -> tuple[Embedder | None, str]:
        return (None, "") if request.mode == "keyword" else self._embedders.answering(snapshot.embedder())

    def _query_embedding(self, embedder: Embedder | None) -> QueryEmbedding | None:
        if embedder is None:
            return None
        with self._lock:
            if self._queries is None or self._queries.embedder is not embedder:
                self._queries = QueryEmbedding(embedder)
            return self._queries

    def _exists(self, source: SourceName, path: str) -> bool:
        if source == "sessions":
            return self._transcripts is None or self._transcripts.exists(path)
        return self._notes.exists(path)


def _pending_note(request: SearchRequest, counts: Counts, vector: Vector | None) -> str:
    if vector is None:
        return ""
    if request.mode == "semantic" and counts.chunks > counts.embedded:
        missing = f"{counts.chunks - counts.embedded} of {counts.chunks}"
        note = f"chunks without a vector ({missing}) are not found by semantic search"
        return f"{note}; run `notewell index`" if counts.pending else note
    if not counts.pending:
        return ""
    return f"{counts.pending} chunks are found by keyword only until `notewell index` has embedded them"


def _cosine_range(embedder: Embedder | None, vector: Vector | None) -> tuple[float, float]:
    return embedder.cosine_range if embedder and vector is not None else (0.0, 1.0)  # asking may load a model
