"""Implements OpenClaw's memory interface on a `Memory`, with cached managers and a fallback between two of them."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from notewell.agents.documents import hit_document, status_document
from notewell.errors import NotewellError, QueryError
from notewell.memory.shared import shared_memory
from notewell.settings import Settings
from notewell.settings.arguments import checked_call, checked_calls
from notewell.types import Citation, hash_text

if TYPE_CHECKING:
    from notewell.memory.memory import Memory
    from notewell.reports import Status
    from notewell.sources.privacy import Chat
    from notewell.types import IndexReport, Progress

Json = dict[str, Any]
_P = ParamSpec("_P")
_T = TypeVar("_T")
_log = logging.getLogger("notewell.openclaw")

DEFAULT_AGENT = "main"


class MemorySearchManager(Protocol):
    """OpenClaw's interface of a memory backend."""

    @property
    def backend(self) -> str:
        """The backend's name: `builtin` or `qmd`."""
        ...

    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        session_key: str | None = None,
    ) -> list[Json]: ...

    def read_file(
        self, rel_path: str, *, from_line: int = 1, lines: int | None = None, session_key: str | None = None
    ) -> Json: ...

    def status(self) -> Json: ...

    def sync(
        self, *, reason: str = "manual", force: bool = False, progress: Callable[[Json], None] | None = None
    ) -> object: ...

    def probe_embedding_availability(self) -> Json: ...

    def probe_vector_availability(self) -> bool: ...

    def close(self) -> None: ...


_LABELS: Mapping[str, str] = {
    "read": "Reading memory files",
    "embed": "Embedding chunks",
    "jobs": "Waiting for batch jobs",
    "download": "Downloading the model",
}


@checked_calls(QueryError)
class MemoryIndexManager:
    """A `Memory` behind OpenClaw's interface, with the backend that its settings choose."""

    def __init__(self, memory: Memory, *, on_close: Callable[[], object] | None = None) -> None:
        self.memory = memory
        self._on_close = on_close
        self._warmed: set[str] = set()  # sessions that have searched before
        self._last_search: Json = {}
        self._last_sync: Json = {}

    @property
    def backend(self) -> str:
        """The backend that the settings choose: `builtin` or `qmd`."""
        return self.memory.settings.backend

    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        session_key: str | None = None,
    ) -> list[Json]:
        """Return the best results, best first, as `path, startLine, endLine, score, snippet, source, citation`.

        The key of a group or channel limits results to what that group may see. The first search of a session also
        starts a background sync. `status()["custom"]["lastSearch"]` describes how the search was done.
        """
        chat, session = self._audience(session_key)
        if session_key is not None and session_key not in self._warmed:
            self._warmed.add(session_key)
            self.memory.begin_session()
        answer = self.memory.search(query, limit=max_results, min_score=min_score, chat=chat, session=session)
        self._last_search = {"mode": answer.mode, "notes": list(answer.notes)}
        return [{name: hit_document(hit)[name] for name in _RESULT} for hit in answer.hits]

    def read_file(
        self, rel_path: str, *, from_line: int = 1, lines: int | None = None, session_key: str | None = None
    ) -> Json:
        """Return `text` and `path` of a memory file, or of some of its lines; paths outside the memory are refused.

        `truncated` is added, and true, if a single line is longer than `Memory.get` returns.
        """
        chat, session = self._audience(session_key)
        cited = Citation.parse(rel_path)
        get = partial(self.memory.get, cited.path, chat=chat, session=session)
        pieces: list[str] = []
        (line, left), cut = cited.lines_to_read(from_line, lines), False
        while True:
            page = get(first_line=line, lines=left)
            pieces.append(page.text)
            if page.line_count == 1 and page.truncated:  # the line was cut, or only what follows it
                cut |= get(first_line=line, lines=1).truncated
            left = None if left is None else left - page.line_count
            if page.next_first_line is None or left == 0:
                break
            line = page.next_first_line
        return {"text": "\n".join(pieces), "path": page.path} | ({"truncated": True} if cut else {})

    def sync(
        self, *, reason: str = "manual", force: bool = False, progress: Callable[[Json], None] | None = None
    ) -> IndexReport:
        """Bring the index up to date; `force` rebuilds it. `progress` is called with `completed, total, label`.

        `reason` is for the log and `status()["custom"]["lastSync"]`. Files that could not be read are in the report's
        `problems`.
        """

        def told(step: Progress) -> None:
            if progress is not None:
                progress({"completed": step.done, "total": step.total, "label": _LABELS[step.stage]})

        report = self.memory.index(force=force, progress=told)
        self._last_sync = {
            "reason": reason,
            "force": force,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "complete": report.complete,
            "problems": [f"{problem.path}: {problem.reason}" for problem in report.problems],
        }
        _log.info("sync (%s): %d added, %d changed, %d removed", reason, report.added, report.changed, report.removed)
        return report

    def status(self) -> Json:
        """Return OpenClaw's `MemoryProviderStatus` without empty optional fields."""
        document = _provider_status(self.memory.status())
        custom = {"agent": self.memory.agent, "lastSearch": self._last_search, "lastSync": self._last_sync}
        return document | {"custom": {name: value for name, value in custom.items() if value}}

    def probe_embedding_availability(self) -> Json:
        """Embed one word, also with a remote provider; return `ok`, and the `error` on failure."""
        check = next(check for check in self.memory.doctor() if check.name == "embedder")
        if check.ok and self.memory.status().embedder is not None:
            return {"ok": True}
        return {"ok": False, "error": "; ".join(filter(None, (check.detail, check.hint)))}

    def probe_vector_availability(self) -> bool:
        """Return whether vectors can be searched; before the first sync, whether they are enabled."""
        if not self.memory.settings.store.vector.enabled:
            return False
        return all(check.ok or not (check.unusable or check.name == "nearest") for check in self.memory.doctor())

    def close(self) -> None:
        """Close the memory; `get_memory_search_manager` then creates a new manager."""
        if self._on_close is not None:
            self._on_close()
        self.memory.close()

    def _audience(self, session_key: str | None) -> tuple[Chat | None, str | None]:
        """Return the chat and the session of a key; None to use the memory's own."""
        if session_key is None:
            return None, None
        named = _agent_part(session_key)
        if named is not None and named != self.memory.agent:
            raise QueryError(
                f"the session {session_key!r} belongs to the agent {named!r}, this memory to {self.memory.agent!r}",
                hint="get that agent's manager: get_memory_search_manager(settings, session_key=session_key)",
            )
        group = _group_part(session_key)
        if group is None or self.memory.audience.is_group:  # a memory opened for a group stays limited to it
            return None, None
        from notewell.sources.transcripts import id_of_group, is_session_name

        return "group", group if is_session_name(group) else id_of_group(group) if group else None


