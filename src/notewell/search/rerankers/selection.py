"""Chooses who takes the second look: settings come in, a reranker that has loaded nothing yet goes out."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from notewell.errors import RerankerError

if TYPE_CHECKING:
    from notewell.protocols import Reranker
    from notewell.settings import Settings

ENTRY_POINT_GROUP = "notewell.rerankers"

# As for embedders: looking entry points up costs 55 ms in a cold process, so only names that are not here are.
BUILT_IN: Mapping[str, str] = {
    "cohere": "notewell.search.rerankers.http:open_cohere",
    "jina": "notewell.search.rerankers.http:open_jina",
    "voyage": "notewell.search.rerankers.http:open_voyage",
}


def open_reranker(settings: Settings) -> Reranker:
    """Return the reranker of `query.rerank.provider`; raise RerankerError when there is none or it cannot run."""
    name = settings.query.rerank.provider
    if not name:
        raise RerankerError(
            "no reranker is chosen",
            hint=f"set query.rerank.provider to {', '.join(BUILT_IN)} or the name of a plug-in",
        )
    target = BUILT_IN.get(name) or _plug_ins().get(name)
    if target is None:
        available = ", ".join(sorted({*BUILT_IN, *_plug_ins()}))
        raise RerankerError(
            f"no reranker is called {name!r}; available are: {available}",
            hint="set query.rerank.provider to one of them, or install the plug-in that offers it",
        )
    return _load(name, target)(settings)


def _plug_ins() -> dict[str, str]:
    from importlib.metadata import entry_points  # costs 50 ms: see BUILT_IN

    return {entry.name: entry.value for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _load(name: str, target: str) -> Callable[[Settings], Reranker]:
    module_name, _, function_name = target.partition(":")
    try:
        factory: Callable[[Settings], Reranker] = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise RerankerError(
            f"the reranker {name!r} cannot be loaded from {target}: {error}",
            hint="update or remove the package that offers it",
        ) from error
    return factory
