"""`notewell remember`: append something to a note."""

from __future__ import annotations

import sys

import click

from notewell.agents.documents import remembered_document
from notewell.agents.rendering import remembered_lines
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines, print_notes


@click.command("remember", epilog='Example: notewell remember "the guest wifi is heron-guest"')
@click.argument("text")
@click.option("--to", metavar="NOTE", help="The note to append to.  [default: today's, memory/YYYY-MM-DD.md]")
@click.option("--by", metavar="NAME", help="Who says so.  [default: the agent]")
@click.option("--source", metavar="WHERE", default="the command line", show_default=True, help="Where it comes from.")
@click.option("--force", is_flag=True, help="Write it even if a note says the same already.")
@common_options
def command(text: str, *, to: str | None, by: str | None, source: str, force: bool, chosen: Chosen) -> None:
    """Append TEXT to a note, with who noted it, when and from where; - reads it from standard input.

    What a note says already is pointed out and not written twice. Secrets are hidden. It is found by the next search.
    """
    if text == "-":
        text = sys.stdin.read()
    with chosen.memory() as memory:
        done = memory.remember(text, to=to, who=by, source=source, force=force)
    if chosen.as_json:
        print_json(remembered_document(done))
        return
    print_lines(remembered_lines(done))
    print_notes(done.notes)
