"""Lends the connections of one process to its threads: any number of readers, one writer.

A connection must never be used on both sides of a fork. Idle ones are closed before it, busy ones are left alone in
the child, and the child opens its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet

from notewell.errors import StoreError
from notewell.store.sqlite.connection import Database

_MOST_IDLE = 8  # a connection that was used costs a few MB of page cache; more threads than this open one each


class Opener(Protocol):
    """Opens one more connection to the same file."""

    def __call__(self, *, read_only: bool) -> Database: ...


class _Here:
    """What belongs to one process; a forked child gets a new one."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.write_lock = threading.RLock()
        self.idle: list[Database] = []
        self.writer: Database | None = None


class ConnectionPool:
    """Lends connections to threads, one at a time each."""

    def __init__(self, opener: Opener, first: Database | None = None, *, first_writes: bool = False) -> None:
        self._opener = opener
        self._closed = False
        self._here = _Here()
        if first_writes:
            self._here.writer = first
        elif first is not None:
            self._here.idle.append(first)
        _pools.add(self)

    @contextmanager
    def reader(self) -> Iterator[Database]:
        """Lend a connection that nobody else uses meanwhile."""
        here = self._process()
        with here.lock:
            db = here.idle.pop() if here.idle else None
        if db is None:
            db = self._opener(read_only=True)
        try:
            yield db
        finally:
            self._give_back(here, db)

    @contextmanager
    def writer(self) -> Iterator[Database]:
        """Lend the one connection that writes; other threads wait their turn."""
        here = self._process()
        with here.write_lock:
            if here.writer is None:
                here.writer = self._opener(read_only=False)
            yield here.writer

    def close_idle(self) -> None:
        """Close what nobody uses right now; the next use opens it again."""
        here = self._here
        if here.pid != os.getpid():
            return
        with here.lock:
            unused, here.idle = here.idle, []
        if here.write_lock.acquire(blocking=False):
            try:
                if here.writer is not None:
                    unused.append(here.writer)
                    here.writer = None
            finally:
                here.write_lock.release()
        for db in unused:  # the writer last: it alone may fold the write-ahead log back into the file
            db.close()

    def close(self) -> None:
        """Close for good; connections still lent are closed when they come back."""
        self._closed = True
        self.close_idle()

    def _process(self) -> _Here:
        if self._closed:
            raise StoreError("the store is closed", hint="open the index again")
        if self._here.pid != os.getpid():
            _inherited.append(self._here)
            self._here = _Here()
        return self._here

    def _give_back(self, here: _Here, db: Database) -> None:
        if here.pid != os.getpid():
            return  # forked inside the `with` block: the connection is the parent's
        try:
            db.end_transaction()
        except StoreError:
            db.close()
            raise
        with here.lock:
            keep = not self._closed and len(here.idle) < _MOST_IDLE
            if keep:
                here.idle.append(db)
        if not keep:
            db.close()


_pools: WeakSet[ConnectionPool] = WeakSet()
_inherited: list[_Here] = []  # closing a parent's connection in the child could drop the parent's write-ahead log


def _close_idle_connections() -> None:
    for pool in list(_pools):
        pool.close_idle()


_register: Callable[..., None] | None = getattr(os, "register_at_fork", None)  # no fork, no hook on Windows
if _register is not None:
    _register(before=_close_idle_connections)
