"""Embeds on this machine, with the packages of the extra `local` or `gguf`."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any

from notewell.errors import EmbedderUnavailableError

INSTALL_HINT = 'run `pip install "notewell[local]"`'
PACKAGES = ("onnxruntime", "tokenizers")


def missing_packages() -> list[str]:
    """Return which packages of the extra `local` are not installed, without importing them."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def import_package(name: str) -> Any:
    """Return the module; importing onnxruntime takes up to 0.2 s of CPU, so it happens when a model first needs it."""
    if name == "onnxruntime":
        # Newer wheels (1.31 does) report their use to Microsoft. Only the variable prevents that: the
        # function `disable_telemetry_events` comes after an address was looked up and a device id was written.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        return importlib.import_module(name)
    except ImportError as error:  # absent, or its shared libraries do not fit this system
        raise EmbedderUnavailableError(
            f"the local model needs {name}, which cannot be imported: {error}", hint=with_unused_key(INSTALL_HINT)
        ) from error


def with_unused_key(hint: str) -> str:
    """Add to a hint that a provider's key is set and why it is not used: no note leaves because a model fails."""
    from notewell.embedding.providers.apis import providers_with_key

    for provider, variable in providers_with_key():
        why = f"{variable} is set but not used, because a local model is installed and its notes stay here"
        return f'{hint}; {why}; set provider = "{provider}" to use it'
    return hint
