"""Implements `status`, `doctor` with its repairs, and `verify`."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from notewell.embedding.jobs import JobFailures, Ledger
from notewell.embedding.selection import FELL_BACK
from notewell.errors import BackendError, IndexCorruptError, NotewellError, StoreError
from notewell.indexing.batch_jobs import FAILURE_LIMIT, check_jobs, jobs_in_progress
from notewell.indexing.plan import SyncPolicy
from notewell.indexing.sync import is_stale
from notewell.reports import BatchState, CacheState, FtsState, Status, VectorState, Verification
from notewell.search.options import NO_KEYWORDS
from notewell.store.sqlite.connection import has_fts5
from notewell.types import EVERYTHING, Check, Counts, Fallback

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notewell.memory.components import Components
    from notewell.protocols import ReadableStore, Snapshot
    from notewell.types import CacheStats, EmbedderIdentity, Problem, SearchMode, SourceCounts

DOCTOR_COUNT_S = 10.0  # time limit for counting files that are not indexed
LOW_DISK_BYTES = 200 * 1024 * 1024  # fits an index of 10,000 chunks, its rebuild and a cache

AS_FAR_AS = ", as far as sizes, times and inodes tell; `notewell index --check` reads every note"
UNUSABLE = StoreError.exit_code


def memory_status(parts: Components, *, deep: bool) -> Status:
    """Return the status; `deep` adds the checks."""
    selection = parts.embedders.selection
    counts, built_with, size, stale = Counts(0, 0, 0, 0), None, 0, True
    source_counts: Sequence[SourceCounts] = ()
    store_notes: Sequence[str] = ()
    with parts.index.use() as store:
        if store is not None:
            with store.reading() as snapshot:
                counts, built_with = snapshot.counts(), snapshot.embedder()
                source_counts = snapshot.source_counts()
            size, stale = store.size_bytes(), is_stale(store, parts.sources)
            store_notes = store.notes
    cache_stats, cache_trouble = _cache_stats(parts)
    embedder, _ = parts.embedders.answering(built_with)
    answers_by_vector = counts.embedded > 0 and embedder is not None and built_with == embedder.identity
    mode: SearchMode = parts.settings.query.default_mode if answers_by_vector else "keyword"
    if not parts.settings.store.fts.enabled:
        mode = "semantic"
    fallback = Fallback(parts.settings.provider, selection.reason) if selection.fell_back else None
    if parts.qmd:
        fallback = parts.qmd.fallback()
        mode = mode if fallback else parts.qmd.mode
    in_use = selection.embedder.identity if selection.embedder else None
    in_file = parts.indexes is parts.folder
    current = parts.indexes.current()
    db_path = None if current is None else str(current) if in_file else parts.indexes.shown
    return Status(
        workspace=str(parts.workspace),
        agent=parts.agent,
        state_folder=str(parts.folder.path),
        files=counts.files,
        chunks=counts.chunks,
        pending=counts.pending,
        mode=mode,
        embedder=str(in_use) if in_use else None,
        embedder_reason=selection.reason,
        index_embedder=str(built_with) if built_with else None,
        sources=parts.settings.sources,
        index_bytes=size,
        cache=CacheState(
            parts.settings.cache.enabled,
            cache_stats.entries if cache_stats else 0,
            parts.settings.cache.max_entries,
            cache_stats.bytes if cache_stats else 0,
        ),
        vector=_vector_state(
            parts, built_with, opened=db_path is not None, load_error="; ".join(store_notes) if in_file else ""
        ),
        fts=FtsState(enabled=parts.settings.store.fts.enabled, available=has_fts5() or not in_file),
        batch=_batch_state(parts),
        read_only=not parts.indexes.writable(),
        stale=stale,
        jobs=jobs_in_progress(parts.jobs_folder) if parts.jobs_folder else (),
        checks=tuple(run_checks(parts)) if deep else (),
        notes=(
            *_notes(parts, counts, built_with),
            *(f"{problem.path}: {problem.reason}" for problem in _unreadable_conversations(parts)),
            *parts.unsearched_conversations(),
            *store_notes,
            *cache_trouble,
        ),
        backend="qmd" if parts.qmd and not fallback else "builtin",
        fallback=fallback,
        provider=in_use.provider if in_use else "none",
        model=in_use.model if in_use else "",
        requested_provider=parts.settings.provider,
        db_path=db_path,
        extra_paths=tuple(map(str, parts.settings.extra_paths)),
        source_counts=tuple(source_counts),
    )


def _vector_state(
    parts: Components, built_with: EmbedderIdentity | None, *, opened: bool, load_error: str
) -> VectorState:
    settings = parts.settings.store.vector
    driver = settings.driver if parts.indexes is parts.folder else "pgvector"
    loaded = opened or driver != "sqlite-vec"  # opening an index loads sqlite-vec
    return VectorState(
        enabled=settings.enabled,
        available=settings.enabled and not load_error if loaded else None,
        driver=driver,
        extension_path=settings.extension_path,
        load_error=load_error,
        dims=built_with.dimensions if built_with else None,
    )


def _batch_state(parts: Components) -> BatchState:
    settings = parts.settings.remote.batch
    failures = Ledger(parts.jobs_folder).failures() if parts.jobs_folder else JobFailures()
    return BatchState(
        enabled=settings.enabled,
        failures=failures.count,
        limit=FAILURE_LIMIT,
        wait=settings.wait,
        concurrency=settings.concurrency,
        poll_interval_ms=settings.poll_interval_ms,
        timeout_ms=settings.timeout_minutes * 60_000,
        last_error=failures.last_error,
        last_provider=failures.last_provider,
    )


def run_checks(parts: Components) -> Iterator[Check]:
    """Run the checks one by one; one that fails says what to do."""
    yield from _check_notes(parts)
    yield from parts.indexes.checks()
    yield from _check_index(parts)
    yield _check_embedder(parts)
    yield from _check_vector_search(parts)
    yield from _check_cache(parts)
    if parts.jobs_folder:
        yield from check_jobs(parts.jobs_folder)
    yield from _check_qmd(parts)


def _check_qmd(parts: Components) -> Iterator[Check]:
    if parts.qmd is None:
        return
    try:
        version = parts.qmd.version()
    except BackendError as error:
        yield Check("qmd", False, error.message, error.hint)
        return
    fallback, problem = parts.qmd.fallback(), parts.qmd.state().problem
    detail = fallback.reason if fallback else problem or f"qmd {version} answers ({parts.settings.qmd.mode})"
    yield Check("qmd", not fallback and not problem, detail, "run `notewell index`" if fallback or problem else "")


def _cache_stats(parts: Components) -> tuple[CacheStats | None, list[str]]:
    """Return the statistics of the cache, or why there are none."""
    try:
        cache = parts.cache
        return (cache.stats() if cache else None), []
    except NotewellError as error:
        return None, [f"the embedding cache cannot be used: {error.full_message}"]


def _notes(parts: Components, counts: Counts, built_with: EmbedderIdentity | None) -> Iterator[str]:
    selection = parts.embedders.selection
    if selection.embedder is None and not parts.settings.store.fts.enabled:
        yield f"{NO_KEYWORDS}, and semantic search cannot answer: {selection.reason}; {selection.hint}".rstrip("; ")
    elif selection.warning:
        yield selection.warning
    if selection.embedder is None:
        return
    if selection.upgrade:
        yield selection.upgrade
    if built_with and built_with != selection.embedder.identity and counts.embedded:
        yield f"{_switching(parts, built_with, selection.embedder.identity)}: run `notewell index`"
    elif counts.pending:
        yield f"{counts.pending} chunks have no vector yet: run `notewell index`"


def _check_notes(parts: Components) -> Iterator[Check]:
    listings = [source.list() for source in parts.sources]
    files = sum(len(listing.files) for listing in listings)
    yield Check("notes", bool(files), f"{files} files in {parts.workspace}", "" if files else "write MEMORY.md first")
    for note in parts.uncovered_note(DOCTOR_COUNT_S):
        detail, _, hint = note.partition(": ")
        # A folder may hold much that is not meant to be notes; a memory of a single file is probably a mistake.
        yield Check("include", files > 1, detail, hint)
    for listing in listings:
        for problem in listing.problems:
            yield Check("notes", False, f"{problem.path}: {problem.reason}", "check the path and its permissions")
    for problem in _unreadable_conversations(parts):
        yield Check(
            "conversations", False, f"{problem.path}: {problem.reason}", "fix the file, then run `notewell index`"
        )


def _unreadable_conversations(parts: Components) -> list[Problem]:
    """Return why conversations cannot be read; their stamps are stored without a time."""
    if parts.transcripts is None:
        return []
    with parts.index.use() as store:
        if store is None:
            return []
        with store.reading() as snapshot:
            suspects = [path for (_, path), known in snapshot.documents("sessions").items() if not known.stamp.mtime_ns]
            positions = {path: snapshot.cursor("sessions", path) for path in suspects}
    return list(parts.transcripts.unreadable(positions))


def _check_index(parts: Components) -> Iterator[Check]:
    rebuild = "run `notewell index --force`"
    try:
        with parts.index.use() as store:
            if store is None:
                yield Check("index", False, "nothing is indexed yet", "run `notewell index`")
                return
            findings = store.verify()
            with store.reading() as snapshot:
                counts, built_with = snapshot.counts(), snapshot.embedder()
            unreadable: Sequence[Problem] = ()
            if stale := is_stale(store, parts.sources):
                from notewell.indexing.preview import Preview

                found = Preview(store, parts.sources, parts.sync.preparation, None, parts.cache).run()
                stale = bool(found.added or found.changed or found.removed or not found.problems)
                unreadable = found.problems  # files that `index` cannot read
    except NotewellError as error:
        # A full disk or a busy index will pass; only what exits 3 has to be rebuilt.
        yield Check("index", False, error.message, error.hint or rebuild, unusable=error.exit_code == UNUSABLE)
        return
    yield Check(
        "index",
        not findings,
        "; ".join(findings) or f"{counts.chunks:,} chunks, all tables consistent",
        rebuild if findings else "",
    )
    if unreadable:
        count = f"{len(unreadable):,} files" if len(unreadable) > 1 else "a file"
        detail = f"{count} cannot be indexed: {unreadable[0].path}: {unreadable[0].reason}"
        yield Check("notes", False, detail, "" if len(unreadable) == 1 else "`notewell index` names them all")
    yield Check(
        "fresh",
        not stale,
        "notes changed since they were indexed" if stale else f"every change is indexed{AS_FAR_AS}",
        "run `notewell index`" if stale else "",
    )
    wanted = parts.embedders.selection.embedder
    if wanted and counts.chunks:
        mismatch = bool(counts.embedded) and built_with != wanted.identity
        detail = _switching(parts, built_with, wanted.identity) if mismatch and built_with else _embedded(counts)
        ok = not mismatch and not counts.pending
        yield Check("vectors", ok, detail, "" if ok else "run `notewell index`")


def _switching(parts: Components, built_with: EmbedderIdentity, wanted: EmbedderIdentity) -> str:
    """Describe which model's vectors are stored, why, and what answers until the wanted ones are complete."""
    maker, _ = parts.embedders.answering(built_with)
    answers = "they answer" if maker and maker.identity == built_with else "only keyword search answers"
    with parts.index.use() as store:
        reason = ""
        if store is not None:
            with store.reading() as snapshot:
                reason = snapshot.meta(FELL_BACK) or ""
    why = f" ({reason})" if reason else ""
    return f"the stored vectors are from {built_with}{why}; {answers} until the vectors of {wanted} are complete"


