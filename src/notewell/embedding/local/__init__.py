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
    """Return the missing packages of the extra `local`, without importing the others."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def import_package(name: str) -> Any:
    """Import a package when a model first needs it; onnxruntime takes up to 0.2 s."""
    if name == "onnxruntime":
        # Newer wheels (1.31) report their use to Microsoft. Only this variable prevents it: `disable_telemetry_events`
        # comes after an address was looked up and a device id written.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        return importlib.import_module(name)
    except ImportError as error:  # missing, or its shared libraries do not load
        raise EmbedderUnavailableError(
            f"the local model needs {name}, which cannot be imported: {error}", hint=with_unused_key(INSTALL_HINT)
        ) from error


def with_unused_key(hint: str) -> str:
    """Add to a hint that a provider's key is set but not used: a failing model must not send notes elsewhere."""
    from notewell.embedding.providers.apis import providers_with_key

    for provider, variable in providers_with_key():
        why = f"{variable} is set but not used, because a local model is installed and its notes stay here"
        return f'{hint}; {why}; set provider = "{provider}" to use it'
    return hint
