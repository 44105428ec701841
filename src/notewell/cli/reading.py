"""The commands that read the memory: search, get, list, timeline, history and status."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, get_args

import click

from notewell.agents.documents import (
    list_document,
    listed_document,
    note_document,
    search_document,
    status_document,
    timeline_document,
)
from notewell.agents.rendering import history_lines, list_lines, search_lines, status_lines, timeline_lines
from notewell.cli.options import Chosen, common_options, listener_options, path_in, search_options
from notewell.cli.terminal import terminal_look
from notewell.search.options import TIMELINE_LIMIT
from notewell.types import Category

if TYPE_CHECKING:
    from notewell.search.options import SearchOptions
    from notewell.sources.privacy import Chat


@click.command("search", epilog="Example: notewell search 'who looks after the garden?' --limit 3")
@click.argument("words", nargs=-1, required=True, metavar="QUERY...")
@click.option("--short", is_flag=True, help="Print one line per result.")
@search_options
@common_options
def search(words: tuple[str, ...], *, short: bool, chosen: Chosen, **options: Unpack[SearchOptions]) -> None:
    """Search the memory for QUERY. New and changed notes are indexed first.

    QUERY may be several words without quotes.
    """
    query = " ".join(words)
    mode = options.get("mode")
    if options.get("keyword_only") and mode not in {None, "keyword"}:
        raise click.UsageError(f"--keyword-only contradicts --mode {mode}: leave one of them out.")
    with chosen.memory() as memory:
        answer = memory.search(query, **options)
    chosen.print(search_document(answer), search_lines(answer, terminal_look(), short=short), notes=answer.notes)


@click.command(
    "get",
    short_help="Print a memory file, or the lines that a citation names.",
    epilog="Example: notewell get MEMORY.md --from 5 --lines 10",
)
@click.argument("path")
@click.option("--from", "first_line", type=int, default=1, metavar="N", help="First line, counted from 1.")
@click.option("--lines", type=int, metavar="N", help="Number of lines.  [default: 120, at most 12,000 characters]")
@listener_options
@common_options
def get(path: str, *, chosen: Chosen, **options: Any) -> None:
    """Print lines of the memory file PATH, or the lines that a citation such as memory/a.md#L8-L10 names.

    Paths outside the memory are refused.
    """
    with chosen.memory() as memory:
        note = memory.get(path_in(memory, path), **options)
    notes = []
    if not note.line_count:
        notes.append(f"{note.path} {f'ends before line {note.first_line}' if note.first_line > 1 else 'is empty'}")
    if note.truncated and note.next_first_line:
        notes.append(f"there is more: notewell get {note.path} --from {note.next_first_line}")
    chosen.print(note_document(note), [note.text] if note.line_count else [], notes=notes)


@click.command(
    "list",
    short_help="List entries, notes and conversations, the newest first.",
    epilog="Example: notewell list --since 'last week' --by main",
)
@click.option("--since", metavar="DAY", help="Only what is of that day or later: 2026-03-01, 2026-03, 'last week'.")
@click.option("--until", metavar="DAY", help="Only what is of that day or earlier.")
@click.option("--source", type=click.Choice(["all", "memory", "sessions"]), help="Only notes, or only conversations.")
@click.option("--path", metavar="PATH", help="Only this file or folder, or files matching a pattern.")
@click.option("--by", metavar="NAME", help="Only entries of this author.")
@click.option("--category", type=click.Choice(get_args(Category)), help="Only entries of this category.")
@click.option("--limit", "-n", type=int, default=20, show_default=True, metavar="N", help="Maximum number of lines.")
@listener_options
@common_options
def list_(*, chosen: Chosen, **options: Any) -> int:
    """List remembered entries, notes and conversations, the newest first."""
    with chosen.memory() as memory:
        found = memory.list(**options)
    chosen.print(list_document(found), list_lines(found, terminal_look()), problems=found.problems)
    return 1 if found.problems else 0


@click.command(
    "timeline",
    short_help="Show what a search finds by date, the oldest first.",
    epilog="Example: notewell timeline the boiler",
)
@click.argument("words", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "--limit", "-n", type=int, default=TIMELINE_LIMIT, show_default=True, metavar="N", help="Maximum number of lines."
)
@partial(search_options, own="limit")
@common_options
def timeline(words: tuple[str, ...], *, chosen: Chosen, **options: Unpack[SearchOptions]) -> None:
    """Show what a search for TOPIC finds by date, the oldest first. The options are those of `search`."""
    with chosen.memory() as memory:
        answer = memory.timeline(" ".join(words), **options)
    chosen.print(timeline_document(answer), timeline_lines(answer, terminal_look()), notes=answer.notes)


@click.command(
    "history",
    short_help="Show a remembered entry with all that it replaced.",
    epilog="Example: notewell history k3f9a2qx",
)
@click.argument("entry")
@listener_options
@common_options
def history(entry: str, *, chat: Chat | None, session: str | None, chosen: Chosen) -> None:
    """Show the remembered entry ENTRY, an id or a citation, with all that it replaced."""
    with chosen.memory() as memory:
        found = memory.history(entry, chat=chat, session=session)
    chosen.print({"entries": [listed_document(item) for item in found]}, history_lines(found, terminal_look()))


@click.command("status", epilog="Example: notewell status --json")
@click.option("--deep", is_flag=True, help="Also run the checks of `doctor`.")
@common_options
def status(*, deep: bool, chosen: Chosen) -> None:
    """Show the state of the index and the search mode."""
    from notewell.settings.openclaw_import import ignored_settings

    with chosen.memory() as memory:
        found = memory.status(deep=deep)
        found = replace(found, notes=(*found.notes, *ignored_settings(memory.workspace)))
    chosen.print(status_document(found), status_lines(found), notes=found.notes)
