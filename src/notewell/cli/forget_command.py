"""`notewell forget`: delete a conversation, a note, or everything that says something, without a trace."""

from __future__ import annotations

import sys

import click

from notewell import ForgetReport, QueryError
from notewell.agents.documents import forget_document
from notewell.agents.rendering import forget_lines
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines, print_notes


@click.command("forget", epilog="Example: notewell forget --match 'silk gloss' --dry-run")
@click.option("--session", metavar="ID", help="Forget a conversation of the session store.")
@click.option("--path", metavar="NOTE", help="Delete a note or transcript, as `search` names it.")
@click.option("--match", metavar="TEXT", help="Take out every line of a note and every message that says TEXT.")
@click.option("--since", metavar="DAY", help="Only what is of that day or later; undated notes are then left alone.")
@click.option("--dry-run", is_flag=True, help="Show what would go; nothing is changed.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@common_options
def command(
    *,
    session: str | None,
    path: str | None,
    match: str | None,
    since: str | None,
    dry_run: bool,
    yes: bool,
    chosen: Chosen,
) -> int:
    """Delete what should not be remembered: from the files, the index, the embedding cache and their logs.

    It cannot be undone. Copies in git, backups and other programs are not touched.
    """
    with chosen.memory() as memory:
        report = memory.forget(session=session, path=path, match=match, since=since, dry_run=True)
        if not dry_run:
            if report.forgotten:
                _confirm(report, yes=yes)
            report = memory.forget(session=session, path=path, match=match, since=since)
    if chosen.as_json:
        print_json(forget_document(report))
    else:
        print_lines(forget_lines(report))
        print_notes([*report.notes, *(f"{problem.path}: {problem.reason}" for problem in report.problems)])
    return 1 if report.problems else 0


def _confirm(report: ForgetReport, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise QueryError(
            "forgetting cannot be undone, and there is nobody to ask",
            hint="look with --dry-run, then run the same command with --yes",
        )
    print_notes(forget_lines(report))
    click.confirm("Forget this for good?", abort=True, err=True)
