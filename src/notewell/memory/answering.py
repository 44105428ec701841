"""Answers searches from the index or with QMD, and notes what answers and index runs may miss."""

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
from notewell.store.sqlite.connection import lock_wait_limit
from notewell.text.entries import find_entries
from notewell.types import Fallback, IndexReport, IndexState, Problem, SearchAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from notewell.embedding.selection import Selection
    from notewell.indexing.plan import SyncPolicy
    from notewell.memory.components import Components
    from notewell.protocols import Embedder, Vector
    from notewell.search.options import SearchRequest
    from notewell.search.qmd import Qmd
    from notewell.text.entries import Entry
    from notewell.types import Counts, SearchMode, SourceName

NO_NOTES = "no notes yet: write MEMORY.md or memory/<topic>.md in {workspace}"
ANSWER_AGAIN_S = 10.0  # a database that restarts or fails over is back within one to four seconds
PAUSE_S = 0.1
LOCK_SHARE = 0.75  # of a search's budget is spent waiting for a locked database before it is only read
SEARCH_COUNT_S = 0.2  # time limit for counting files that are not indexed, in an answer without hits
INDEX_COUNT_S = 0.5  # in an index run
COUNTED_AGAIN_S = 60.0
LONGEST_ECHO = 400  # characters of a query that an answer repeats
NOT_INDEXED = "nothing is indexed yet: run `notewell index`"


