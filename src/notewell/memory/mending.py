"""A memory in; whether its index is what the files say, and the index put right where it is not, out."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from notewell.errors import IndexCorruptError, IndexReadOnlyError, NotewellError, StoreError
from notewell.indexing.indexer import Indexer
from notewell.indexing.verification import Comparison
from notewell.memory.health import run_checks
from notewell.store.sqlite import open_in_memory
from notewell.types import Check, Verification

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notewell.memory.memory import Memory
    from notewell.protocols import Snapshot, Store


def verify_memory(memory: Memory) -> Verification:
    """Build a fresh index of the files in memory and compare; nothing is written."""
    started = time.monotonic()
    try:
        return replace(_verified(memory), seconds=time.monotonic() - started)
    except IndexCorruptError as error:
        return Verification((error.message,), 0, 0, time.monotonic() - started)


def _verified(memory: Memory) -> Verification:
    with memory.store() as store:
        if store is None:
            return Verification(("nothing is indexed yet: run `notewell index`",), 0, 0)
        findings = list(store.verify())
        with store.reading() as snapshot:
            counts = snapshot.counts()
            if not findings:
                findings = [*_wanting(memory, snapshot), *_compared(memory, store, snapshot)]
    return Verification(tuple(findings), counts.files, counts.chunks)


def _wanting(memory: Memory, snapshot: Snapshot) -> Iterator[str]:
    embedder = memory.selection.embedder
    counts = snapshot.counts()
    if embedder and counts.embedded and snapshot.embedder() != embedder.identity:
        yield "the vectors are those of another embedder"
    elif embedder and counts.pending:
        yield f"{counts.pending} chunks have no vector yet"


def _compared(memory: Memory, store: Store, snapshot: Snapshot) -> list[str]:
    with closing(open_in_memory()) as fresh:
        report = Indexer(fresh, memory.sources(), memory.update(None).preparation).run()
        with fresh.reading() as other:
            comparison = Comparison(snapshot, other, same_engine=type(store) is type(fresh))
            findings = comparison.findings(memory.cache.peek_many if memory.cache else None)
    return [*findings, *(f"{problem.path}: {problem.reason}" for problem in report.problems)]


def mend_memory(memory: Memory) -> tuple[Check, ...]:
    """Put right what can be: an index that is damaged, out of step or stale. Returns the checks as they are then.

    What was done comes first, as checks that are well. The files are never touched.
    """
    if not memory.state.writable():
        raise IndexReadOnlyError(f"cannot write to {memory.state.path}", hint="set store.path")
    done = [*_mended_index(memory), *_mended_cache(memory)]
    return (*(Check("mended", True, what) for what in done), *run_checks(memory))


def _mended_index(memory: Memory) -> Iterator[str]:
    try:
        with memory.store() as store:
            wrong = list(store.verify()) if store else []
    except StoreError as error:
        if error.exit_code != StoreError.exit_code:
            raise  # a full or read-only disk is no reason to throw an index away
        wrong = [error.message]
    if not wrong:
        report = memory.index()
        if report.added or report.changed or report.renamed or report.removed or report.embedded or report.rebuilt:
            yield "the index caught up with the notes"
        wrong = [*verify_memory(memory).findings] if report.complete and not report.problems else []
    if wrong:
        report = memory.update(memory.selection.embedder).mend(f"the index is not right: {'; '.join(wrong)}")
        yield from report.notes[:1]


def _mended_cache(memory: Memory) -> Iterator[str]:
    """Asking the cache for its figures is enough: it sets a damaged file aside by itself, and says so."""
    try:
        cache = memory.cache
        if cache:
            cache.stats()
            yield from cache.notes
    except NotewellError:
        return  # the checks that follow tell of it
