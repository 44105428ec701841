"""`notewell search`: ask the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from notewell.agents.documents import search_document
from notewell.agents.rendering import search_lines
from notewell.cli.options import Chosen, common_options, search_options
from notewell.cli.output import faint, print_json, print_lines, print_notes, strong

if TYPE_CHECKING:
    from notewell.search.options import SearchOptions


@click.command("search", epilog="Example: notewell search 'who looks after the garden?' --limit 3")
@click.argument("query")
@search_options
@common_options
def command(query: str, *, chosen: Chosen, **options: Unpack[SearchOptions]) -> None:
    """Find the notes that answer QUERY. New notes are indexed first, for a moment."""
    mode = options.get("mode")
    if options.get("keyword_only") and mode not in {None, "keyword"}:
        raise click.UsageError(f"--keyword-only contradicts --mode {mode}: leave one of them out.")
    with chosen.memory() as memory:
        answer = memory.search(query, **options)
    if chosen.as_json:
        print_json(search_document(answer))
    else:
        print_lines(search_lines(answer, strong=strong, faint=faint))
        print_notes(answer.notes)