class BetweenSearches:
    """State that searches share: the vectors of recent queries, and the count of files that are not indexed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: QueryEmbedding | None = None
        self._uncovered: tuple[float, tuple[str, ...]] | None = None  # when counted, and the note

    def queries(self, embedder: Embedder, more_languages: Callable[[], str]) -> QueryEmbedding:
        """Return what embeds queries with this embedder."""
        with self._lock:
            if self._queries is None or self._queries.embedder is not embedder:
                self._queries = QueryEmbedding(embedder, more_languages=more_languages)
            return self._queries

    def uncovered_note(self, parts: Components) -> tuple[str, ...]:
        """Return the note on files that are not indexed, counted once a minute."""
        known = self._uncovered
        if known is None or time.monotonic() - known[0] > COUNTED_AGAIN_S:
            known = self._uncovered = time.monotonic(), parts.uncovered_note(SEARCH_COUNT_S)
        return known[1]

    def forget_queries(self) -> None:
        """Drop the vectors of queries, because their embedder is closed."""
        with self._lock:
            self._queries = None


def search(parts: Components, request: SearchRequest, *, sync: bool | None = None) -> SearchAnswer:
    """Answer a request, with QMD where the settings choose it and else from the builtin index.

    What is new is indexed first, within its budget; `sync` says whether, None leaves it to the settings. An index that
    turns out to be corrupt is replaced. Where the database was lost on the way, it is asked again: a snapshot cannot go
    on elsewhere.
    """
    sources, settings = request.scope.sources, parts.settings.sync
    outside = (sources is not None and "memory" not in sources) or request.scope.category is not None
    if parts.search_qmd and request.query.strip() and not outside:  # it knows no conversations and categories
        return _ask_qmd(parts, parts.search_qmd, request, sync=sync)
    budget_s, embed = settings.search_budget_ms / 1000, request.mode != "keyword"
    wanted = settings.on_search if sync is None else sync
    with lock_wait_limit(budget_s * LOCK_SHARE):
        synced = _synced(parts, budget_s, embed=embed) if wanted else None
    answer: SearchAnswer | None = None
    until = time.monotonic() + ANSWER_AGAIN_S
    with lock_wait_limit(budget_s * (1 - LOCK_SHARE)):
        while answer is None:
            try:
                answer = _answer(parts, request, synced)
            except IndexCorruptError as error:
                answer = _answer(parts, request, parts.sync.replace_corrupt(error, budget_s, embed=embed))
            except StoreUnavailableError as error:
                if error.unreached or time.monotonic() >= until:
                    raise
                time.sleep(PAUSE_S)
    problem = parts.sync.follower.problem
    return replace(answer, notes=(*answer.notes, problem)) if problem else answer


def _ask_qmd(
    parts: Components, ask: Callable[[SearchRequest], SearchAnswer], request: SearchRequest, *, sync: bool | None
) -> SearchAnswer:
    """Answer with QMD, and from the builtin index what QMD cannot answer.

    That is a call that fails, and what was said in conversations, which QMD does not index: it is added by rank,
    because the scores do not compare.
    """
    builtin, sources = replace(parts, search_qmd=None), request.scope.sources
    try:
        answer = ask(request)
    except BackendError as error:
        answer = search(builtin, request, sync=sync)
        note = f"QMD did not answer: {error.message}; the builtin index did"
        return replace(answer, notes=(note, *answer.notes), fallback=Fallback("qmd", error.message))
    if parts.transcripts is None or (sources is not None and "sessions" not in sources):
        return answer
    scope = replace(request.scope, sources=frozenset({"sessions"}))
    also = search(builtin, replace(request, scope=scope), sync=sync)
    ranked = chain.from_iterable(zip_longest(answer.hits, also.hits))
    hits = tuple(hit for hit in ranked if hit is not None)[: request.limit]
    note = "conversations were searched by the builtin index"
    return replace(answer, hits=hits, notes=(*answer.notes, note, *also.notes))


def _synced(parts: Components, budget_s: float, *, embed: bool) -> IndexReport:
    """Index what is new. If a replica can answer, a database that cannot be written to is not an error."""
    try:
        return parts.sync.before_search(budget_s, embed=embed)
    except StoreUnavailableError as error:
        if not parts.settings.store.read_url:
            raise
        return IndexReport(complete=False, notes=(f"new notes are not indexed: {error.message}",))


def _answer(parts: Components, request: SearchRequest, synced: IndexReport | None) -> SearchAnswer:
    """Return the hits and the notes; `synced` is the report of the sync before this search, if there was one."""
    notes = _mode_notes(parts, request.mode)
    if synced:
        notes += synced.notes
        notes += (f"{problem.path}: {problem.reason}" for problem in synced.problems)
    with parts.searched.use() as store:
        if store is None:
            return SearchAnswer(
                _echo(request.query), "keyword", (), IndexState(0, 0, 0, stale=True), (*notes, NOT_INDEXED)
            )
        with store.reading() as snapshot:
            counts = snapshot.counts()
            embedder, told, vector, reason = None, "", None, ""
            if request.mode != "keyword":
                embedder, told = parts.embedders.answering(snapshot.embedder())
            if embedder is not None:
                queries = parts.between.queries(embedder, lambda: parts.embedders.selection.more_languages)
                vector, reason = queries.vector_of(request.query, snapshot)
            if vector is None and not parts.settings.store.fts.enabled and request.query.strip():
                raise _no_way_to_answer(parts.embedders.selection, reason)
            found = find(
                snapshot,
                request,
                vector,
                cosine_range=embedder.cosine_range
                if embedder and vector is not None
                else (0.0, 1.0),  # may load a model
                language_weights=embedder.language_weights if isinstance(embedder, MeasuredLanguages) else {},
                exists=lambda source, path: _exists(parts, source, path),
                tuning=parts.tuning,
            )
            # With entries that replaced others before them.
            narrowed = request.scope.since or request.scope.until or request.scope.category
            replacements = Replacements(snapshot, lambda path: _entries_of(parts, path))
            hits = replacements.ordered(found.hits, limit=request.limit, may_add=not narrowed)
            limit = SpendingLimit.of(embedder, parts.settings) if counts.pending else None
            # What is pending because embedding it would cost too much.
            held_back = limit.remembered_note(snapshot, embedder.identity) if limit and embedder else ""
        notes += store.notes  # of the snapshot that answered
    notes += [told if vector is not None else "", reason if counts.chunks else ""]
    notes += _notes_on(parts, request, counts, found, held_back or _pending_note(request, counts, vector))
    stale = True if found.missing_files else None if synced is None else not synced.complete or synced.postponed > 0
    fell_back = embedder is not None and parts.embedders.selection.fell_back
    return SearchAnswer(
        query=_echo(request.query),
        mode="keyword" if vector is None else request.mode,
        hits=hits,
        index=IndexState(counts.files, counts.chunks, counts.pending, stale=stale),
        notes=tuple(dict.fromkeys(note for note in notes if note)),
        fallback=Fallback(parts.settings.provider, parts.embedders.selection.reason) if fell_back else None,
        provider=embedder.identity.provider if embedder and vector is not None else None,
        model=embedder.identity.model if embedder and vector is not None else None,
    )


def _entries_of(parts: Components, path: str) -> Sequence[Entry]:
    try:
        document = parts.notes.read(parts.notes.stamp_of(path))
    except (OSError, NotewellError):  # gone since the search, or no note
        return ()
    return find_entries(document.text, body_first_line=document.body_first_line).entries


def _exists(parts: Components, source: SourceName, path: str) -> bool:
    if source == "sessions":
        return parts.transcripts is None or parts.transcripts.exists(path)
    return parts.notes.exists(path)


# --- notes for the reader ------------------------------------------------------------------------


def with_notes(parts: Components, report: IndexReport, policy: SyncPolicy) -> IndexReport:
    """Return the report of an index run with notes on what a search will miss, after updating QMD's index."""
    with parts.index.use() as store:
        notes = list(store.notes) if store else []
    found = report.added or report.changed or report.renamed or report.unchanged
    everything = policy.paths is None and policy.source is None
    if everything and not found and not any(source.list().files for source in parts.sources):
        notes = [NO_NOTES.format(workspace=parts.workspace), *notes]
    if policy.paths:
        missing = [path for path in policy.paths if not any(each.exists(path) for each in parts.sources)]
        notes += [f"there is no note {path}" for path in missing if len(missing) > report.removed]
    if everything:
        notes += parts.uncovered_note(INDEX_COUNT_S)
        notes += parts.unsearched_conversations()
    selection = parts.embedders.selection
    named = parts.settings.provider not in {"auto", "none"} and parts.settings.store.vector.enabled
    if named and selection.embedder is None:
        problem = Problem("embedder", f"{selection.reason}; {selection.hint}".rstrip("; "))
        report = replace(report, complete=False, problems=(*report.problems, problem))
    else:
        notes += embedder_notes(parts)
    if parts.qmd and policy.source != "sessions":
        notes += _update_qmd(parts.qmd)
    return replace(report, notes=(*report.notes, *notes))


