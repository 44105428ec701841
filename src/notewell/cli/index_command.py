"""`notewell index`: bring the index up to date with the notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from notewell.agents.documents import preview_document, report_document
from notewell.agents.rendering import preview_lines, report_lines
from notewell.cli.cost_question import ask_about_cost
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines, print_notes
from notewell.cli.progress import shown_progress

if TYPE_CHECKING:
    from notewell import Memory


@click.command("index", epilog="Example: notewell index --dry-run")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--force", is_flag=True, help="Build the index anew, beside the one in use.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done, and what embedding would cost.")
@click.option("--yes", "-y", is_flag=True, help="Embed at any cost, without asking.")
@click.option("--batch/--no-batch", default=None, help="Embed through the provider's batch jobs: cheaper, but slower.")
@click.option("--no-wait", is_flag=True, help="Do not wait for batch jobs; a later run fetches their vectors.")
@common_options
def command(
    paths: tuple[str, ...],
    *,
    force: bool,
    dry_run: bool,
    yes: bool,
    batch: bool | None,
    no_wait: bool,
    chosen: Chosen,
) -> int:
    """Index what is new or changed. Keyword search works at once; Ctrl-C keeps what is done.

    With PATHs, such as memory/2026-11-15.md, only those notes are looked at.
    """
    with chosen.memory() as memory:
        if dry_run:
            return _preview(memory, paths or None, force=force, as_json=chosen.as_json)
        if not yes:
            by_batch = memory.settings.remote.batch.enabled if batch is None else batch
            ask_about_cost(memory, paths or None, force=force, batch=by_batch)
        return _index(memory, chosen, paths or None, force=force, batch=batch, wait=False if no_wait else None)


def _preview(memory: Memory, paths: tuple[str, ...] | None, *, force: bool, as_json: bool) -> int:
    preview = memory.preview(paths=paths, force=force)
    if as_json:
        print_json(preview_document(preview))
    else:
        print_lines(preview_lines(preview))
        print_notes(f"{problem.path}: {problem.reason}" for problem in preview.problems)
    return 0


def _index(
    memory: Memory,
    chosen: Chosen,
    paths: tuple[str, ...] | None,
    *,
    force: bool,
    batch: bool | None,
    wait: bool | None,
) -> int:
    with shown_progress() as progress:
        report = memory.index(paths=paths, force=force, batch=batch, wait=wait, progress=progress)
    if chosen.as_json:
        print_json(report_document(report))
    else:
        print_lines(report_lines(report))
    print_notes(report.notes)
    print_notes(f"{problem.path or 'a chunk'}: {problem.reason}" for problem in report.problems)
    return 0 if report.complete else 1
