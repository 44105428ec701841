"""`notewell prompt`: the section of a system prompt that tells an agent about this memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from notewell.agents.tools.prompt import memory_prompt
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from notewell.agents.tools.prompt import Citations, PromptMode
    from notewell.sources.privacy import Chat


@click.command("prompt", epilog="Example: notewell prompt --chat group")
@click.option("--mode", type=click.Choice(["full", "minimal"]), default="full", help="`minimal` prints nothing.")
@click.option("--citations", type=click.Choice(["auto", "on", "off"]), help="Let the agent cite files and lines.")
@click.option("--chat", type=click.Choice(["direct", "group"]), default="direct", help="Who listens to the agent.")
@common_options
def command(*, mode: PromptMode, citations: Citations | None, chat: Chat, chosen: Chosen) -> None:
    """Print what to add to a system prompt: when to search this memory, how to cite, what to do when unsure."""
    with chosen.memory() as memory:
        section = memory_prompt(memory, mode=mode, citations=citations, chat=chat)
    if chosen.as_json:
        print_json({"mode": mode, "prompt": section})
    else:
        print_lines([section] if section else [])
