"""`notewell completion`: completion of commands and options for a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from notewell.cli.output import print_lines


@click.command("completion", epilog='Example: eval "$(notewell completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete notewell's commands; put it into your shell's start-up file."""
    complete = get_completion_class(shell)
    assert complete is not None
    print_lines([complete(ctx.find_root().command, {}, "notewell", "_NOTEWELL_COMPLETE").source()])
