"""Opens tokenizer and session of a model when they are needed.

A cold process embeds one question without the `tokenizers` library and onnxruntime, which take longer to start than the
question takes to embed.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from notewell.embedding.local import token_ids
from notewell.embedding.unit_vectors import embed_windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.embedding.local.token_ids import ShortTextTokenizer, Window, WindowTokenizer

    FloatArray = NDArray[np.float32]
    VectorsOfWindows = Callable[[Sequence[Window]], list[FloatArray]]

# Opening a session (0.2 s with the import of onnxruntime) takes as long as this many tokens with NumPy: a process that
# has embedded that much will probably embed more.
MAX_TOKENS_WITHOUT_SESSION = 256


@dataclass(frozen=True, slots=True)
class QuickStart:
    """The parts of a model for short texts in a cold process."""

    open_tokenizer: Callable[[], ShortTextTokenizer]
    vector: Callable[[Window], FloatArray]


class ColdStartModel:
    """Tokenizer and session of a model, and their substitutes until they are needed. Safe for several threads."""

    def __init__(
        self,
        *,
        open_tokenizer: Callable[[], WindowTokenizer],
        open_session: Callable[[], VectorsOfWindows],
        quick_start: QuickStart | None = None,
    ) -> None:
        self._open_tokenizer = open_tokenizer
        self._open_session = open_session
        self._quick_start = quick_start
        self._lock = threading.Lock()
        self._short_tokenizer: ShortTextTokenizer | None = None
        self._tokenizer: WindowTokenizer | None = None
        self._session: VectorsOfWindows | None = None
        self._tokens_without_session = 0

    def vectors(self, texts: Sequence[str]) -> FloatArray:
        """Return one row per text, not yet of unit length."""
        tokenizer = self.tokenizer_for(texts)
        if isinstance(tokenizer, token_ids.WindowTokenizer):
            windows = [tokenizer.windows(text) for text in texts]
        else:
            windows = [[tokenizer.encode(text)] for text in texts]
        return embed_windows(windows, self._vectors_of_windows)

    def full_tokenizer(self) -> WindowTokenizer:
        """Return the tokenizer for any text."""
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer, self._short_tokenizer = self._open_tokenizer(), None
            return self._tokenizer

    def tokenizer_for(self, texts: Sequence[str]) -> ShortTextTokenizer | WindowTokenizer:
        """Return the cheapest tokenizer for these texts."""
        short = self._quick_start is not None and sum(map(len, texts)) <= token_ids.MAX_SHORT_CHARACTERS
        short = short and all(map(token_ids.is_short_and_plain, texts))
        with self._lock:
            if short and self._tokenizer is None and self._quick_start is not None:
                self._short_tokenizer = self._short_tokenizer or self._quick_start.open_tokenizer()
                return self._short_tokenizer
        return self.full_tokenizer()

    def _vectors_of_windows(self, windows: Sequence[Window]) -> list[FloatArray]:
        quick = self._quick_start
        with self._lock:
            if self._session is None:
                self._tokens_without_session += sum(map(len, windows))
                if quick is None or self._tokens_without_session > MAX_TOKENS_WITHOUT_SESSION:
                    self._session = self._open_session()
            session = self._session
        if session is None and quick is not None:
            with one_blas_thread():
                return [quick.vector(window) for window in windows]
        assert session is not None
        return session(windows)


# --- products on one thread ----------------------------------------------------------------------
#
# OpenBLAS spreads each product over all cores, and its threads wait by spinning. That does not pay for a single text:
# on a busy machine, or with several threads that embed, products take ten times the CPU time.

# NumPy's own library renames the functions of OpenBLAS; one of a distribution does not.
_AFFIXES = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))


@dataclass(frozen=True, slots=True)
class _Blas:
    """Gets and sets the number of threads of OpenBLAS, for the whole process."""

    threads: Callable[[], int]
    use_threads: Callable[[int], object]


@dataclass(slots=True)
class _Use:
    """The number of current users of `one_blas_thread`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    before: int = 0  # threads


_use = _Use()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit OpenBLAS to one thread until the last user ends.

    This affects products of the host program, too, so it is for work of milliseconds.
    """
    blas, use = _openblas(), _use
    if blas is None:
        yield
        return
    with use.lock:
        if not use.users:
            use.before = blas.threads()
            blas.use_threads(1)
        use.users += 1
    try:
        yield
    finally:
        with use.lock:
            use.users -= 1
            if not use.users:
                blas.use_threads(use.before)


@cache
def _openblas() -> _Blas | None:
    """Return NumPy's OpenBLAS; None if it uses another library, or one thread anyway."""
    package = Path(np.__file__).parent
    for folder in (package.with_name("numpy.libs"), package / ".dylibs"):
        for file in folder.glob("*openblas*"):
            for before, after in _AFFIXES:
                with suppress(OSError, AttributeError):
                    library = ctypes.CDLL(os.fspath(file))  # loaded already
                    threads = library[f"{before}openblas_get_num_threads{after}"]
                    blas = _Blas(threads, library[f"{before}openblas_set_num_threads{after}"])
                    return blas if blas.threads() > 1 else None
    return None


def _reset_in_child() -> None:
    global _use  # noqa: PLW0603 - the lock may be held by a thread that the child does not have
    if _use.users and (blas := _openblas()):  # they are threads that the child does not have
        blas.use_threads(_use.before)
    _use = _Use()


if hasattr(os, "register_at_fork"):  # no fork on Windows
    os.register_at_fork(after_in_child=_reset_in_child)
