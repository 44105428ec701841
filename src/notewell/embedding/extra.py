"""The packages of the extra `local`: a name comes in, the module or an error that says how to install it goes out."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from notewell.errors import EmbedderUnavailableError

INSTALL_HINT = 'run `pip install "notewell[local]"`'
PACKAGES = ("onnxruntime", "tokenizers")


def missing_packages() -> list[str]:
    """Return which of the packages are not installed, without importing any."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def imported(name: str) -> Any:
    """Return the module; importing onnxruntime takes up to 0.2 s of CPU, so it happens when a model first needs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:  # absent, or its shared libraries do not fit this system
        raise EmbedderUnavailableError(
            f"the local model needs {name}, which cannot be imported: {error}", hint=INSTALL_HINT
        ) from error
