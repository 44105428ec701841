"""News of appends in, every listener called with them out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from notewell.sessions.model import SessionUpdate

Listener = Callable[[SessionUpdate], None]
_log = logging.getLogger("notewell.sessions")


class Listeners:
    """Those who want to know; safe to use from several threads."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()

    def add(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` from now on; returns how to stop that."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return stop

    def tell(self, update: SessionUpdate) -> None:
        """Call every listener; one that raises is logged, because what it was told of is done."""
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            try:
                listener(update)
            except Exception:  # noqa: BLE001 - whatever a listener does
                _log.exception("a listener failed on session %s", update.session_id)
