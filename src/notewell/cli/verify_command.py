"""`notewell verify`: hold the index against the notes and against a fresh index of them."""

from __future__ import annotations

import click

from notewell.agents.documents import verification_document
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines, print_notes


@click.command("verify", epilog="Example: notewell verify")
@common_options
def command(*, chosen: Chosen) -> int:
    """Compare the index with the notes and with a fresh index built in memory. Exit 0 only when they are equal."""
    with chosen.memory() as memory:
        found = memory.verify()
    if chosen.as_json:
        print_json(verification_document(found))
    elif found.equal:
        print_lines([f"equal: {found.files:,} notes, {found.chunks:,} chunks"])
    else:
        print_lines(found.findings)
        print_notes(["`notewell index` takes in what changed; `notewell doctor --fix` puts the rest right"])
    return 0 if found.equal else 1
