"""`notewell cache`: look at the embedding cache, or make it smaller."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from notewell import NotewellError, QueryError
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notewell.agents.documents import Json
    from notewell.store.sqlite import CacheStats, SqliteEmbeddingCache

_DAYS = re.compile(r"(\d{1,6})\s*d?(?:ays?)?")


@click.group("cache", epilog="Example: notewell cache stats")
def command() -> None:
    """The embedding cache: text that was embedded once is never embedded again."""


@command.command("stats", epilog="Example: notewell cache stats --json")
@common_options
def stats(*, chosen: Chosen) -> None:
    """Show how many vectors the cache holds, and how many did not have to be made again."""
    with _cache(chosen) as cache:
        found = cache.stats() if cache else None
    if chosen.as_json:
        print_json(_stats_document(found))
    else:
        print_lines(_stats_lines(found))


def _stats_document(found: CacheStats | None) -> Json:
    return {
        "enabled": found is not None,
        "entries": found.entries if found else 0,
        "bytes": found.bytes if found else 0,
        "maxEntries": found.max_entries if found else 0,
        "hits": found.hits if found else 0,
        "misses": found.misses if found else 0,
        "hitRate": found.hit_rate if found else None,
        "oldestUse": found.oldest_use.isoformat() if found and found.oldest_use else None,
    }


def _stats_lines(found: CacheStats | None) -> Iterator[str]:
    if found is None:
        yield "nothing is cached yet"
        return
    yield f"{found.entries:,} of {found.max_entries:,} vectors, {found.bytes / 2**20:.1f} MB"
    if found.hit_rate is not None:
        yield f"hit rate {found.hit_rate:.0%}: {found.hits:,} vectors from the cache, {found.misses:,} made"


@command.command("prune", epilog="Example: notewell cache prune --older-than 30d")
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


@command.command("clear", epilog="Example: notewell cache clear")
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
            raise NotewellError("the cache is turned off", hint="turn it on with cache.enabled = true")
        yield memory.cache


def _say_removed(removed: int, chosen: Chosen) -> None:
    if chosen.as_json:
        print_json({"removed": removed})
    else:
        print_lines([f"{removed:,} vectors forgotten"])
