"""A memory in, how it is doing out: the figures of `status` and the checks of `doctor`."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from notewell.embedding.selection import FELL_BACK
from notewell.errors import NotewellError, StoreError
from notewell.indexing.plan import plan_changes
from notewell.indexing.waited_for import check_jobs, jobs_under_way
from notewell.types import EVERYTHING, Check, Counts, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notewell.memory.memory import Memory
    from notewell.protocols import Store
    from notewell.store.sqlite.cache import CacheStats
    from notewell.types import EmbedderIdentity

LOW_DISK_BYTES = 200 * 1024 * 1024  # an index of 10,000 chunks, its rebuild beside it and a cache fit into that

UNUSABLE = StoreError.exit_code


def memory_status(memory: Memory, *, deep: bool) -> Status:
    """Return the figures; with `deep` also the checks."""
    selection = memory.selection
    counts, built_with, size, stale = Counts(0, 0, 0, 0), None, 0, True
    with memory.store() as store:
        if store is not None:
            with store.reading() as snapshot:
                counts, built_with = snapshot.counts(), snapshot.embedder()
            size, stale = store.size_bytes(), _is_stale(memory, store)
    cache_stats, cache_trouble = _cache_stats(memory)
    answers_by_vector = _answers_by_vector(counts, built_with, memory)
    return Status(
        workspace=str(memory.workspace),
        agent=memory.agent,
        state_folder=str(memory.state.path),
        files=counts.files,
        chunks=counts.chunks,
        pending=counts.pending,
        mode=memory.settings.query.default_mode if answers_by_vector else "keyword",
        embedder=str(selection.embedder.identity) if selection.embedder else None,
        embedder_reason=selection.reason,
        index_embedder=str(built_with) if built_with else None,
        sources=memory.settings.sources,
        index_bytes=size,
        cache_entries=cache_stats.entries if cache_stats else 0,
        cache_bytes=cache_stats.bytes if cache_stats else 0,
        read_only=not memory.state.writable(),
        stale=stale,
        jobs=jobs_under_way(memory.state.path),
        checks=tuple(run_checks(memory)) if deep else (),
        notes=(*_notes(memory, counts, built_with), *cache_trouble),
    )


def run_checks(memory: Memory) -> Iterator[Check]:
    """Yield one check after the other; a check that fails says what to do."""
    yield from _check_notes(memory)
    yield _check_folder(memory)
    yield from _check_index(memory)
    yield _check_embedder(memory)
    yield from _check_vector_search(memory)
    yield from _check_cache(memory)
    yield from check_jobs(memory.state.path)


def _cache_stats(memory: Memory) -> tuple[CacheStats | None, list[str]]:
    """Return the figures of the cache, or why there are none: no answer depends on them."""
    try:
        cache = memory.cache
        return (cache.stats() if cache else None), []
    except NotewellError as error:
        return None, [f"the embedding cache cannot be used: {error.message}; {error.hint}".rstrip("; ")]


def _answers_by_vector(counts: Counts, built_with: EmbedderIdentity | None, memory: Memory) -> bool:
    embedder, _ = memory.embedders.answering(built_with)
    return counts.embedded > 0 and embedder is not None and built_with == embedder.identity


def _is_stale(memory: Memory, store: Store) -> bool:
    listings = [source.list() for source in memory.sources()]
    names = {source.name for source in memory.sources()}
    with store.reading() as snapshot:
        stored = {key: document for key, document in snapshot.documents().items() if key[0] in names}
    listed = (stamp for listing in listings for stamp in listing.files)
    plan = plan_changes(listed, stored)
    # A stamp without a time belongs to a file just written: only another size shows a change without reading it.
    touched = any(known.stamp.mtime_ns or known.stamp.size != stamp.size for stamp, known in plan.touched)
    return bool(plan.added or touched or plan.removed)


def _notes(memory: Memory, counts: Counts, built_with: EmbedderIdentity | None) -> Iterator[str]:
    selection = memory.selection
    if selection.warning:
        yield selection.warning
    if selection.embedder is None:
        return
    if built_with and built_with != selection.embedder.identity and counts.embedded:
        yield f"{_switching(memory, built_with, selection.embedder.identity)}: run `notewell index`"
    elif counts.pending:
        yield f"{counts.pending} chunks have no vector yet: run `notewell index`"


def _check_notes(memory: Memory) -> Iterator[Check]:
    listings = [source.list() for source in memory.sources()]
    files = sum(len(listing.files) for listing in listings)
    yield Check("notes", bool(files), f"{files} files in {memory.workspace}", "" if files else "write MEMORY.md first")
    for listing in listings:
        for problem in listing.problems:
            yield Check("notes", False, f"{problem.path}: {problem.reason}", "check the path and who may read it")


def _check_folder(memory: Memory) -> Check:
    path = memory.state.path
    if not memory.state.writable():
        return Check("folder", False, f"{path} is read-only: searching works, indexing does not", "set store.path")
    nearest = next(folder for folder in (path, *path.parents) if folder.exists())
    free = shutil.disk_usage(nearest).free
    hint = "" if free > LOW_DISK_BYTES else "free some space: a rebuild needs room for a second index"
    return Check("folder", free > LOW_DISK_BYTES, f"{path}, {free // 2**20:,} MB free", hint)


def _check_index(memory: Memory) -> Iterator[Check]:
    rebuild = "run `notewell index --force`"
    try:
        with memory.store() as store:
            if store is None:
                yield Check("index", False, "nothing is indexed yet", "run `notewell index`")
                return
            findings = store.verify()
            with store.reading() as snapshot:
                counts, built_with = snapshot.counts(), snapshot.embedder()
            stale = _is_stale(memory, store)
    except NotewellError as error:
        # A full disk or a busy index will pass; only what exits 3 has to be built anew.
        yield Check("index", False, error.message, error.hint or rebuild, unusable=error.exit_code == UNUSABLE)
        return
    yield Check(
        "index",
        not findings,
        "; ".join(findings) or f"{counts.chunks:,} chunks, all tables in step",
        rebuild if findings else "",
    )
    yield Check(
        "fresh",
        not stale,
        "notes changed since they were indexed" if stale else "every change is indexed",
        "run `notewell index`" if stale else "",
    )
    wanted = memory.selection.embedder
    if wanted and counts.chunks:
        mismatch = bool(counts.embedded) and built_with != wanted.identity
        detail = _switching(memory, built_with, wanted.identity) if mismatch and built_with else _embedded(counts)
        ok = not mismatch and not counts.pending
        yield Check("vectors", ok, detail, "" if ok else "run `notewell index`")


def _switching(memory: Memory, built_with: EmbedderIdentity, wanted: EmbedderIdentity) -> str:
    """Say whose vectors are stored, why, and who answers until those asked for are there."""
    maker, _ = memory.embedders.answering(built_with)
    answers = "they answer" if maker and maker.identity == built_with else "words alone answer"
    with memory.store() as store:
        reason = ""
        if store is not None:
            with store.reading() as snapshot:
                reason = snapshot.meta(FELL_BACK) or ""
    why = f" ({reason})" if reason else ""
    return f"the stored vectors are those of {built_with}{why}; {answers} until those of {wanted} are complete"


def _embedded(counts: Counts) -> str:
    unknown = counts.chunks - counts.embedded - counts.pending
    words_only = f", {unknown:,} in a writing that the model does not know: found by words" if unknown else ""
    return f"{counts.embedded:,} of {counts.chunks:,} chunks embedded{words_only}"


def _check_embedder(memory: Memory) -> Check:
    selection = memory.selection
    if selection.embedder is None:
        wanted = memory.settings.provider != "none" and memory.settings.store.vector.enabled
        return Check("embedder", not wanted, selection.reason, selection.hint)
    try:
        selection.embedder.embed_query("hello")
    except NotewellError as error:
        return Check("embedder", False, error.message, error.hint)
    if selection.fell_back:
        return Check("embedder", False, f"{selection.embedder.identity}: {selection.reason}", selection.hint)
    return Check("embedder", True, f"{selection.embedder.identity}: {selection.reason}")


def _check_vector_search(memory: Memory) -> Iterator[Check]:
    """Look for the nearest of a stored vector: that needs the vector index, and no embedder."""
    try:
        with memory.store() as store:
            if store is None:
                return
            with store.reading() as snapshot:
                identity = snapshot.embedder()
                if identity is None or not snapshot.counts().embedded:
                    return
                import numpy as np

                along = np.full(identity.dimensions, identity.dimensions**-0.5, dtype=np.float32)
                found = snapshot.vector_matches(along, limit=1, scope=EVERYTHING)
    except NotewellError as error:
        yield Check("nearest", False, error.message, error.hint or "run `notewell index --force`")
        return
    driver = memory.settings.store.vector.driver
    detail = f"{driver}: {identity.dimensions} dimensions" if found else f"{driver}: finds nothing"
    yield Check("nearest", bool(found), detail, "" if found else "run `notewell index --force`")


def _check_cache(memory: Memory) -> Iterator[Check]:
    stats, trouble = _cache_stats(memory)
    if trouble:
        yield Check("cache", False, trouble[0], "free some space, or delete cache.sqlite: only time is lost")
    elif stats is None:
        yield Check("cache", True, "turned off" if not memory.settings.cache.enabled else "empty")
    else:
        notes = memory.cache.notes if memory.cache else ()
        yield Check("cache", not notes, "; ".join(notes) or f"{stats.entries:,} of {stats.max_entries:,} vectors")
