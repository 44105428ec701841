"""A way to update an index and its batch jobs in, one report out: updates and waits take turns until no job is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from notewell.indexing.batch_run import NEVER_SET, BatchRun, counted
from notewell.types import IndexReport, Progress

if TYPE_CHECKING:
    from notewell.types import ProgressCallback


def run_in_steps(
    update: Callable[[], IndexReport],
    batch: BatchRun,
    *,
    wait: bool,
    stop: threading.Event = NEVER_SET,
    progress: ProgressCallback | None = None,
) -> IndexReport:
    """Run `update`, which takes a step each time, until no job is under way; without `wait`, once."""
    started = time.monotonic()
    report = update()

    def told() -> None:
        if progress:
            left = sum(len(record.wanted) for record in batch.under_way)
            progress(Progress("jobs", report.embedded, report.embedded + left))

    while wait and batch.wait(stop, told):
        report = merged(report, update())
    notes = list(report.notes)
    left = batch.under_way
    if left:
        jobs = "1 batch job is" if len(left) == 1 else f"{len(left)} batch jobs are"
        chunks = counted(sum(len(record.wanted) for record in left))
        notes.append(f"{jobs} under way for {chunks}: run `notewell index` later to fetch the vectors")
    return replace(report, seconds=time.monotonic() - started, notes=tuple(notes))


def merged(first: IndexReport, later: IndexReport) -> IndexReport:
    """Return two runs as one: work adds up, what is left and what is unchanged is what the later one says."""
    return replace(
        later,
        added=first.added + later.added,
        changed=first.changed + later.changed,
        renamed=first.renamed + later.renamed,
        removed=first.removed + later.removed,
        unchanged=first.unchanged,
        embedded=first.embedded + later.embedded,
        reused=first.reused + later.reused,
        unknown=first.unknown + later.unknown,
        rebuilt=first.rebuilt or later.rebuilt,
        seconds=first.seconds + later.seconds,
        problems=tuple(dict.fromkeys((*first.problems, *later.problems))),
        notes=tuple(dict.fromkeys((*first.notes, *later.notes))),
    )
