"""What an indexing run would cost comes in; consent, a question on the terminal or a refusal goes out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from notewell import CostLimitError
from notewell.agents.rendering import cost_line, dollars

if TYPE_CHECKING:
    from notewell import Memory


def ask_about_cost(memory: Memory, paths: tuple[str, ...] | None, *, force: bool, batch: bool) -> None:
    """Return when embedding costs less than the limit or somebody agrees; raise CostLimitError or Abort otherwise.

    Nothing is looked at where embedding is free or has no known price: most people pay nothing for this.
    """
    price = memory.price
    if price is None or not price.usd_per_million:
        return
    preview = memory.preview(paths=paths, force=force)
    cost, limit = preview.cost, memory.settings.cost.confirm_above_usd
    usd = None if cost is None else cost.batch_usd if batch else cost.usd
    if cost is None or usd is None or usd <= limit:
        return
    line = cost_line(cost, preview.to_embed)
    if sys.stdin.isatty() and sys.stderr.isatty():
        click.echo(line, err=True)
        click.confirm(f"Embed for about {dollars(usd)}?", abort=True, err=True)
        return
    raise CostLimitError(
        f"embedding would cost about {dollars(usd)}, more than cost.confirm_above_usd allows without asking "
        f"({dollars(limit)}): {line}",
        hint="run `notewell index --yes` to agree, or raise cost.confirm_above_usd",
    )
