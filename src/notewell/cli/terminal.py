"""Prints data to stdout, and notes, errors and progress to stderr."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TextIO

import click

from notewell.errors import NotewellError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from notewell import Problem, Progress
    from notewell.agents.documents import Json
    from notewell.agents.rendering import Look
    from notewell.types import ProgressCallback

INTERRUPTED = 130  # the exit code that shells expect after Ctrl-C
QUIET_S = 1.0  # shorter work shows no progress
LINE_EVERY_S = 5.0

# Control characters except tab, newline and the styles that commands print.
_CONTROLS = re.compile(r"\x1b(?!\[(?:0|1|2|31|32)m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")

LABELS = {
    "read": "reading notes",
    "embed": "embedding chunks",
    "jobs": "waiting for batch jobs",
    "download": "downloading the model (MB)",
}


def print_json(document: Json) -> None:
    """Print one JSON document, with escapes where stdout cannot encode every character."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("_", "-")
    click.echo(json.dumps(document, ensure_ascii=encoding not in {"utf-8", "utf8"}, indent=2, default=str))


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines to stdout, or to stderr."""
    for line in lines:
        click.echo(_harmless(line, sys.stderr if err else sys.stdout), err=err)


def _harmless(text: str, stream: TextIO) -> str:
    """Return a text with control characters escaped if it goes to a terminal."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text) if stream.isatty() else text


def terminal_look() -> Look:
    """Return styles and width for stdout: those of the terminal, with matches colored like `grep`, or plain."""
    from notewell.agents.rendering import PLAIN, Look  # many commands do not need it

    if not sys.stdout.isatty():
        return PLAIN
    width = shutil.get_terminal_size().columns
    if os.environ.get("NO_COLOR"):
        return Look(width=width)
    strong, faint = partial(click.style, bold=True), partial(click.style, dim=True)
    return Look(strong, faint, partial(click.style, fg="red", bold=True), width)


def print_notes(notes: Iterable[str]) -> None:
    """Print notes to stderr."""
    print_lines((f"note: {note}" for note in notes), err=True)


def print_problems(problems: Iterable[Problem]) -> None:
    """Print problems to stderr."""
    print_notes(f"{problem.path or 'a chunk'}: {problem.reason}" for problem in problems)


def print_error(error: NotewellError) -> None:
    """Print an error and its hint to stderr."""
    if isinstance(error, DeclinedError):
        print_notes([error.message])
        return
    message = _harmless(error.message, sys.stderr)
    click.echo(f"{click.style('error:', fg='red') if sys.stderr.isatty() else 'error:'} {message}", err=True)
    if error.hint:
        click.echo(f"       {error.hint}", err=True)


class DeclinedError(NotewellError):
    """The user declined."""


class DeclinedByKeyError(DeclinedError):
    """The user answered with Ctrl-C or Ctrl-D."""

    exit_code = INTERRUPTED


def yes_or_no(question: str, *, default: bool) -> bool:
    """Ask for yes or no on stderr; raise click.Abort on Ctrl-C and Ctrl-D."""
    try:
        return click.confirm(question, default=default, err=True)
    except click.Abort:
        click.echo(err=True)  # the cursor is still after the question
        raise


def confirm(question: str, otherwise: str) -> None:
    """Ask for confirmation; raise DeclinedError with the message `otherwise` if declined."""
    try:
        agreed = yes_or_no(question, default=False)
    except click.Abort:
        raise DeclinedByKeyError(otherwise) from None
    if not agreed:
        raise DeclinedError(otherwise)


@contextmanager
def shown_progress() -> Iterator[ProgressCallback]:
    """Yield a callback that shows progress: a bar on a terminal, else an occasional line."""
    with _bar() if sys.stderr.isatty() else _lines() as callback:
        yield callback


@contextmanager
def _lines() -> Iterator[ProgressCallback]:
    shown_at = time.monotonic() + QUIET_S - LINE_EVERY_S
    begun: dict[str, tuple[float, int]] = {}  # time and progress at the start of each stage
    latest: dict[str, int] = {}

    def show(progress: Progress) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if progress.done < latest.get(progress.stage, 0):  # the next of several runs
            del begun[progress.stage]
        latest[progress.stage] = progress.done
        since, before = begun.setdefault(progress.stage, (now, progress.done))
        if now - shown_at >= LINE_EVERY_S:
            shown_at = now
            pace = _pace(progress.done - before, now - since, progress.total - progress.done)
            click.echo(f"{LABELS[progress.stage]}: {progress.done:,} of {progress.total:,}{pace}", err=True)

    yield show


def _pace(done: int, seconds: float, left: int) -> str:
    """Return the rate and the time left, if known."""
    if done < 1 or seconds < QUIET_S / 2:
        return ""
    rate = done / seconds
    minutes, rest = divmod(round(left / rate), 60)
    return f", {rate:,.1f} a second, {f'{minutes} min ' if minutes else ''}{rest} s left"


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
