"""Names the steps that can fail on a full or broken disk, so that tests can make them fail.

A step calls `reach` with its name, which costs one comparison in production. A test plants failures with `failing`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Of one file that is replaced in one step, each below a name of its own.
STEPS = {
    "open": "open the draft of",
    "write": "write the draft of",
    "fsync": "sync the draft of",
    "rename": "put the draft in place of",
    "fsync_folder": "sync the folder of",
}
_REPLACED = {
    "pointer": "the pointer",
    "session.draft": "a session's file",
    "note": "a note",
    "trash": "a file in the trash",
}
POINTS = {  # name -> step
    "state.make": "create the folder for the index",
    "state.lock": "acquire the write lock",
    "pointer.read": "read which index is current",
    "aside.rename": "rename a corrupt database",
    "superseded.remove": "delete an index that is no longer used",
    "database.create": "create an empty database file",
    "database.open": "open a database",
    "database.begin": "begin a transaction",
    "database.commit": "commit a transaction",
    "index.list": "list the files of a source",
    "index.read": "read a file of a source",
    "index.put": "store a new or changed document",
    "index.touch": "update the stamp of an unchanged document",
    "index.remove": "remove documents from the index",
    "index.tidy": "optimize the index after a run",
    "embed.known": "look up known vectors",
    "embed.remember": "put new vectors into the cache",
    "embed.store": "put new vectors into the index",
    "rebuild.begin": "begin a new index",
    "rebuild.verify": "verify the new index before the switch",
    "rebuild.finish": "mark the new index as complete",
    "session.journal": "write the journal of an append",
    "session.write": "append to a session",
    "session.fsync": "sync a session's file",
    "session.rename": "rename a session's file",
    "note.remove": "delete a note",
    "watch.start": "start watching files",
    **{f"{name}.{step}": f"{does} {what}" for name, what in _REPLACED.items() for step, does in STEPS.items()},
}

_planted: Callable[[str], None] | None = None


def reach(point: str) -> None:
    """Announce a step; raise OSError if a failure is planted there."""
    if _planted is not None:
        _planted(point)


@contextmanager
def planted(look: Callable[[str], None]) -> Iterator[None]:
    """Call `look` with every point that is reached, in every thread; what it raises, the step raises."""
    global _planted  # noqa: PLW0603 - one seam for the whole process, as there is one disk
    before, _planted = _planted, look
    try:
        yield
    finally:
        _planted = before


@contextmanager
def failing(
    point: str, error_number: int, *, on_call: int = 1, times: int | None = None
) -> Iterator[Callable[[], int]]:
    """Make a step fail from call `on_call` on, `times` times or forever; yield a function that counts the failures."""
    if point not in POINTS:
        raise ValueError(f"no fault point is called {point!r}")
    lock = threading.Lock()
    calls = failures = 0

    def look(reached: str) -> None:
        nonlocal calls, failures
        if reached != point:
            return
        with lock:
            calls += 1
            due = calls >= on_call and (times is None or failures < times)
            failures += due
        if due:
            raise OSError(error_number, os.strerror(error_number))

    with planted(look):
        yield lambda: failures
