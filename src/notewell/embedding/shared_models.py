"""Shares local models within a process: memories whose embedders have the same identity use one copy of the model.

A model is loaded for the first text that any of them embeds, and released when the last of them is closed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from notewell.protocols import MeasuredLanguages

if TYPE_CHECKING:
    from notewell.protocols import Embedder, Matrix, Vector
    from notewell.settings import Settings
    from notewell.types import EmbedderIdentity


class _Copy:
    """An embedder that several use; nobody keeps it but them, and it is closed when the last lets go of it."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        weakref.finalize(self, _release, embedder).atexit = False  # the end of the process releases everything anyway


_lock = threading.RLock()  # a garbage collection within it may release another model
_copies: weakref.WeakValueDictionary[EmbedderIdentity, _Copy] = weakref.WeakValueDictionary()


class SharedEmbedder:
    """An embedder that uses the process's copy of its model from its first text until it is closed.

    A call in progress keeps the copy, also while another thread closes this embedder; a later call loads it again.
    """

    def __init__(self, own: Embedder) -> None:
        self._own = own  # knows its identity; it loads a model only if it is the first with that identity
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
        own = self._own  # says it without the model
        return own.language_weights if isinstance(own, MeasuredLanguages) else {}

    def knows(self, text: str) -> bool:
        copy = self._in_use()
        return copy.embedder.knows(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        copy = self._in_use()
        return copy.embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        copy = self._in_use()
        return copy.embedder.embed_query(text)

    def close(self) -> None:
        """Let go of the model; the last that does releases it."""
        self._copy = None

    def _in_use(self) -> _Copy:
        """Return the copy that this embedder uses; it stays in use while the caller keeps it in a variable."""
        copy = self._copy
        if copy is not None:
            return copy
        identity = self.identity  # may read the whole file of a model: not under the lock
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
    """Return what the model held to the operating system; glibc keeps it otherwise, 50 MB and more."""
    import ctypes  # loaded already: NumPy needs it

    with contextlib.suppress(OSError, AttributeError, TypeError):  # other C libraries return memory by themselves
        ctypes.CDLL(None).malloc_trim(0)


def shared_in_process(open_model: Callable[[Settings], Embedder]) -> Callable[[Settings], SharedEmbedder]:
    """Let the embedders that a function opens share their models."""

    @functools.wraps(open_model)
    def open_shared(settings: Settings) -> SharedEmbedder:
        return SharedEmbedder(open_model(settings))

    return open_shared


def _reset_in_child() -> None:
    global _lock, _copies  # the lock may be held by a thread that the child does not have
    _lock, _copies = threading.RLock(), weakref.WeakValueDictionary()


if hasattr(os, "register_at_fork"):  # no fork on Windows
    os.register_at_fork(after_in_child=_reset_in_child)
