"""The commands that build, follow, check and move the index: index, watch, verify, doctor and migrate."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from notewell import CostLimitError, NotewellError, StoreError
from notewell.agents.documents import document_of, report_document
from notewell.agents.rendering import check_lines, cost_line, dollars, preview_lines, report_lines
from notewell.cli.options import Chosen, common_options, path_in
from notewell.cli.terminal import confirm, print_json, print_lines, print_notes, print_problems, shown_progress

if TYPE_CHECKING:
    from notewell import IndexReport, Memory

UNUSABLE = StoreError.exit_code
WAKE_S = 0.2  # Windows delivers Ctrl-C only between waits


@click.command("index", epilog="Example: notewell index --dry-run")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--force", is_flag=True, help="Rebuild the index; the old one stays in use until the new one is ready.")
@click.option("--check", is_flag=True, help="Read every note, also those whose size, times and inode did not change.")
@click.option("--dry-run", is_flag=True, help="Show what would be indexed, and what embedding would cost.")
@click.option("--yes", "-y", is_flag=True, help="Ignore the spending limit.")
@click.option("--batch/--no-batch", default=None, help="Embed with the provider's batch jobs: cheaper, but slower.")
@click.option("--no-wait", is_flag=True, help="Do not wait for batch jobs; a later run fetches their vectors.")
@common_options
def index(
    paths: tuple[str, ...],
    *,
    force: bool,
    check: bool,
    dry_run: bool,
    yes: bool,
    batch: bool | None,
    no_wait: bool,
    chosen: Chosen,
) -> int:
    """Index new and changed notes. Keyword search works at once; Ctrl-C keeps what is done.

    With PATHs, such as memory/2026-11-15.md, only those notes are indexed; they are read in any case.
    """
    with chosen.memory() as memory:
        named = tuple(path_in(memory, path) for path in paths) or None
        if dry_run:
            preview = memory.preview(paths=named, force=force, check=check)
            chosen.print(document_of(preview), preview_lines(preview), problems=preview.problems)
            return 0
        if not yes:
            confirm_cost(memory, named, force=force, check=check, batch=batch)
        with shown_progress() as progress:
            report = memory.index(
                paths=named, force=force, check=check, batch=batch, wait=False if no_wait else None, progress=progress
            )
    return print_report(chosen, report)


def print_report(chosen: Chosen, report: IndexReport) -> int:
    """Print the outcome of an index run and return the exit code."""
    chosen.print(report_document(report), report_lines(report))
    print_notes(report.notes)
    print_problems(report.problems)
    return 0 if report.complete else 1


def confirm_cost(
    memory: Memory, paths: tuple[str, ...] | None, *, force: bool = False, check: bool = False, batch: bool | None
) -> None:
    """Ask for confirmation above the spending limit; raises CostLimitError without a terminal.

    Nothing is estimated if embedding is free or the price unknown.
    """
    price = memory.price
    if price is None or not price.usd_per_million:
        return
    preview = memory.preview(paths=paths, force=force, check=check)
    cost, limit = preview.cost, memory.settings.cost.confirm_above_usd
    batch = memory.settings.remote.batch.enabled if batch is None else batch
    usd = None if cost is None else cost.batch_usd if batch else cost.usd
    if cost is None or usd is None or usd <= limit:
        return
    line = cost_line(cost, preview.to_embed)
    if sys.stdin.isatty() and sys.stderr.isatty():
        click.echo(line, err=True)
        confirm(f"Embed for about {dollars(usd)}?", "nothing was embedded")
        return
    raise CostLimitError(
        f"embedding would cost about {dollars(usd)}, more than cost.confirm_above_usd ({dollars(limit)}): {line}",
        hint="run `notewell index --yes` to agree, or raise cost.confirm_above_usd",
    )


@click.command("watch", epilog="Example: notewell watch --for 2 --json")
@click.option("--for", "seconds", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop after SECONDS.")
@common_options
def watch(*, seconds: float | None, chosen: Chosen) -> int:
    """Index changes as they happen, until Ctrl-C.

    Prints one line for each run that changed the index.
    """
    with chosen.memory() as memory:
        log = _RunLog(quiet=chosen.as_json)
        stopped = threading.Event()
        with suppress(ValueError):  # only possible in the main thread
            signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        watching = memory.watch(on_sync=log.add)
        if watching.mode == "polling":
            print_notes([f"checking for changes every few seconds: {watching.reason}"])
        click.echo(f"watching {memory.workspace}; stop with Ctrl-C", err=True)
        with suppress(KeyboardInterrupt):
            _wait(stopped, seconds)
        watching.stop()
        memory.wait_until_synced()
    if chosen.as_json:
        print_json({"mode": watching.mode, "runs": log.runs, "failures": log.failures, **log.totals})
    return 1 if log.failures and log.failures == log.runs else 0


def _wait(stopped: threading.Event, seconds: float | None) -> None:
    left = seconds
    while not stopped.wait(WAKE_S if left is None else min(WAKE_S, left)):
        if left is not None:
            left -= WAKE_S
            if left <= 0:
                return


class _RunLog:
    """Prints and counts the outcomes of runs."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self.runs = 0
        self.failures = 0
        self.totals = dict.fromkeys(("added", "changed", "renamed", "removed", "embedded"), 0)

    def add(self, outcome: IndexReport | Exception) -> None:
        self.runs += 1
        if isinstance(outcome, Exception):
            self.failures += 1
            hint = f"; {outcome.hint}" if isinstance(outcome, NotewellError) and outcome.hint else ""
            print_notes([f"{outcome}{hint}"])
            return
        document = report_document(outcome)
        for key in self.totals:
            self.totals[key] += document[key]
        if any(document[key] for key in self.totals) and not self._quiet:
            print_lines(report_lines(outcome))
        print_problems(outcome.problems)


