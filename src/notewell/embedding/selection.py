"""Chooses who embeds: settings come in, an embedder that has loaded nothing yet, or the reason for none, goes out."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from notewell.embedding.hub import named_model
from notewell.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from notewell.protocols import Embedder
    from notewell.settings import Settings

ENTRY_POINT_GROUP = "notewell.embedders"

# The same lines as in the package's own entry points. Asking importlib.metadata for them costs 55 ms in a cold process,
# a quarter of a search, so only names that are not here are looked up; a test keeps the two lists equal.
BUILT_IN: Mapping[str, str] = {
    "gemini": "notewell.embedding.providers.gemini:open_gemini",
    "hashing": "notewell.embedding.hashing:open_hashing",
    "local": "notewell.embedding.local:open_local",
    "mistral": "notewell.embedding.providers.mistral:open_mistral",
    "ollama": "notewell.embedding.providers.ollama:open_ollama",
    "openai": "notewell.embedding.providers.openai:open_openai",
    "voyage": "notewell.embedding.providers.voyage:open_voyage",
}
BY_KEY: Mapping[str, tuple[str, ...]] = {  # what `auto` looks for after the local model, in this order
    "openai": ("OPENAI_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "voyage": ("VOYAGE_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
}

_AUTO = "auto"
_NONE = "none"


@dataclass(frozen=True)
class Selection:
    """The embedder in use and why; without one, or with the fallback, `hint` is what mends it."""

    embedder: Embedder | None
    reason: str
    hint: str = ""
    fell_back: bool = False  # the embedder is the fallback, `reason` says why

    @property
    def warning(self) -> str:
        """What every answer should say about it; empty when the embedder is the one asked for."""
        if self.embedder is not None and not self.fell_back:
            return ""
        mode = "" if self.embedder else "keyword search only: "
        return f"{mode}{self.reason}" + (f"; {self.hint}" if self.hint else "")


def select_embedder(settings: Settings) -> Selection:
    """Return the embedder that the settings ask for, or their fallback.

    `auto` takes the local model, else the first remote provider whose key is in the environment, and goes without
    vectors where there is neither. A provider that was named and cannot run raises EmbedderUnavailableError, unless
    the fallback can.
    """
    if settings.provider == _NONE:
        return Selection(None, "provider is none")
    if settings.provider == _AUTO:
        return _first_of_all(settings)
    try:
        embedder = open_provider(settings.provider, settings)
    except EmbedderUnavailableError as error:
        return _fall_back(settings, settings.provider, error)
    return Selection(embedder, f"provider is {settings.provider}")


def select_fallback(settings: Settings, failed: str, reason: str) -> Selection | None:
    """Return the fallback in place of a provider that failed while it was used; None when there is none that runs."""
    if settings.fallback in {_NONE, failed}:
        return None
    try:
        embedder = open_provider(settings.fallback, for_provider(settings, settings.fallback))
    except EmbedderUnavailableError:
        return None
    return Selection(embedder, fallback_reason(settings, failed, reason), fell_back=True)


def fallback_reason(settings: Settings, failed: str, reason: str) -> str:
    """Return why the fallback embeds, in words."""
    return f"{failed} cannot run ({reason}), so the fallback {settings.fallback} does"


def for_provider(settings: Settings, provider: str) -> Settings:
    """Return the settings under which another provider than the named one is opened.

    Model, address, key and headers are the named provider's: nobody else gets to see them.
    """
    if provider == settings.provider:
        return settings
    remote = replace(settings.remote, base_url="", api_key="", headers={}, dimensions=0)
    return replace(settings, provider=provider, model="", remote=remote)


def _first_of_all(settings: Settings) -> Selection:
    try:
        return Selection(open_provider("local", settings), "the local model is installed")
    except EmbedderUnavailableError as error:
        local_error = error
    if settings.local.model_path or named_model(settings):  # who chose a model for this machine wants the notes to stay
        return _fall_back(settings, "local", local_error)
    problems = []
    for name, variables in BY_KEY.items():
        variable = next((variable for variable in variables if os.environ.get(variable, "").strip()), None)
        if variable is None:
            continue
        # The model of the settings is meant for whoever is chosen; address and key could be anybody's.
        wanted = replace(for_provider(settings, name), model=settings.model)
        try:
            return Selection(open_provider(name, wanted), f"the local model cannot run, and {variable} is set")
        except EmbedderUnavailableError as error:
            problems.append(f"{variable} is set, but {error.message}; {error.hint}")
    if problems:
        local_error.hint = f"{local_error.hint}; {problems[0]}"
    return _fall_back(settings, "local", local_error)


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
            embedder = open_provider(settings.fallback, for_provider(settings, settings.fallback))
        except EmbedderUnavailableError as second:
            error.add_note(f"the fallback {settings.fallback} cannot run either: {second.message}")
        else:
            return Selection(embedder, fallback_reason(settings, chosen, error.message), error.hint, fell_back=True)
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
