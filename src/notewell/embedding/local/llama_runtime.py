"""Runs a GGUF model through llama.cpp.

It uses the C interface of llama-cpp-python. The class `Llama` redirects the process's stdout while it loads, although
other threads may be writing to it, and allocates memory for the probability of every word.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from notewell.embedding.local.gguf import INSTALL_HINT, PACKAGE, invalid_file
from notewell.embedding.local.inference import on_all_cores
from notewell.errors import EmbedderError, EmbedderUnavailableError
from notewell.text import valid_unicode

if TYPE_CHECKING:
    from numpy.typing import NDArray

Window = list[int]  # token ids, the model's start and end tokens included

POOLINGS = {"mean": 1, "cls": 2, "last": 3}  # llama.cpp's enum llama_pooling_type
MAX_CONTEXTS = 4  # texts at once; with 2,048 tokens each context takes some hundred MB
_ERROR_LEVELS = {3, 4}  # GGML_LOG_LEVEL_WARN and _ERROR, which say why a file is refused
_KEPT_LINES = 8

_log_lines: deque[str] = deque(maxlen=_KEPT_LINES)
_log_callback: Any = None  # keeps the function alive, of which llama.cpp has only a pointer
_library_lock = threading.Lock()


def llama_library() -> Any:
    """Return llama-cpp-python, without its log output; raise EmbedderUnavailableError when it does not load."""
    global _log_callback  # noqa: PLW0603 - llama.cpp has one logger per process
    with _library_lock:
        try:
            library = importlib.import_module(PACKAGE)
        except Exception as error:  # missing, or a shared library fails: ImportError, OSError, RuntimeError
            raise EmbedderUnavailableError(
                f"GGUF models need llama-cpp-python, which cannot be imported: {error}", hint=INSTALL_HINT
            ) from error
        if _log_callback is None:
            _log_callback = library.llama_log_callback(_keep_log_line)
            library.llama_log_set(_log_callback, ctypes.c_void_p(0))
            library.llama_backend_init()
    return library


def _keep_log_line(level: int, text: bytes | None, _: object) -> None:
    if level in _ERROR_LEVELS and text:
        _log_lines.append(text.decode("utf-8", "replace").strip())


class LlamaRuntime:
    """A loaded model. Safe to call from several threads.

    Each text has one thread, and vectors do not depend on other texts. llama.cpp's own threads wait by spinning: on two
    busy cores, two of them took twelve times as long as one.
    """

    def __init__(self, path: Path, *, pooling: str, max_tokens: int) -> None:
        self._library = llama_library()
        self._path = path
        self._pooling = pooling
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(MAX_CONTEXTS)
        self._idle: list[Any] = []  # contexts not in use
        _log_lines.clear()
        # llama.cpp takes UTF-8 on every platform.
        self._model: Any = self._library.llama_model_load_from_file(
            os.fspath(path).encode("utf-8"), self._library.llama_model_default_params()
        )
        if not self._model:
            raise invalid_file(path, _last_log_line())
        self._vocabulary = self._library.llama_model_get_vocab(self._model)
        self.dimensions: int = self._library.llama_model_n_embd(self._model)
        self._before, self._after = self._frame()

    def windows(self, prefix: str, text: str) -> list[Window]:
        """Return one or more windows with prefix and special tokens; every token of `text` is in exactly one of them.

        A text that fits is tokenized together with its prefix, as in training.
        """
        tokens = self._tokens(prefix + text)
        room = self._max_tokens - len(self._before) - len(self._after)
        first, rest = tokens[:room], tokens[room:]
        bodies = [first]
        if rest:
            repeated = self._tokens(prefix)
            step = max(1, room - len(repeated))
            bodies += [repeated + rest[start : start + step] for start in range(0, len(rest), step)]
        return [self._before + body + self._after or [self._any_token()] for body in bodies]

    def unknown_share(self, text: str) -> float:
        """Return the share of tokens that are not in the vocabulary."""
        tokens = self._tokens(text)
        unknown = self._library.LLAMA_TOKEN_ATTR_UNKNOWN
        with self._in_use():
            count = sum(bool(self._library.llama_vocab_get_attr(self._vocabulary, token) & unknown) for token in tokens)
        return count / len(tokens) if tokens else 0.0

    def vectors(self, windows: Sequence[Window]) -> list[NDArray[np.float32]]:
        """Return one vector per window."""
        return on_all_cores(self._vector, windows)

    def close(self) -> None:
        """Release the model once it is not in use."""
        for _ in range(MAX_CONTEXTS):
            self._slots.acquire()
        try:
            while self._idle:
                self._library.llama_free(self._idle.pop())
            if self._model:
                self._library.llama_model_free(self._model)
                self._model = None
        finally:
            self._slots.release(MAX_CONTEXTS)

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Keep the model loaded: llama.cpp would read freed memory."""
        with self._slots:
            if not self._model:
                raise EmbedderError(f"{self._path} was closed while it was in use", hint="try again")
            yield

    @contextmanager
    def _context(self) -> Iterator[Any]:
        with self._in_use():
            with self._lock:
                context = self._idle.pop() if self._idle else self._new_context()
            try:
                yield context
            finally:
                self._idle.append(context)

    def _new_context(self) -> Any:
        parameters = self._library.llama_context_default_params()
        # Attention that looks both ways needs the whole text in one physical batch.
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = self._max_tokens
        parameters.n_seq_max = 1
        parameters.embeddings = True
        parameters.pooling_type = POOLINGS[self._pooling]
        parameters.n_threads = parameters.n_threads_batch = 1
        context = self._library.llama_init_from_model(self._model, parameters)
        if not context:
            raise invalid_file(self._path, _last_log_line())
        return context

    def _vector(self, window: Window) -> NDArray[np.float32]:
        library = self._library
        with self._context() as context:
            memory = library.llama_get_memory(context)
            if memory:  # of generative models
                library.llama_memory_clear(memory, True)
            batch = library.llama_batch_init(len(window), 0, 1)
            try:
                _fill(batch, window)
                code = library.llama_decode(context, batch)
                pointer = library.llama_get_embeddings_seq(context, 0) if code == 0 else None
                if not pointer:
                    raise EmbedderError(
                        f"{self._path} returned no vector (llama.cpp: code {code}, {_last_log_line()})",
                        hint="use a GGUF file of an embedding model",
                    )
                return np.array(pointer[: self.dimensions], dtype=np.float32)
            finally:
                library.llama_batch_free(batch)

    def _frame(self) -> tuple[Window, Window]:
        """Return the special tokens before and after every text."""
        plain, framed = self._tokens("a"), self._tokens("a", marks=True)
        for before in range(len(framed) - len(plain) + 1):
            if framed[before : before + len(plain)] == plain:
                return framed[:before], framed[before + len(plain) :]
        return [], []

    def _tokens(self, text: str, *, marks: bool = False) -> Window:
        content = valid_unicode(text).encode("utf-8")
        buffer = (ctypes.c_int32 * (len(content) + 4))()  # never more tokens than bytes, two marks and a blank
        with self._in_use():
            # Special tokens spelled out in a note are text.
            count = self._library.llama_tokenize(
                self._vocabulary, content, len(content), buffer, len(buffer), marks, False
            )
            if count < 0:
                buffer = (ctypes.c_int32 * -count)()
                count = self._library.llama_tokenize(
                    self._vocabulary, content, len(content), buffer, len(buffer), marks, False
                )
        return list(buffer[: max(0, count)])

    def _any_token(self) -> int:
        begin: int = self._library.llama_vocab_bos(self._vocabulary)
        return max(begin, 0)


def _fill(batch: Any, window: Window) -> None:
    batch.n_tokens = len(window)
    for position, token in enumerate(window):
        batch.token[position] = token
        batch.pos[position] = position
        batch.n_seq_id[position] = 1
        batch.seq_id[position][0] = 0
        batch.logits[position] = 1


def _last_log_line() -> str:
    return _log_lines[-1] if _log_lines else "llama.cpp gives no reason"