@click.command("verify", epilog="Example: notewell verify")
@common_options
def verify(*, chosen: Chosen) -> int:
    """Compare the index with the notes.

    Compares it also with a fresh index built in memory. Exits with 0 only if they are equal.
    """
    with chosen.memory() as memory:
        found = memory.verify()
    equal = f"equal: {found.files:,} notes, {found.chunks:,} chunks"
    notes = [] if found.equal else ["`notewell index` indexes what changed; `notewell doctor --fix` repairs the rest"]
    document = {"equal": found.equal, **document_of(found)}
    chosen.print(document, [equal] if found.equal else found.findings, notes=notes)
    return 0 if found.equal else 1


@click.command("doctor", epilog="Example: notewell doctor")
@click.option("--fix", is_flag=True, help="First repair what can be repaired; a corrupt index is rebuilt.")
@common_options
def doctor(*, fix: bool, chosen: Chosen) -> int:
    """Check every part of the memory, and say how to fix it.

    Checks notes, folder, index, vectors, embedding model and cache. Exits with 0 if all is well, 3 if the index is
    unusable, else 1.
    """
    from notewell.settings.openclaw_import import ignored_settings

    with chosen.memory() as memory:
        if fix:
            with suppress(StoreError):  # the cost for a corrupt index is unknown; its vectors are cached
                confirm_cost(memory, None, batch=False)
        checks = memory.doctor(fix=fix)
    green, red = (lambda text: click.style(text, fg="green")), (lambda text: click.style(text, fg="red"))
    ok = all(check.ok for check in checks)
    chosen.print({"ok": ok, "checks": document_of(checks)}, check_lines(checks, good=green, bad=red))
    print_notes(ignored_settings(memory.workspace))
    return 0 if ok else UNUSABLE if any(check.unusable for check in checks) else 1


@click.command("migrate", epilog="Example: notewell migrate --to sqlite --no-switch")
@click.option("--to", required=True, metavar="URL", help="A PostgreSQL database, or `sqlite`.")
@click.option("--no-switch", is_flag=True, help="Copy and verify, and leave your settings as they are.")
@common_options
def migrate(*, to: str, no_switch: bool, chosen: Chosen) -> None:
    """Copy the index into a PostgreSQL database, or back to SQLite.

    Nothing is embedded again. The copy is verified; then `store.url` in your settings file is changed, so that it is
    used from now on. The index copied from is kept. Ctrl-C keeps what is done; the same command continues.
    """
    from notewell import migrate_index
    from notewell.settings.edit import switch_store

    workspace = chosen.folder()
    resolved = chosen.resolved(workspace)
    origin = resolved.origins["store.url"]
    with chosen.memory() as memory, shown_progress() as progress:
        found = migrate_index(memory, to, progress=progress)
    switched, notes = "", [*found.notes]
    if no_switch:
        notes.append("your settings were not changed: set store.url to use the copy")
    elif origin.startswith(("environment", "flag")):
        notes.append(f"store.url is set by {origin}: change it there to use the copy")
    else:
        switched = str(switch_store("" if to == "sqlite" else to))
        notes.append(
            f"{switched} is read in every workspace: those without an index in the new place index their notes"
        )
    notes.append(f"the index in {found.source} is kept")
    what = f"{found.chunks:,} chunks, {found.vectors:,} vectors, none embedded"
    lines = [f"Copied {found.files:,} files to {found.target}: {what} ({found.seconds:.1f} s)"]
    lines += [f"Switched: store.url in {switched}"] if switched else []
    document = {**document_of(found), "settingsFile": switched or None, "notes": notes}
    chosen.print(document, lines, notes=notes)