def _embedded(counts: Counts) -> str:
    unknown = counts.chunks - counts.embedded - counts.pending
    keyword_only = f", {unknown:,} keyword-only (script not supported by the model)" if unknown else ""
    return f"{counts.embedded:,} of {counts.chunks:,} chunks embedded{keyword_only}"


def _check_embedder(parts: Components) -> Check:
    selection = parts.embedders.selection
    if selection.embedder is None:
        wanted = parts.settings.provider != "none" and parts.settings.store.vector.enabled
        return Check("embedder", not wanted, selection.reason, selection.hint)
    try:
        selection.embedder.embed_query("hello")
    except NotewellError as error:
        return Check("embedder", False, error.message, error.hint)
    if selection.fell_back:
        return Check("embedder", False, f"{selection.embedder.identity}: {selection.reason}", selection.hint)
    return Check("embedder", True, f"{selection.embedder.identity}: {selection.reason}")


def _check_vector_search(parts: Components) -> Iterator[Check]:
    """Run a vector search without an embedder."""
    try:
        with parts.index.use() as store:
            if store is None:
                return
            with store.reading() as snapshot:
                identity = snapshot.embedder()
                if identity is None or not snapshot.counts().embedded:
                    return
                import numpy as np

                along = np.full(identity.dimensions, identity.dimensions**-0.5, dtype=np.float32)
                found = snapshot.vector_matches(along, limit=1, scope=EVERYTHING)
            notes = store.notes
    except NotewellError as error:
        yield Check("nearest", False, error.message, error.hint or "run `notewell index --force`")
        return
    if notes and parts.indexes is parts.folder:
        hint = 'repair it, or set store.vector.driver = "segments"'
        yield Check("nearest", False, "; ".join(notes), hint)
        return
    driver = parts.settings.store.vector.driver if parts.indexes is parts.folder else "pgvector"
    detail = f"{driver}: {identity.dimensions} dimensions" if found else f"{driver}: finds nothing"
    yield Check("nearest", bool(found), detail, "" if found else "run `notewell index --force`")


