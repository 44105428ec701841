"""Embeds on this machine, with the packages of the extra `local` or `gguf`."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from notewell.errors import EmbedderUnavailableError

INSTALL_HINT = 'run `pip install "notewell[local]"`'
PACKAGES = ("onnxruntime", "tokenizers")


def missing_packages() -> list[str]:
    """Return which packages of the extra `local` are not installed, without importing them."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def import_package(name: str) -> Any:
    """Return the module; importing onnxruntime takes up to 0.2 s of CPU, so it happens when a model first needs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:  # absent, or its shared libraries do not fit this system
        raise EmbedderUnavailableError(
            f"the local model needs {name}, which cannot be imported: {error}", hint=INSTALL_HINT
        ) from error
