"""Opens the local model that the settings ask for, and shares one copy of it among the memories of a process.

A model is a packaged one, a folder, a GGUF file, or the name of a file on a hub that was downloaded before.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from notewell.embedding.local import INSTALL_HINT, missing_packages
from notewell.embedding.local.granite import MODEL as GRANITE
from notewell.embedding.local.granite import PACK_FILE, PACKAGE, GraniteEmbedder
from notewell.errors import EmbedderError, EmbedderUnavailableError
from notewell.protocols import MeasuredLanguages

if TYPE_CHECKING:
    from notewell.protocols import Embedder, Matrix, Vector
    from notewell.settings import Settings
    from notewell.types import EmbedderIdentity

MEMORY_MODEL = "notewell-memory"
MEMORY_PACKAGE = "notewell_memory"
PACKAGED_MODELS = (MEMORY_MODEL, GRANITE)  # the first that is installed is the default
INSTALL_MEMORY_MODEL = "pip install ./models/notewell-memory"
REINSTALL_HINT = "run `pip install --force-reinstall --no-deps ./models/notewell-memory` in a checkout of notewell"

SCHEME = "hf:"
DEFAULT_MODEL = "embeddinggemma-300m"
KNOWN_MODELS = {
    DEFAULT_MODEL: "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf",
    # OpenClaw's default, trained to be quantized
    "embeddinggemma-300m-qat-q8_0": "hf:ggml-org/embeddinggemma-300m-qat-q8_0-GGUF/embeddinggemma-300m-qat-Q8_0.gguf",
}
DEFAULT_REVISION = "main"

_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_REFERENCE = rf"hf:({_WORD}/{_WORD})(?:@({_WORD}))?/((?:{_WORD}/)*{_WORD}\.gguf)"


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file in a repository on a hub."""

    repository: str  # "owner/name"
    revision: str
    file: str  # within the repository, "/" between folders

    def path_in(self, folder: Path) -> Path:
        """Return the path of the file in the folder for models."""
        return folder.joinpath(self.repository.replace("/", "--"), self.revision, *self.file.split("/"))

    def __str__(self) -> str:
        revision = "" if self.revision == DEFAULT_REVISION else f"@{self.revision}"
        return f"{SCHEME}{self.repository}{revision}/{self.file}"


def hub_file(name: str) -> HubFile:
    """Return the file for a reference or a known name; raise EmbedderUnavailableError for anything else."""
    found = re.fullmatch(_REFERENCE, KNOWN_MODELS.get(_short(name), name))
    if not found:
        raise EmbedderUnavailableError(
            f"{name!r} is not the name of a model that can be downloaded",
            hint=f"use {' or '.join(KNOWN_MODELS)}, or hf:owner/repository/file.gguf",
        )
    repository, revision, file = found.groups()
    return HubFile(repository, revision or DEFAULT_REVISION, file)


def named_model(settings: Settings) -> str:
    """Return the name of the hub model in the settings; empty when there is none."""
    for name in (settings.local.model_path, settings.model):
        if name.startswith(SCHEME) or _short(name) in KNOWN_MODELS:
            return name
    return ""


def _short(name: str) -> str:
    return name.lower().removesuffix(".gguf")


def models_folder(settings: Settings) -> Path:
    """Return the folder for downloaded models."""
    if settings.local.model_cache_dir:
        return Path(settings.local.model_cache_dir)
    from platformdirs import user_cache_path

    return user_cache_path("notewell", appauthor=False) / "models"


def open_local(settings: Settings) -> SharedEmbedder:
    """Return the model that the settings name, or the packaged one; the entry point `local` of `notewell.embedders`.

    `local.model_path` is a GGUF file or a folder with an ONNX model; a name such as `hf:owner/repository/file.gguf`
    there or in `model` is a downloaded model.
    """
    return SharedEmbedder(_open(settings))


