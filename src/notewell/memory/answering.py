"""Answers searches with QMD or the builtin index, and notes what the reader should know about the answer."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from notewell.errors import (
    BackendError,
    EmbedderUnavailableError,
    IndexCorruptError,
    NotewellError,
    StoreUnavailableError,
)
from notewell.indexing.spending import SpendingLimit
from notewell.protocols import MeasuredLanguages
from notewell.search.options import NO_KEYWORDS
from notewell.search.query_embedding import KEYWORDS_ONLY, QueryEmbedding
from notewell.search.replaced import Replacements
from notewell.search.searcher import Found, find
from notewell.search.tuning import TUNING
from notewell.store.sqlite.connection import lock_wait_limit
from notewell.text.entries import find_entries
from notewell.types import Fallback, IndexReport, IndexState, SearchAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from notewell.embedding.selection import Embedders, Selection
    from notewell.indexing.sync import Sync
    from notewell.memory.followed import Notes, Transcripts
    from notewell.memory.group_view import GroupQmd, GroupSync
    from notewell.protocols import Embedder, ReadAccess, Snapshot, Vector
    from notewell.search.options import SearchRequest
    from notewell.search.qmd import Qmd
    from notewell.search.tuning import Tuning
    from notewell.settings import Settings
    from notewell.text.entries import Entry
    from notewell.types import Counts, Hit, SearchMode, SourceName

NO_NOTES = "no notes yet: write MEMORY.md or memory/<topic>.md in {workspace}"
ANSWER_AGAIN_S = 10.0  # a database that restarts or fails over is back after one to four seconds
PAUSE_S = 0.1
LOCK_SHARE = 0.75  # of the budget of a search may pass before a database that others lock is given up for writing
LONGEST_ECHO = 400  # characters of a query that an answer repeats
NOT_INDEXED = "nothing is indexed yet: run `notewell index`"


class Answering:
    """Answers from the index as it is now; keeps the vectors of the latest queries."""

    def __init__(
        self,
        *,
        workspace: Path,
        settings: Settings,
        index: ReadAccess,
        notes: Notes,
        transcripts: Transcripts | None,
        embedders: Embedders,
        sync: Sync | GroupSync,
        unsearched: Callable[[], Iterable[str]],
        kept: Callable[[], Iterable[str]],
        qmd: Qmd | GroupQmd | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self._workspace = workspace
        self._settings = settings
        self._index = index
        self._notes = notes
        self._transcripts = transcripts
        self._embedders = embedders
        self._sync = sync
        self._unsearched = unsearched  # what the settings leave out, for answers without hits
        self._kept = kept  # conversations of this agent that they leave out, for every answer
        self._qmd = qmd
        self._tuning = tuning or TUNING  # others are for evaluations
        self._lock = threading.Lock()
        self._queries: QueryEmbedding | None = None

    def search(self, request: SearchRequest, *, sync: bool | None = None) -> SearchAnswer:
        """Answer a request; `sync` says whether what is new is indexed first, None leaves it to the settings.

        QMD answers while it can, where the settings choose it; the builtin index answers the calls that QMD cannot.
        """
        sources = request.scope.sources
        outside = (sources is not None and "memory" not in sources) or request.scope.category is not None
        if self._qmd is None or not request.query.strip() or outside:  # QMD knows no conversations and no categories
            return self._search_index(request, sync=sync)
        try:
            answer = self._qmd.search(request)
        except BackendError as error:
            answer = self._search_index(request, sync=sync)
            note = f"QMD did not answer: {error.message}; the builtin index did"
            return replace(answer, notes=(note, *answer.notes), fallback=Fallback("qmd", error.message))
        if self._transcripts is None or (sources is not None and "sessions" not in sources):
            return answer
        return self._with_conversations(answer, request, sync=sync)

    def _with_conversations(self, answer: SearchAnswer, request: SearchRequest, *, sync: bool | None) -> SearchAnswer:
        """Add what was said in conversations, which QMD does not index, by rank: the scores do not compare."""
        scope = replace(request.scope, sources=frozenset({"sessions"}))
        also = self._search_index(replace(request, scope=scope), sync=sync)
        ranked = chain.from_iterable(zip_longest(answer.hits, also.hits))
        hits = tuple(hit for hit in ranked if hit is not None)[: request.limit]
        note = "conversations were searched by the builtin index"
        return replace(answer, hits=hits, notes=(*answer.notes, note, *also.notes))

    def _search_index(self, request: SearchRequest, *, sync: bool | None) -> SearchAnswer:
        """Sync the builtin index, within its budget, and search it; one that turns out to be corrupt is replaced."""
        settings = self._settings.sync
        budget_s, embed = settings.search_budget_ms / 1000, request.mode != "keyword"
        wanted = settings.on_search if sync is None else sync
        with lock_wait_limit(budget_s * LOCK_SHARE):
            synced = self._synced(budget_s, embed=embed) if wanted else None
        with lock_wait_limit(budget_s * (1 - LOCK_SHARE)):
            try:
                answer = self._answered(request, synced)
            except IndexCorruptError as error:
                answer = self._answer(request, self._sync.replace_corrupt(error, budget_s, embed=embed))
        problem = self._sync.follower.problem
        return replace(answer, notes=(*answer.notes, problem)) if problem else answer

    def _synced(self, budget_s: float, *, embed: bool) -> IndexReport:
        """Sync what is new; where a replica can answer, a database that cannot be written is no error."""
        try:
            return self._sync.before_search(budget_s, embed=embed)
        except StoreUnavailableError as error:
            if not self._settings.store.read_url:
                raise
            return IndexReport(complete=False, notes=(f"new notes are not indexed: {error.message}",))

    def _answered(self, request: SearchRequest, synced: IndexReport | None) -> SearchAnswer:
        """Answer, and try again where the database was lost on the way: a snapshot cannot go on elsewhere."""
        until = time.monotonic() + ANSWER_AGAIN_S
        while True:
            try:
                return self._answer(request, synced)
            except StoreUnavailableError as error:
                if error.unreached or time.monotonic() >= until:
                    raise
                time.sleep(PAUSE_S)

    def _answer(self, request: SearchRequest, synced: IndexReport | None) -> SearchAnswer:
        """Return the hits and the notes; `synced` is the report of the sync before this search, if there was one."""
        notes = self._mode_notes(request.mode)
        if synced:
            notes += synced.notes
            notes += (f"{problem.path}: {problem.reason}" for problem in synced.problems)
        with self._index.use() as store:
            if store is None:
                return SearchAnswer(
                    _echo(request.query), "keyword", (), IndexState(0, 0, 0, stale=True), (*notes, NOT_INDEXED)
                )
            with store.reading() as snapshot:
                counts = snapshot.counts()
                embedder, told = self._answering_embedder(request, snapshot)
                embedding = self._query_embedding(embedder)
                vector, reason = embedding.vector_of(request.query, snapshot) if embedding else (None, "")
                if vector is None and not self._settings.store.fts.enabled and request.query.strip():
                    raise _no_way_to_answer(self._embedders.selection, reason)
                cosine_range = _cosine_range(embedder, vector)
                found = find(
                    snapshot,
                    request,
                    vector,
                    cosine_range=cosine_range,
                    language_weights=_language_weights(embedder),
                    exists=self._exists,
                    tuning=self._tuning,
                )
                hits = self._newest_first(found.hits, request, snapshot)
                held_back = self._held_back(snapshot, embedder) if counts.pending else ""
            notes += store.notes  # of the snapshot that answered
        notes += [told if vector is not None else "", reason if counts.chunks else ""]
        notes += self._notes_on(request, counts, found, held_back or _pending_note(request, counts, vector))
        stale = True if found.missing_files else None if synced is None else not synced.complete or synced.postponed > 0
        return SearchAnswer(
            query=_echo(request.query),
            mode="keyword" if vector is None else request.mode,
            hits=hits,
            index=IndexState(counts.files, counts.chunks, counts.pending, stale=stale),
            notes=tuple(dict.fromkeys(note for note in notes if note)),
            fallback=self._provider_fallback() if embedder else None,
            provider=embedder.identity.provider if embedder and vector is not None else None,
            model=embedder.identity.model if embedder and vector is not None else None,
        )

    def _newest_first(self, hits: Sequence[Hit], request: SearchRequest, snapshot: Snapshot) -> tuple[Hit, ...]:
        """Return the hits with entries that replaced others before them."""
        scope = request.scope
        narrowed = scope.since or scope.until or scope.category
        return Replacements(snapshot, self._entries_of).ordered(hits, limit=request.limit, may_add=not narrowed)

    def _entries_of(self, path: str) -> Sequence[Entry]:
        try:
            document = self._notes.read(self._notes.stamp_of(path))
        except (OSError, NotewellError):  # gone since the search, or no note
            return ()
        return find_entries(document.text, body_first_line=document.body_first_line).entries

    def embedder_notes(self) -> list[str]:
        """Return why searches cannot use vectors, if something keeps them from it."""
        vectors_wanted = self._settings.store.vector.enabled
        warning = self._embedders.selection.warning if vectors_wanted else ""
        return [warning] if warning else []

    def _provider_fallback(self) -> Fallback | None:
        selection = self._embedders.selection
        return Fallback(self._settings.provider, selection.reason) if selection.fell_back else None

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
        if not counts.chunks:
            listed = sum(len(source.list().files) for source in self._sync.sources)
            yield NOT_INDEXED if listed > counts.files else NO_NOTES.format(workspace=self._workspace)
        if waiting:
            yield waiting
        if found.missing_files:
            yield f"the index is stale: {len(found.missing_files)} notes are gone; run `notewell index`"
        if not request.scope.public_only:
            yield from self._kept() if found.hits else self._unsearched()

    def _answering_embedder(self, request: SearchRequest, snapshot: Snapshot) -> tuple[Embedder | None, str]:
        return (None, "") if request.mode == "keyword" else self._embedders.answering(snapshot.embedder())

    def _query_embedding(self, embedder: Embedder | None) -> QueryEmbedding | None:
        if embedder is None:
            return None
        with self._lock:
            if self._queries is None or self._queries.embedder is not embedder:
                self._queries = QueryEmbedding(embedder, more_languages=self._more_languages)
            return self._queries

    def _more_languages(self) -> str:
        return self._embedders.selection.more_languages

    def _exists(self, source: SourceName, path: str) -> bool:
        if source == "sessions":
            return self._transcripts is None or self._transcripts.exists(path)
        return self._notes.exists(path)


def _echo(query: str) -> str:
    return query if len(query) <= LONGEST_ECHO else f"{query[: LONGEST_ECHO - 3]}..."


def _no_way_to_answer(selection: Selection, reason: str) -> EmbedderUnavailableError:
    """Return the error for a search without vectors where the words are not indexed."""
    why = reason.removeprefix(f"{KEYWORDS_ONLY}: ") or selection.reason
    hint = selection.hint if not reason and selection.hint else "run `notewell index`, or set store.fts.enabled = true"
    return EmbedderUnavailableError(f"{NO_KEYWORDS}, and semantic search cannot answer: {why}", hint=hint)


def _pending_note(request: SearchRequest, counts: Counts, vector: Vector | None) -> str:
    if vector is None:
        return ""
    if request.mode == "semantic" and counts.chunks > counts.embedded:
        missing = f"{counts.chunks - counts.embedded} of {counts.chunks}"
        note = f"chunks without a vector ({missing}) are not found by semantic search"
        return f"{note}; run `notewell index`" if counts.pending else note
    if not counts.pending:
        return ""
    return f"{counts.pending:,} chunks are found by keyword only until `notewell index` has embedded them"


def _cosine_range(embedder: Embedder | None, vector: Vector | None) -> tuple[float, float]:
    return embedder.cosine_range if embedder and vector is not None else (0.0, 1.0)  # asking may load a model


def _language_weights(embedder: Embedder | None) -> Mapping[str, float]:
    return embedder.language_weights if isinstance(embedder, MeasuredLanguages) else {}
