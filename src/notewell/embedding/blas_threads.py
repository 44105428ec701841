"""Lets NumPy multiply on the thread that asks for it.

OpenBLAS spreads each product over all cores, and its threads wait for one another by spinning. One text is too small
for that: on a busy machine, or with several threads that embed, products take ten times the processor time.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

# NumPy's own library renames the functions of OpenBLAS; one of a distribution does not.
_AFFIXES = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))


@dataclass(frozen=True, slots=True)
class _Blas:
    """How many threads OpenBLAS uses for a product, for the whole process."""

    threads: Callable[[], int]
    use_threads: Callable[[int], object]


@dataclass(slots=True)
class _Use:
    """Who wants one thread at the moment, in this process."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    before: int = 0  # threads


_use = _Use()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep OpenBLAS from spreading products over cores; when the last of those who asked for it ends, all is as before.

    Meanwhile that holds for products of the host program, too: it is for work of milliseconds.
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
    """Return the library that NumPy multiplies with; None if that is another one, or uses one thread anyway."""
    import numpy as np

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
