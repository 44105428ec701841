"""A thread with an event loop: coroutines come in from any thread, futures that can be cancelled at once go out.

A thread that waits in a socket cannot be told to stop; a task of an event loop can. So Ctrl-C and a deadline end a call
where it stands.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

POLL_S = 0.25  # on Windows a wait without an end does not see Ctrl-C


class Background:
    """Runs coroutines on a thread of its own, which starts with the first one and ends with `close`."""

    def __init__(self, name: str = "notewell-remote") -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin the work and return its future; cancelling that cancels the work."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self, last: Coroutine[Any, Any, None] | None = None) -> None:
        """Cancel what is under way, do the `last` piece of work and end the thread; a later call starts a new one."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            if last is not None:
                last.close()
            return
        try:
            waited(asyncio.run_coroutine_threadsafe(_finish(last), loop))
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()


def waited(future: Future[T]) -> T:
    """Return the result; whatever interrupts the wait, Ctrl-C above all, cancels the work."""
    try:
        while True:
            try:
                return future.result(timeout=POLL_S)
            except TimeoutError:
                if future.done():
                    raise
    except BaseException:
        future.cancel()
        raise


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _finish(last: Coroutine[Any, Any, None] | None) -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    if last is not None:
        await last
