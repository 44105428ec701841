"""Opens the embedder that runs on this machine: settings come in, a model that has loaded nothing yet goes out."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.embedding.extra import INSTALL_HINT, missing_packages
from notewell.embedding.granite import MODEL, PACK_FILE, PACKAGE, GraniteEmbedder
from notewell.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from notewell.protocols import Embedder
    from notewell.settings import Settings


def open_local(settings: Settings) -> Embedder:
    """Return the model that the settings name, or the packaged one; the entry point `local` of `notewell.embedders`.

    `local.model_path` is a GGUF file or a folder with an ONNX model; a name such as `hf:owner/repository/file.gguf`
    there or in `model` is a model that was downloaded.
    """
    from notewell.embedding.hub import named_model

    if name := named_model(settings):
        return _open_downloaded(name, settings)
    path = Path(settings.local.model_path).expanduser() if settings.local.model_path else None
    if path is not None and path.suffix.lower() == ".gguf":
        return _open_gguf(path, settings)
    if settings.provider == "local" and settings.model not in {"", MODEL} and path is None:
        raise EmbedderUnavailableError(
            f"no local model is called {settings.model!r}",
            hint="leave model empty for the packaged one, use embeddinggemma-300m, or set local.model_path",
        )
    absent = missing_packages()
    if absent:
        if path is None and (instead := _default_download(settings)):
            return instead
        raise EmbedderUnavailableError(
            f"the local model needs {' and '.join(absent)}, not installed here", hint=INSTALL_HINT
        )
    if path is None:
        return GraniteEmbedder(packaged_model_file())
    from notewell.embedding.onnx_folder import OnnxFolderEmbedder  # the packaged model needs none of it

    return OnnxFolderEmbedder(path)


def _open_gguf(path: Path, settings: Settings) -> Embedder:
    from notewell.embedding.file_facts import FileFacts
    from notewell.embedding.gguf import GgufEmbedder
    from notewell.embedding.hub import models_folder

    return GgufEmbedder(path, FileFacts(models_folder(settings)))


def _open_downloaded(name: str, settings: Settings) -> Embedder:
    from notewell.embedding.hub import hub_file, models_folder

    path = hub_file(name).kept_at(models_folder(settings))
    if not path.is_file():
        raise EmbedderUnavailableError(f"the model {name} is not downloaded yet", hint="run `notewell download`")
    return _open_gguf(path, settings)


def _default_download(settings: Settings) -> Embedder | None:
    """Return the default GGUF model where its package is installed and somebody downloaded it."""
    from notewell.embedding.gguf import PACKAGE as LLAMA
    from notewell.embedding.hub import DEFAULT_MODEL, hub_file, models_folder

    if importlib.util.find_spec(LLAMA) is None:
        return None
    path = hub_file(DEFAULT_MODEL).kept_at(models_folder(settings))
    return _open_gguf(path, settings) if path.is_file() else None


def packaged_model_file() -> Path:
    """Return where the data-only model package keeps its file, without running code of that package."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / PACK_FILE).is_file():
            return path
    raise EmbedderUnavailableError("the packaged model is not installed", hint=INSTALL_HINT)