def _check_cache(parts: Components) -> Iterator[Check]:
    stats, trouble = _cache_stats(parts)
    if trouble:
        in_file = "free some space, or delete cache.sqlite: only time is lost"
        hint = in_file if parts.indexes is parts.folder else "repair the database: until then, only time is lost"
        yield Check("cache", False, trouble[0], hint)
    elif stats is None:
        yield Check("cache", True, "turned off" if not parts.settings.cache.enabled else "empty")
    else:
        notes = parts.cache.notes if parts.cache else ()
        yield Check("cache", not notes, "; ".join(notes) or f"{stats.entries:,} of {stats.max_entries:,} vectors")


# --- comparing and repairing ---------------------------------------------------------------------


def verify(parts: Components) -> Verification:
    """Build a fresh index of the files in memory and compare; nothing is written."""
    started = time.monotonic()
    try:
        return replace(_verified(parts), seconds=time.monotonic() - started)
    except IndexCorruptError as error:
        return Verification((error.message,), 0, 0, time.monotonic() - started)


def repair(parts: Components) -> tuple[Check, ...]:
    """Repair an index that is corrupt, inconsistent or out of date, and return the checks afterwards.

    Repairs come first, as checks that pass. The notes are never touched.
    """
    if not parts.indexes.writable():
        raise parts.indexes.read_only_error()
    names = [f"a folder was in the way of a file; it is kept as {name}" for name in parts.folder.set_folders_aside()]
    done = [*names, *_repaired_index(parts), *_repaired_cache(parts)]
    return (*(Check("repaired", True, what) for what in done), *run_checks(parts))