def _update_qmd(qmd: Qmd) -> list[str]:
    """Update QMD's index; return notes on problems."""
    try:
        if not qmd.update():
            return ["another process is updating QMD's index"]
    except BackendError as error:
        return [f"QMD's index could not be updated: {error.full_message}"]
    embedding = qmd.state().embedding
    return [f"QMD could not embed the notes: {embedding.reason}"] if embedding else []


def embedder_notes(parts: Components) -> list[str]:
    """Return why searches cannot use vectors, if something keeps them from it."""
    warning = parts.embedders.selection.warning if parts.settings.store.vector.enabled else ""
    return [warning] if warning else []


def _mode_notes(parts: Components, mode: SearchMode) -> list[str]:
    """Return why a mode is not available as requested."""
    if mode == "keyword":
        return []
    selection = parts.embedders.selection
    if mode == "semantic" and selection.embedder is None:
        reasons = filter(None, (selection.reason, selection.hint, "keyword search answered instead"))
        return [f"semantic search is not available: {'; '.join(reasons)}"]
    return embedder_notes(parts)


def _notes_on(parts: Components, request: SearchRequest, counts: Counts, found: Found, waiting: str) -> Iterator[str]:
    yield from found.notes
    if request.explain and request.ordering.reading:
        yield f"read as a time: {request.ordering.reading.meaning}"
    if not request.query.strip():
        yield "the query is empty: say what to look for"
    if not counts.chunks:
        listed = sum(len(source.list().files) for source in parts.sources)
        yield NOT_INDEXED if listed > counts.files else NO_NOTES.format(workspace=parts.workspace)
    if waiting:
        yield waiting
    if found.missing_files:
        yield f"the index is stale: {len(found.missing_files)} notes are gone; run `notewell index`"
    if request.scope.public_only or parts.audience.is_group:
        return
    if found.hits:
        yield from parts.unsearched_conversations(own=True)
    else:
        yield from (*parts.between.uncovered_note(parts), *parts.unsearched_conversations())


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
