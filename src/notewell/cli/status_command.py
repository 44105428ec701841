"""`notewell status`: where the memory is and how it would answer."""

from __future__ import annotations

import click

from notewell.agents.documents import status_document
from notewell.agents.rendering import status_lines
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines, print_notes


@click.command("status", epilog="Example: notewell status --json")
@click.option("--deep", is_flag=True, help="Also try the index, the vectors and the embedder.")
@common_options
def command(*, deep: bool, chosen: Chosen) -> None:
    """Show what is indexed, how fresh it is and which embedder is in use."""
    with chosen.memory() as memory:
        status = memory.status(deep=deep)
    if chosen.as_json:
        print_json(status_document(status))
    else:
        print_lines(status_lines(status))
        print_notes(status.notes)