def _verified(parts: Components) -> Verification:
    with parts.index.use() as store:
        if store is None:
            return Verification(("nothing is indexed yet: run `notewell index`",), 0, 0)
        findings = list(store.verify())
        with store.reading() as snapshot:
            counts = snapshot.counts()
            if not findings:
                findings = [*_missing_vectors(parts, snapshot), *_compared(parts, store, snapshot)]
    return Verification(tuple(findings), counts.files, counts.chunks)


def _missing_vectors(parts: Components, snapshot: Snapshot) -> Iterator[str]:
    embedder = parts.embedders.selection.embedder
    counts = snapshot.counts()
    if embedder and counts.embedded and snapshot.embedder() != embedder.identity:
        yield "the vectors are from another embedding model"
    elif embedder and counts.pending:
        yield f"{counts.pending} chunks have no vector yet"


def _compared(parts: Components, store: ReadableStore, snapshot: Snapshot) -> list[str]:
    from notewell.indexing.indexer import Indexer
    from notewell.indexing.verification import Comparison
    from notewell.store.sqlite import open_in_memory

    with closing(open_in_memory()) as fresh:
        report = Indexer(parts.sources, parts.sync.preparation).run(fresh)
        with fresh.reading() as other:
            comparison = Comparison(snapshot, other, same_engine=type(store) is type(fresh))
            cache = parts.cache
            findings = comparison.findings(cache.peek_many if cache else None)
    return [*findings, *(f"{problem.path}: {problem.reason}" for problem in report.problems)]


def _repaired_index(parts: Components) -> Iterator[str]:
    try:
        with parts.index.use() as store:
            wrong = list(store.verify()) if store else []
    except StoreError as error:
        if error.exit_code != StoreError.exit_code:
            raise  # a full or read-only disk is no reason to discard an index
        wrong = [error.message]
    if not wrong:
        report = parts.sync.run()
        if report.added or report.changed or report.renamed or report.removed or report.embedded or report.rebuilt:
            yield "the index was brought up to date"
        wrong = [*verify(parts).findings] if report.complete and not report.problems else []
    if wrong:
        why = f"the index is inconsistent: {'; '.join(wrong)}"
        yield from parts.sync.run(SyncPolicy(repair=why, batch=False)).notes[:1]


def _repaired_cache(parts: Components) -> Iterator[str]:
    """Read the statistics of the cache: that alone sets a corrupt file aside, with a note."""
    try:
        cache = parts.cache
        if cache:
            cache.stats()
            yield from cache.notes
    except NotewellError:
        return  # the checks that follow report it
