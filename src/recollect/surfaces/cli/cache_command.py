"""`recollect cache`: look at the embedding cache, or make it smaller."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from recollect import QueryError, RecollectError
from recollect.surfaces.cli.options import Chosen, common_options
from recollect.surfaces.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.store.sqlite import SqliteEmbeddingCache

_DAYS = re.compile(r"(\d{1,6})\s*d?(?:ays?)?")


@click.group("cache", epilog="Example: recollect cache stats")
def command() -> None:
    """The embedding cache: text that was embedded once is never embedded again."""


@command.command("stats", epilog="Example: recollect cache stats --json")
@common_options
def stats(*, chosen: Chosen) -> None:
    """Show how many vectors the cache holds."""
    with _cache(chosen) as cache:
        found = cache.stats() if cache else None
    entries, size = (found.entries, found.bytes) if found else (0, 0)
    most = found.max_entries if found else 0
    if chosen.as_json:
        print_json({"enabled": found is not None, "entries": entries, "bytes": size, "maxEntries": most})
    else:
        print_lines([f"{entries:,} of {most:,} vectors, {size / 2**20:.1f} MB" if found else "nothing is cached yet"])


@command.command("prune", epilog="Example: recollect cache prune --older-than 30d")
@click.option("--older-than", default="30d", show_default=True, metavar="DAYS", help="Forget vectors unused so long.")
@common_options
def prune(*, older_than: str, chosen: Chosen) -> None:
    """Forget vectors that have not been used for a while."""
    days = _DAYS.fullmatch(older_than.strip())
    if not days:
        raise QueryError(f"--older-than {older_than}: not a number of days", hint="for example --older-than 30d")
    with _cache(chosen) as cache:
        removed = cache.prune(older_than_days=int(days[1])) if cache else 0
    _say_removed(removed, chosen)


@command.command("clear", epilog="Example: recollect cache clear")
@common_options
def clear(*, chosen: Chosen) -> None:
    """Forget every vector; the index keeps its own."""
    with _cache(chosen) as cache:
        removed = cache.clear() if cache else 0
    _say_removed(removed, chosen)


@contextmanager
def _cache(chosen: Chosen) -> Iterator[SqliteEmbeddingCache | None]:
    with chosen.memory() as memory:
        if not memory.settings.cache.enabled:
            raise RecollectError("the cache is turned off", hint="turn it on with cache.enabled = true")
        yield memory.cache


def _say_removed(removed: int, chosen: Chosen) -> None:
    if chosen.as_json:
        print_json({"removed": removed})
    else:
        print_lines([f"{removed:,} vectors forgotten"])
