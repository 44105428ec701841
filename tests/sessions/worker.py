"""A process that works on a store until it is done or killed: `worker.py FOLDER TASK ...`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from notewell.sessions import ConversationStore


def append(store: ConversationStore, session: str, name: str, count: str) -> None:
    """Append numbered messages, and say each one that is on disk."""
    for number in range(int(count)):
        store.append(session, {"role": "user", "content": f"{name}-{number}"})
        print(number, flush=True)


def everything(store: ConversationStore, session: str, name: str, count: str) -> None:
    """Append, update and compact in turn, and say each step that is done."""
    for number in range(int(count)):
        store.append(session, {"role": "user", "content": f"{name}-{number}"})
        if number % 5 == 4:
            store.update(session, title=f"title {number}")
        if number % 7 == 6:
            store.compact(session, f"summary {number}", keep_last=3)
        print(number, flush=True)


def hold(store: ConversationStore, session: str) -> None:
    """Hold a session's lock until killed."""
    with store._files.locked(session):
        print("held", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    folder, task, *arguments = sys.argv[1:]
    tasks: dict[str, Callable[..., None]] = {"append": append, "everything": everything, "hold": hold}
    tasks[task](ConversationStore(Path(folder), lock_timeout_s=60), *arguments)