_RESULT = ("path", "startLine", "endLine", "score", "snippet", "source", "citation")
_STATUS = {
    *("backend", "provider", "model", "requestedProvider", "files", "chunks", "dirty", "workspaceDir", "dbPath"),
    *("extraPaths", "sources", "sourceCounts", "cache", "fts", "vector", "batch", "fallback"),
}


def _provider_status(status: Status) -> Json:
    document = {name: value for name, value in status_document(status).items() if name in _STATUS}
    del document["cache"]["bytes"], document["vector"]["driver"]
    for name in ("fts", "vector", "batch"):
        document[name] = _without_blanks(document[name])
    return _without_blanks(document)


def _without_blanks(document: Json) -> Json:
    return {name: value for name, value in document.items() if value is not None and value != ""}


def _answered_by_either(
    method: Callable[Concatenate[Any, _P], _T],
) -> Callable[Concatenate[FallbackMemoryManager, _P], _T]:
    """Return a method of the interface that asks the primary manager, or else the fallback."""

    @wraps(method)
    def asked(self: FallbackMemoryManager, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self._ask(lambda each: getattr(each, method.__name__)(*args, **kwargs))  # type: ignore[no-any-return]

    return asked


class FallbackMemoryManager:
    """Two managers as one: the primary answers until it fails, then the fallback answers that call and the next ones.

    The primary is tried again after `pause_s`, which doubles with each failure. A call that fails in both is the
    caller's mistake and does not count against the primary.
    """

    def __init__(
        self,
        primary: MemorySearchManager,
        fallback: MemorySearchManager,
        *,
        pause_s: float = 30.0,
        longest_pause_s: float = 600.0,
    ) -> None:
        self.primary = primary
        self.fallback = fallback
        self._pause_s = pause_s
        self._longest_pause_s = longest_pause_s
        self._lock = threading.Lock()
        self._failures = 0  # of the primary, in a row
        self._reason = ""
        self._retry_at = 0.0  # of time.monotonic()

    search = _answered_by_either(MemorySearchManager.search)
    read_file = _answered_by_either(MemorySearchManager.read_file)
    sync = _answered_by_either(MemorySearchManager.sync)
    probe_embedding_availability = _answered_by_either(MemorySearchManager.probe_embedding_availability)
    probe_vector_availability = _answered_by_either(MemorySearchManager.probe_vector_availability)

    @property
    def backend(self) -> str:
        """The backend that answers now."""
        return (self.fallback if self._failures else self.primary).backend

    def status(self) -> Json:
        """Return the status of the backend that answers; with `fallback {from, reason}` if it is the second one."""
        status = self._ask(lambda manager: manager.status())
        with self._lock:
            failed, reason = self._failures > 0, self._reason
        return status | {"fallback": {"from": self.primary.backend, "reason": reason}} if failed else status

    def close(self) -> None:
        try:
            self.primary.close()
        finally:
            self.fallback.close()

    def _ask(self, call: Callable[[MemorySearchManager], _T]) -> _T:
        known_failures = self._failures_if_due()
        if known_failures is None:
            return call(self.fallback)
        try:
            answer = call(self.primary)
        except Exception as error:  # noqa: BLE001 - the other backend answers
            answer = call(self.fallback)  # raises if this fails, too, with the first error as context
            self._failed(error, known_failures)
            return answer
        with self._lock:
            self._failures = 0
        return answer

    def _failures_if_due(self) -> int | None:
        """Return the primary's failures in a row if it should be asked now; else None."""
        with self._lock:
            if self._failures:
                if time.monotonic() < self._retry_at:
                    return None
                self._retry_at = time.monotonic() + self._pause()  # only one caller tries
            return self._failures

    def _failed(self, error: Exception, known_failures: int) -> None:
        with self._lock:
            if self._failures != known_failures:  # concurrent failures count once
                return
            self._failures += 1
            self._reason = error.message if isinstance(error, NotewellError) else str(error) or type(error).__name__
            self._retry_at = time.monotonic() + self._pause()
        _log.warning("%s failed, %s answers: %s", self.primary.backend, self.fallback.backend, self._reason)

    def _pause(self) -> float:
        return min(self._pause_s * 2.0 ** min(self._failures - 1, 32), self._longest_pause_s)


_managers: dict[str, MemoryIndexManager] = {}


@checked_call(QueryError)
def get_memory_search_manager(
    settings: Settings | None = None,
    *,
    workspace: str | Path = ".",
    agent: str | None = None,
    session_key: str | None = None,
) -> MemorySearchManager | None:
    """Return the process's manager for an agent, a workspace and settings; None if memory is turned off.

    The agent is the one named, else that of `session_key`. Without `settings`, the usual layers are read.
    """
    memory = shared_memory(workspace, agent=agent or agent_of(session_key), settings=settings)
    if not memory.settings.enabled:
        return None
    key = f"{memory.agent}:{memory.workspace}:{hash_text(repr(memory.settings))}"
    cached = _managers.get(key)
    if cached is not None and cached.memory is not memory:  # its memory was closed, or belongs to a parent process
        _managers.pop(key, None)
    return _managers.setdefault(key, MemoryIndexManager(memory, on_close=lambda: _managers.pop(key, None)))


# --- session keys ------------------------------------------------------------------------------

_GROUP_KINDS = ("group", "channel")


@checked_call(QueryError)
def agent_of(session_key: str | None) -> str:
    """Return the agent of a key such as `agent:work:telegram:group:-100123`; `main` for keys that name none."""
    return _agent_part(session_key) or DEFAULT_AGENT


def _agent_part(session_key: str | None) -> str | None:
    """Return the agent that a key names, as a name that is safe for a folder."""
    parts = [part for part in (session_key or "").strip().lower().split(":") if part]
    if len(parts) < 3 or parts[0] != "agent":
        return None
    return re.sub(r"[^a-z0-9_-]+", "-", parts[1].strip()).strip("-")[:64] or None


def _group_part(session_key: str) -> str | None:
    """Return the id of the group or channel in a key, without its thread; None for the key of a direct chat."""
    parts = re.sub(r"^agent:[^:]*:", "", session_key.strip(), flags=re.IGNORECASE).split(":")
    kinds = [number for number, part in enumerate(parts) if part.strip().lower() in _GROUP_KINDS]
    if not kinds:
        return None
    return re.sub(r":thread:.*", "", ":".join(parts[kinds[0] + 1 :]), flags=re.IGNORECASE | re.DOTALL)
