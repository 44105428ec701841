"""`notewell doctor`: check every part and say how to mend what is broken."""

from __future__ import annotations

from contextlib import suppress

import click

from notewell import StoreError
from notewell.agents.documents import checks_document
from notewell.agents.rendering import check_lines
from notewell.cli.cost_question import ask_about_cost
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines

UNUSABLE = 3


@click.command("doctor", epilog="Example: notewell doctor")
@click.option("--fix", is_flag=True, help="First put right what can be: the index is built anew where it is damaged.")
@common_options
def command(*, fix: bool, chosen: Chosen) -> int:
    """Check notes, folder, index, vectors, embedder and cache. Exit 0: all is well; 3: the index is unusable."""
    with chosen.memory() as memory:
        if fix:
            with suppress(StoreError):  # what is damaged cannot be weighed; its vectors come from the cache
                ask_about_cost(memory, None, force=False, batch=False)
        checks = memory.doctor(fix=fix)
    if chosen.as_json:
        print_json(checks_document(checks))
    else:
        green, red = (lambda text: click.style(text, fg="green")), (lambda text: click.style(text, fg="red"))
        print_lines(check_lines(checks, good=green, bad=red))
    if any(check.unusable for check in checks):
        return UNUSABLE
    return 0 if all(check.ok for check in checks) else 1
