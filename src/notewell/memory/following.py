"""Conversations as part of a memory: settings in, the source of transcripts out; announced appends in, indexing out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import NotewellError, PathRefusedError

if TYPE_CHECKING:
    from notewell.sessions import ConversationStore
    from notewell.settings import Settings
    from notewell.sources.transcripts.source import TranscriptSource

SESSIONS_FOLDER = "sessions"  # in the agent's state folder: the session store's own
MOST_DELAYS = 4  # times the quiet period; a conversation that never pauses is indexed all the same


def open_transcripts(settings: Settings, state_folder: Path) -> TranscriptSource | None:
    """Return the source of transcripts, or None when the settings leave conversations out."""
    if "sessions" not in settings.sources:
        return None
    from notewell.sources.transcripts.source import TranscriptSource

    return TranscriptSource(state_folder / SESSIONS_FOLDER, settings.sessions.paths, redact=_redacted)


def open_conversations(state_folder: Path, on_append: Callable[[Path], None]) -> ConversationStore:
    """Return the agent's session store, which tells of each append."""
    from notewell.sessions import ConversationStore

    store = ConversationStore(state_folder / SESSIONS_FOLDER)
    store.on_update(lambda update: on_append(update.path))
    return store


def _redacted(text: str) -> str:
    from notewell.text.redaction import redact  # its patterns are compiled when the first message is read

    return redact(text).text


def stored_transcript_path(transcripts: TranscriptSource, path: str | Path) -> str:
    """Return the stored path of a transcript given as a file or already so; raises PathRefusedError for others."""
    if isinstance(path, str) and transcripts.may_hold(path):
        return path
    stored = transcripts.stored_path(Path(path))
    if stored is None:
        raise PathRefusedError(str(path))
    return stored


class Follower:
    """Gathers announced paths and hands them over once they have been quiet; its thread lives only while any wait."""

    def __init__(self, index: Callable[[Collection[str]], object], quiet_s: float) -> None:
        self._index = index
        self._quiet_s = quiet_s
        self._changed = threading.Condition()
        self._waiting: dict[str, None] = {}
        self._first_at = self._last_at = 0.0
        self._thread: threading.Thread | None = None
        self._closed = False
        self.trouble = ""  # why the latest attempt failed; empty when it did not

    def announce(self, path: str) -> None:
        """Say that a document has grown."""
        with self._changed:
            if self._closed:
                return
            self._last_at = time.monotonic()
            if not self._waiting:
                self._first_at = self._last_at
            self._waiting[path] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="notewell-follower", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """Stop; what is under way is finished, what still waits is left for the next indexing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while paths := self._next():
            try:
                self._index(paths)
                self.trouble = ""
            except (NotewellError, OSError) as error:
                self.trouble = f"a conversation could not be indexed: {error}"

    def _next(self) -> list[str]:
        """Return the paths once they have been quiet; none when there is nothing more to do."""
        with self._changed:
            while self._waiting and not self._closed:
                due = min(self._last_at + self._quiet_s, self._first_at + MOST_DELAYS * self._quiet_s)
                left = due - time.monotonic()
                if left <= 0:
                    paths, self._waiting = list(self._waiting), {}
                    return paths
                self._changed.wait(left)
            self._thread = None
            return []
