"""Chooses who embeds: settings come in, an embedder that has loaded nothing yet, or the reason for none, goes out."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from recollect.protocols import Embedder
    from recollect.settings import Settings

ENTRY_POINT_GROUP = "recollect.embedders"

# The same lines as in the package's own entry points. Asking importlib.metadata for them costs 55 ms in a cold process,
# a quarter of a search, so only names that are not here are looked up; a test keeps the two lists equal.
BUILT_IN: Mapping[str, str] = {
    "hashing": "recollect.embedding.hashing:open_hashing",
    "local": "recollect.embedding.local:open_local",
}

_AUTO = "auto"
_NONE = "none"


@dataclass(frozen=True)
class Selection:
    """The embedder in use and why; without one, `hint` is what mends it."""

    embedder: Embedder | None
    reason: str
    hint: str = ""


def select_embedder(settings: Settings) -> Selection:
    """Return the embedder that the settings ask for, or their fallback.

    `auto` takes the local model, and goes without vectors where it cannot run. A provider that was named and cannot run
    raises EmbedderUnavailableError, unless the fallback can.
    """
    if settings.provider == _NONE:
        return Selection(None, "provider is none")
    chosen = "local" if settings.provider == _AUTO else settings.provider
    try:
        embedder = open_provider(chosen, settings)
    except EmbedderUnavailableError as error:
        return _fall_back(settings, chosen, error)
    reason = "the local model is installed" if settings.provider == _AUTO else f"provider is {chosen}"
    return Selection(embedder, reason)


def open_provider(name: str, settings: Settings) -> Embedder:
    """Return the embedder registered as `name`; raise EmbedderUnavailableError if there is none or it cannot run."""
    target = BUILT_IN.get(name) or _plug_ins().get(name)
    if target is None:
        available = ", ".join(sorted({*BUILT_IN, *_plug_ins()}))
        raise EmbedderUnavailableError(
            f"no embedding provider is called {name!r}; available are: {available}",
            hint="set provider to one of them, or install the plug-in that offers it",
        )
    return _load(name, target)(settings)


def _fall_back(settings: Settings, chosen: str, error: EmbedderUnavailableError) -> Selection:
    if settings.fallback not in {_NONE, chosen}:
        try:
            embedder = open_provider(settings.fallback, settings)
        except EmbedderUnavailableError as second:
            error.add_note(f"the fallback {settings.fallback} cannot run either: {second.message}")
        else:
            reason = f"{chosen} cannot run ({error.message}), so the fallback {settings.fallback} does"
            return Selection(embedder, reason, error.hint)
    if settings.provider == _AUTO:
        return Selection(None, error.message, error.hint)
    raise error


def _plug_ins() -> dict[str, str]:
    from importlib.metadata import entry_points  # costs 50 ms: see BUILT_IN

    return {entry.name: entry.value for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _load(name: str, target: str) -> Callable[[Settings], Embedder]:
    module_name, _, function_name = target.partition(":")
    try:
        factory: Callable[[Settings], Embedder] = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise EmbedderUnavailableError(
            f"the embedding provider {name!r} cannot be loaded from {target}: {error}",
            hint="update or remove the package that offers it",
        ) from error
    return factory
