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

_MAX_IDLE = 8  # a connection that was used costs a few MB of page cache; more threads than this open one each


class Opener(Protocol):
    """Opens one more connection to the same file."""

    def __call__(self, *, read_only: bool) -> Database: ...


class _ProcessState:
    """The connections of one process; a forked child gets its own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.write_lock = threading.RLock()
        self.idle: list[Database] = []
        self.writer: Database | None = None


class ConnectionPool:
    """Lends connections to threads, one at a time each."""

    def __init__(self, opener: Opener, first: Database, *, first_writes: bool) -> None:
        self._opener = opener
        self._closed = False
        self._state = _ProcessState()
        if first_writes:
            self._state.writer = first
        else:
            self._state.idle.append(first)
        _pools.add(self)

    @contextmanager
    def reader(self) -> Iterator[Database]:
        """Lend a connection that nobody else uses meanwhile."""
        state = self._current()
        with state.lock:
            db = state.idle.pop() if state.idle else None
        if db is None:
            db = self._opener(read_only=True)
        try:
            yield db
        finally:
            self._return(state, db)

    @contextmanager
    def writer(self) -> Iterator[Database]:
        """Lend the one connection that writes; other threads wait their turn."""
        state = self._current()
        with state.write_lock:
            if state.writer is None:
                state.writer = self._opener(read_only=False)
            yield state.writer

    def close_idle(self) -> None:
        """Close what nobody uses right now; the next use opens it again."""
        state = self._state
        if state.pid != os.getpid():
            return
        with state.lock:
            unused, state.idle = state.idle, []
        if state.write_lock.acquire(blocking=False):
            try:
                if state.writer is not None:
                    unused.append(state.writer)
                    state.writer = None
            finally:
                state.write_lock.release()
        for db in unused:  # the writer last: it alone may fold the write-ahead log back into the file
            db.close()

    def close(self) -> None:
        """Close for good; connections still lent are closed when they come back."""
        self._closed = True
        self.close_idle()

    def _current(self) -> _ProcessState:
        if self._closed:
            raise StoreError("the store is closed", hint="open the index again")
        if self._state.pid != os.getpid():
            _inherited.append(self._state)
            self._state = _ProcessState()
        return self._state

    def _return(self, state: _ProcessState, db: Database) -> None:
        if state.pid != os.getpid():
            return  # forked inside the `with` block: the connection is the parent's
        try:
            db.end_transaction()
        except StoreError:
            db.close()
            raise
        with state.lock:
            keep = not self._closed and len(state.idle) < _MAX_IDLE
            if keep:
                state.idle.append(db)
        if not keep:
            db.close()


_pools: WeakSet[ConnectionPool] = WeakSet()
_inherited: list[_ProcessState] = []  # closing a parent's connection in a child could drop the parent's log


def _close_idle_connections() -> None:
    for pool in list(_pools):
        pool.close_idle()


_register: Callable[..., None] | None = getattr(os, "register_at_fork", None)  # no fork, no hook on Windows
if _register is not None:
    _register(before=_close_idle_connections)
