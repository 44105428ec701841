"""Opens the embedder that runs on this machine: settings come in, a model that has loaded nothing yet goes out."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.embedding.extra import INSTALL_HINT, missing_packages
from recollect.embedding.granite import PACK_FILE, PACKAGE, GraniteEmbedder
from recollect.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from recollect.protocols import Embedder
    from recollect.settings import Settings


def open_local(settings: Settings) -> Embedder:
    """Return the model of `local.model_path`, or the packaged one; the entry point `local` of `recollect.embedders`."""
    absent = missing_packages()
    if absent:
        raise EmbedderUnavailableError(
            f"the local model needs {' and '.join(absent)}, not installed here", hint=INSTALL_HINT
        )
    if not settings.local.model_path:
        return GraniteEmbedder(packaged_model_file())
    path = Path(settings.local.model_path).expanduser()
    if path.suffix.lower() == ".gguf":
        raise EmbedderUnavailableError(
            f"GGUF models are not supported: {path}",
            hint="set local.model_path to a folder with model.onnx and tokenizer.json, or leave it empty",
        )
    from recollect.embedding.onnx_folder import OnnxFolderEmbedder  # the packaged model needs none of it

    return OnnxFolderEmbedder(path)


def packaged_model_file() -> Path:
    """Return where the data-only model package keeps its file, without running code of that package."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / PACK_FILE).is_file():
            return path
    raise EmbedderUnavailableError("the packaged model is not installed", hint=INSTALL_HINT)