def _open(settings: Settings) -> Embedder:
    if name := named_model(settings):
        downloaded = hub_file(name).path_in(models_folder(settings))
        if not downloaded.is_file():
            raise EmbedderUnavailableError(f"the model {name} is not downloaded yet", hint="run `notewell download`")
        return _open_gguf(downloaded, settings)
    path = Path(settings.local.model_path).expanduser() if settings.local.model_path else None
    if path is not None and path.suffix.lower() == ".gguf":
        return _open_gguf(path, settings)
    if settings.provider == "local" and settings.model not in {"", *PACKAGED_MODELS} and path is None:
        raise EmbedderUnavailableError(
            f"there is no local model named {settings.model!r}",
            hint=f"use {' or '.join(PACKAGED_MODELS)} or embeddinggemma-300m, or set local.model_path",
        )
    if missing := missing_packages():
        if path is None and (instead := _downloaded_default(settings)):
            return instead
        raise EmbedderUnavailableError(
            f"the local model needs {' and '.join(missing)} (not installed)", hint=INSTALL_HINT
        )
    if path is None:
        return _open_packaged(settings.model)
    from notewell.embedding.local.onnx_folder import OnnxFolderEmbedder

    return OnnxFolderEmbedder(path)


def _open_packaged(name: str) -> Embedder:
    """Return the packaged model of that name; without one, the default."""
    folder = memory_model_folder()
    if folder is None and name == MEMORY_MODEL:
        raise EmbedderUnavailableError(f"the model {name} is not installed", hint=REINSTALL_HINT)
    if folder is None or name == GRANITE:
        return GraniteEmbedder(packaged_model_file())
    from notewell.embedding.local.onnx_folder import OnnxFolderEmbedder  # Granite does not need it

    return OnnxFolderEmbedder(folder, reinstall_hint=REINSTALL_HINT)


def default_packaged_model(settings: Settings) -> str:
    """Return the default packaged model; empty when the settings name a model."""
    named = settings.local.model_path or named_model(settings) or settings.model in PACKAGED_MODELS
    if settings.provider not in {"auto", "local"} or named:
        return ""
    return MEMORY_MODEL if memory_model_folder() else GRANITE


def _open_gguf(path: Path, settings: Settings) -> Embedder:
    from notewell.embedding.local.gguf import FileFacts, GgufEmbedder

    return GgufEmbedder(path, FileFacts(models_folder(settings)))


def _downloaded_default(settings: Settings) -> Embedder | None:
    """Return the default GGUF model if its package is installed and the file was downloaded."""
    from notewell.embedding.local.gguf import PACKAGE as LLAMA

    path = hub_file(DEFAULT_MODEL).path_in(models_folder(settings))
    return _open_gguf(path, settings) if importlib.util.find_spec(LLAMA) and path.is_file() else None


def packaged_model_file() -> Path:
    """Return Granite's file in its data-only package; raise EmbedderUnavailableError if it is not installed."""
    if path := _packaged_file(PACKAGE, PACK_FILE):
        return path
    raise EmbedderUnavailableError("the packaged model is not installed", hint=INSTALL_HINT)


def memory_model_folder() -> Path | None:
    """Return the folder of notewell-memory, if it is installed."""
    path = _packaged_file(MEMORY_PACKAGE, "model.onnx")
    return path.parent if path else None


