"""`notewell get`: read lines of one note."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from notewell.agents.documents import note_document
from notewell.cli.options import Chosen, common_options, listener_options
from notewell.cli.output import print_json, print_lines, print_notes

if TYPE_CHECKING:
    from notewell.sources.privacy import Chat


@click.command("get", epilog="Example: notewell get MEMORY.md --from 5 --lines 10")
@click.argument("path")
@click.option("--from", "first_line", type=int, default=1, metavar="N", help="First line, counted from 1.")
@click.option("--lines", type=int, metavar="N", help="How many lines.  [default: 120, at most 12,000 characters]")
@listener_options
@common_options
def command(
    path: str, *, first_line: int, lines: int | None, chat: Chat | None, session: str | None, chosen: Chosen
) -> None:
    """Print lines of the memory file PATH, as `search` names it. Paths outside the memory are refused."""
    with chosen.memory() as memory:
        note = memory.get(path, first_line=first_line, lines=lines, chat=chat, session=session)
    if chosen.as_json:
        print_json(note_document(note))
        return
    print_lines([note.text] if note.line_count else [])
    if note.truncated and note.next_first_line:
        print_notes([f"there is more: notewell get {note.path} --from {note.next_first_line}"])
