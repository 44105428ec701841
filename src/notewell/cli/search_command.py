"""`notewell search`: ask the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from notewell.agents.documents import search_document
from notewell.agents.rendering import search_lines
from notewell.cli.options import Chosen, common_options, listener_options
from notewell.cli.output import faint, print_json, print_lines, print_notes, strong

if TYPE_CHECKING:
    from notewell.search.scoring import Fusion
    from notewell.sources.privacy import Chat
    from notewell.types import SearchMode, SourceName


@click.command("search", epilog="Example: notewell search 'who looks after the garden?' --limit 3")
@click.argument("query")
@click.option("--limit", "-n", type=int, metavar="N", help="At most so many hits.  [default: query.max_results, 6]")
@click.option("--min-score", type=float, metavar="X", help="Leave out hits below it.  [default: query.min_score, 0.35]")
@click.option(
    "--fusion", type=click.Choice(["balanced", "weighted", "rrf"]), help="How to combine semantic and keyword scores."
)
@click.option(
    "--mode", type=click.Choice(["hybrid", "semantic", "keyword"]), help="Search mode.  [default: query.mode, hybrid]"
)
@click.option("--keyword-only", is_flag=True, hidden=True, help="The same as --mode keyword.")
@click.option("--since", metavar="DAY", help="Only notes of that day or later: 2026-03-01, 2026-03, 'last week'.")
@click.option("--until", metavar="DAY", help="Only notes of that day or earlier.")
@click.option("--on", metavar="DAY", help="Only notes of that day, month or week.")
@click.option("--source", type=click.Choice(["all", "memory", "sessions"]), help="Notes or conversations alone.")
@listener_options
@click.option("--rerank", is_flag=True, help="Let the configured reranker look at the best again.")
@click.option("--explain", is_flag=True, help="Show what each score is made of.")
@click.option("--no-sync", is_flag=True, help="Answer from the index as it is, without indexing what is new.")
@common_options
def command(
    query: str,
    *,
    limit: int | None,
    min_score: float | None,
    fusion: Fusion | None,
    mode: SearchMode | None,
    keyword_only: bool,
    since: str | None,
    until: str | None,
    on: str | None,
    source: SourceName | Literal["all"] | None,
    rerank: bool,
    explain: bool,
    no_sync: bool,
    chat: Chat | None,
    session: str | None,
    chosen: Chosen,
) -> None:
    """Find the notes that answer QUERY. New notes are indexed first, for a moment."""
    if keyword_only and mode not in {None, "keyword"}:
        raise click.UsageError(f"--keyword-only contradicts --mode {mode}: leave one of them out.")
    with chosen.memory() as memory:
        answer = memory.search(
            query,
            limit=limit,
            min_score=min_score,
            fusion=fusion,
            mode=mode,
            keyword_only=keyword_only,
            since=since,
            until=until,
            on=on,
            source=source,
            rerank=rerank or None,
            explain=explain,
            sync=False if no_sync else None,
            chat=chat,
            session=session,
        )
    if chosen.as_json:
        print_json(search_document(answer))
    else:
        print_lines(search_lines(answer, strong=strong, faint=faint))
        print_notes(answer.notes)