def _packaged_file(package: str, file: str) -> Path | None:
    """Return a file in a package without importing it."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / file).is_file():
            return path
    return None


# --- one copy a process --------------------------------------------------------------------------
#
# Memories with the same embedder share one copy of its model, which is loaded with the first text of any of them, and
# released when the last of them is closed.

# OpenClaw's limits for local models; an ordinary call takes milliseconds, loading a large model up to a minute.
QUERY_LIMIT_S = 300.0
BATCH_LIMIT_S = 600.0
_SIGNAL_CHECK_S = 0.5  # a long wait cannot be interrupted with Ctrl-C on Windows
Result = TypeVar("Result")


class TimeLimit:
    """Runs a model in a thread of its own, as it cannot be interrupted; the next call waits for an overdue one."""

    def __init__(self) -> None:
        self._overdue: threading.Thread | None = None

    def run(self, work: Callable[[], Result], limit_s: float) -> Result:
        """Return what `work` returns, or raise what it raises; raises EmbedderError when it takes too long."""
        begun = time.monotonic()
        overdue = self._overdue
        if overdue is not None:
            overdue.join(limit_s)
            if overdue.is_alive():
                raise _took_too_long(limit_s)
            self._overdue = None
        results: list[Result] = []
        errors: list[BaseException] = []

        def call() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001 - raised in the thread of the caller
                errors.append(error)

        thread = threading.Thread(target=call, name="notewell-embedding", daemon=True)
        thread.start()
        try:
            while thread.is_alive() and time.monotonic() - begun < limit_s:
                thread.join(min(_SIGNAL_CHECK_S, limit_s))
        finally:
            if not (results or errors):
                self._overdue = thread
        if errors:
            raise errors[0]
        if not results:
            raise _took_too_long(limit_s)
        return results[0]


def _took_too_long(limit_s: float) -> EmbedderError:
    return EmbedderError(
        f"the local model did not finish within {limit_s:g} seconds",
        hint="run `notewell index` again; a smaller model is faster",
    )


class _Copy:
    """An embedder that is closed when its last user lets go of it."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.limit = TimeLimit()
        weakref.finalize(self, _release, embedder).atexit = False  # the end of the process releases everything anyway


_lock = threading.RLock()  # reentrant: a garbage collection may release another model
_copies: weakref.WeakValueDictionary[EmbedderIdentity, _Copy] = weakref.WeakValueDictionary()


class SharedEmbedder:
    """An embedder that uses the shared copy of its model from its first text until it is closed.

    A call in progress keeps the copy, even if another thread closes this embedder; a later call loads it again.
    """

    def __init__(self, own: Embedder) -> None:
        self._own = own  # becomes the shared copy if it is the first with its identity
        self._copy: _Copy | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        return self._own.identity

    @property
    def quantization(self) -> Literal["bits", "int8"]:
        return self._own.quantization

    @property
    def cosine_range(self) -> tuple[float, float]:
        copy = self._in_use()
        return copy.embedder.cosine_range

    @property
    def language_weights(self) -> Mapping[str, float]:
        own = self._own  # needs no model
        return own.language_weights if isinstance(own, MeasuredLanguages) else {}

    def knows(self, text: str) -> bool:
        copy = self._in_use()
        return copy.embedder.knows(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        copy = self._in_use()
        return copy.limit.run(lambda: copy.embedder.embed_documents(texts), BATCH_LIMIT_S)

    def embed_query(self, text: str) -> Vector:
        copy = self._in_use()
        return copy.limit.run(lambda: copy.embedder.embed_query(text), QUERY_LIMIT_S)

    def close(self) -> None:
        """Let go of the model, which the last user releases."""
        self._copy = None

    def _in_use(self) -> _Copy:
        """Return the shared copy, which stays in use while the caller has a reference to it."""
        copy = self._copy
        if copy is not None:
            return copy
        identity = self.identity  # not under the lock, because it may hash a whole file
        with _lock:
            copy = _copies.get(identity)
            if copy is None:
                copy = _copies[identity] = _Copy(self._own)
            self._copy = copy
        return copy


def _release(embedder: Embedder) -> None:
    with _lock:
        if all(copy.embedder is not embedder for copy in _copies.values()):  # used again meanwhile
            embedder.close()
            _return_freed_memory()


def _return_freed_memory() -> None:
    """Return freed memory to the operating system; glibc would keep 50 MB and more."""
    import ctypes  # loaded already: NumPy needs it

    with contextlib.suppress(OSError, AttributeError, TypeError):  # only glibc has and needs it
        ctypes.CDLL(None).malloc_trim(0)


def _reset_in_child() -> None:
    global _lock, _copies  # the lock may be held by a thread that the child does not have
    _lock, _copies = threading.RLock(), weakref.WeakValueDictionary()


if hasattr(os, "register_at_fork"):  # no fork on Windows
    os.register_at_fork(after_in_child=_reset_in_child)
