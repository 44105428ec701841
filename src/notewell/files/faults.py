"""Named points where the system could fail us: the name of a step comes in; nothing, or a planted OSError, goes out.

Every step that writes, renames, syncs, opens or reads calls `reach` with its name. In use that is one comparison. A
test plants failures with `failing` and then looks at what is left: that shows how each step behaves on a full or broken
disk, which cannot be had from a real disk at a chosen moment.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POINTS = {  # name -> the step that is about to be done
    "state.make": "make the folder for the index",
    "state.lock": "take the lock of the one writer",
    "pointer.read": "read which index is current",
    "pointer.open": "open the draft of the pointer",
    "pointer.write": "write the draft of the pointer",
    "pointer.fsync": "make the draft outlive a power cut",
    "pointer.rename": "put the draft in place of the pointer",
    "pointer.fsync_folder": "make the switch outlive a power cut",
    "aside.rename": "keep a damaged database under another name",
    "superseded.remove": "delete an index that is no longer used",
    "database.create": "make an empty database file",
    "database.open": "open a database",
    "database.begin": "begin a transaction",
    "database.commit": "commit a transaction",
    "index.list": "list the files of a source",
    "index.read": "read a file of a source",
    "index.put": "store a new or changed document",
    "index.touch": "store that a document is unchanged",
    "index.remove": "take documents out of the index",
    "index.tidy": "tidy the index up after a run",
    "embed.known": "look up vectors that are known",
    "embed.remember": "put new vectors into the cache",
    "embed.store": "put new vectors into the index",
    "rebuild.begin": "begin an index beside the one in use",
    "rebuild.verify": "verify the new index before the switch",
    "rebuild.finish": "mark the new index as complete",
    "session.journal": "note what an append to a session will change",
    "session.write": "append to a session",
    "session.fsync": "make a session's file outlive a power cut",
    "session.rename": "rename a session's file",
    "session.draft.open": "open the draft of a session's file",
    "session.draft.write": "write the draft of a session's file",
    "session.draft.fsync": "make the draft of a session's file outlive a power cut",
    "session.draft.rename": "put the draft in place of a session's file",
    "session.draft.fsync_folder": "make a session's new file outlive a power cut",
    "note.open": "open the draft of a note",
    "note.write": "write the draft of a note",
    "note.fsync": "make the draft of a note outlive a power cut",
    "note.rename": "put the draft in place of the note",
    "note.fsync_folder": "make the new note outlive a power cut",
    "note.remove": "delete a note that is to be forgotten",
    "watch.start": "ask the system to tell of changed files",
}

_planted: Callable[[str], None] | None = None


def reach(point: str) -> None:
    """Say that a step is about to be done; raises OSError if a failure is planted there."""
    if _planted is not None:
        _planted(point)


@contextmanager
def planted(look: Callable[[str], None]) -> Iterator[None]:
    """Let `look` see every point that is reached meanwhile, in every thread; what it raises, the step raises."""
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
    """Let a step fail from its so-manieth call on, so many times or for good; yields a count of the failures."""
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
