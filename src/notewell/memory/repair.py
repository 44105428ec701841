"""Verifies an index against the files, and repairs it where it is corrupt or out of date."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from notewell.errors import IndexCorruptError, NotewellError, StoreError
from notewell.indexing.indexer import Indexer
from notewell.indexing.plan import SyncPolicy
from notewell.indexing.verification import Comparison
from notewell.memory.health import run_checks
from notewell.reports import Verification
from notewell.store.sqlite import open_in_memory
from notewell.types import Check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notewell.memory.components import Components
    from notewell.protocols import ReadableStore, Snapshot


def verify(parts: Components) -> Verification:
    """Build a fresh index of the files in memory and compare; nothing is written."""
    started = time.monotonic()
    try:
        return replace(_verified(parts), seconds=time.monotonic() - started)
    except IndexCorruptError as error:
        return Verification((error.message,), 0, 0, time.monotonic() - started)


def repair(parts: Components) -> tuple[Check, ...]:
    """Repair an index that is corrupt, inconsistent or out of date, and return the checks as they are then.

    What was done comes first, as checks that pass. The files are never touched.
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
            raise  # a full or read-only disk is no reason to throw an index away
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
    """Reading the figures of the cache is enough: it sets a corrupt file aside by itself, and notes it."""
    try:
        cache = parts.cache
        if cache:
            cache.stats()
            yield from cache.notes
    except NotewellError:
        return  # the checks that follow report it
