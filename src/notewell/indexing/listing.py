"""Sources and perhaps some paths in, what those sources hold there out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notewell.errors import PathRefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from notewell.protocols import Source
    from notewell.types import Listing, SourceName


def listings_of(sources: Sequence[Source], paths: Collection[str] | None) -> list[Listing]:
    """Return a listing a source; with `paths` only of those that have some of them, and of nothing else.

    Raises PathRefusedError for a path that no source could hold.
    """
    if paths is None:
        return [source.list() for source in sources]
    wanted: dict[SourceName, list[str]] = {source.name: [] for source in sources}
    for path in paths:
        holder = next((source for source in sources if source.may_hold(path)), None)
        if holder is None:
            raise PathRefusedError(path)
        wanted[holder.name].append(path)
    return [source.list(wanted[source.name]) for source in sources if wanted[source.name]]
