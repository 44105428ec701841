"""Progress of long work: a bar with rate and time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notewell import Progress
    from notewell.types import ProgressCallback

QUIET_S = 1.0  # work that is done within it shows nothing
LINE_EVERY_S = 5.0

LABELS = {
    "read": "reading notes",
    "embed": "embedding chunks",
    "jobs": "waiting for batch jobs",
    "download": "downloading the model (MB)",
}


@contextmanager
def shown_progress() -> Iterator[ProgressCallback]:
    """Yield a callback that shows progress on stderr in the way that fits where stderr goes."""
    with _bar() if sys.stderr.isatty() else _lines() as callback:
        yield callback


@contextmanager
def _lines() -> Iterator[ProgressCallback]:
    shown_at = time.monotonic() + QUIET_S - LINE_EVERY_S

    def show(progress: Progress) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at >= LINE_EVERY_S:
            shown_at = time.monotonic()
            click.echo(f"{LABELS[progress.stage]}: {progress.done:,} of {progress.total:,}", err=True)

    yield show


@contextmanager
def _bar() -> Iterator[ProgressCallback]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    started = time.monotonic()
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {}

        def show(progress: Progress) -> None:
            if time.monotonic() - started < QUIET_S:
                return
            if progress.stage not in tasks:
                tasks[progress.stage] = bars.add_task(LABELS[progress.stage], total=progress.total, rate="")
            speed = bars.tasks[tasks[progress.stage]].speed
            rate = f"{speed:.1f}/s" if speed else ""
            bars.update(tasks[progress.stage], completed=progress.done, total=progress.total, rate=rate)

        yield show
