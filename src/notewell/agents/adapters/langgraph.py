"""LangGraph: a memory in, a `BaseStore` whose items are notes of the workspace out."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from notewell.agents.adapters.needed import needs_extra
from notewell.agents.adapters.store_filters import matches_filter, matches_namespace
from notewell.agents.adapters.store_notes import StoredItem, item_of, later, note_parts, note_text
from notewell.errors import MemoryDisabledError, NoteUnreadableError, NotewellError, QueryError, system_error
from notewell.memory.note_folder import open_folder
from notewell.memory.note_writing import notes_lock
from notewell.sources.note_paths import is_markdown, is_skipped
from notewell.sources.opening import read_below

with needs_extra("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        PutOp,
        SearchItem,
        SearchOp,
    )

if TYPE_CHECKING:
    from langgraph.store.base import Op, Result

    from notewell.memory.memory import Memory

__all__ = ["MemoryStore"]

FOLDER = ("memory", "store")
RANKED_HITS = 200  # as many as each side of a search looks at; items beyond them come unranked
NOTE_MODE = 0o600  # what an agent keeps is nobody else's business
_log = logging.getLogger("notewell.adapters")


class MemoryStore(BaseStore):
    """`graph.compile(store=MemoryStore(memory))`: each item is a note in `memory/store/<namespace>/<key>.md`.

    A query is answered by `Memory.search`; what it does not find follows without a score. Safe to use from several
    threads and processes.
    """

    def __init__(self, memory: Memory) -> None:
        if memory.audience.is_group:
            raise QueryError("a store holds every item, so it is not for groups", hint="open the memory without chat=")
        self.memory = memory
        self._base = os.path.realpath(memory.workspace)
        self._known: dict[str, tuple[tuple[int, int, int], StoredItem | None]] = {}

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: what is read is the state before them, and of several writes of a key the last one counts."""
        if not self.memory.settings.enabled:
            raise MemoryDisabledError
        results: list[Result] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in ops:
            result: Result = None
            if isinstance(op, PutOp):
                puts[(op.namespace, op.key)] = op
            elif isinstance(op, GetOp):
                found = self._read(note_parts(FOLDER, op.namespace, op.key))
                result = _item(found) if found else None
            elif isinstance(op, SearchOp):
                result = self._search(op)
            elif isinstance(op, ListNamespacesOp):
                result = self._namespaces(op)
            else:
                raise QueryError(f"unknown operation: {type(op).__name__}", hint="use put, get, search or delete")
            results.append(result)
        if puts:
            self._apply(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    # --- reading ---------------------------------------------------------------------------------

    def _search(self, op: SearchOp) -> list[SearchItem]:
        fitting = {
            path: item
            for path, item in self._items()
            if item.namespace[: len(op.namespace_prefix)] == tuple(op.namespace_prefix)
            and matches_filter(item.value, op.filter or {})
        }
        scores = self._scores(op.query, fitting) if op.query and fitting else {}
        ranked = sorted(fitting, key=lambda path: (path not in scores, -scores.get(path, 0.0)))
        return [_search_item(fitting[path], scores.get(path)) for path in ranked[op.offset : op.offset + op.limit]]

    def _scores(self, query: str, fitting: dict[str, StoredItem]) -> dict[str, float]:
        """Return the best score of each item that the search finds."""
        answer = self.memory.search(query, limit=RANKED_HITS, min_score=0.0, source="memory")
        for note in answer.notes:
            _log.warning("%s", note)
        scores: dict[str, float] = {}
        for hit in answer.hits:
            if hit.path in fitting and fitting[hit.path].ranked:
                scores[hit.path] = max(hit.score, scores.get(hit.path, 0.0))
        return scores

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = [(condition.match_type, tuple(condition.path)) for condition in op.match_conditions or ()]
        found = {
            item.namespace[: op.max_depth]
            for _, item in self._items()
            if all(matches_namespace(item.namespace, kind, path) for kind, path in conditions)
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    def _items(self) -> Iterator[tuple[str, StoredItem]]:
        """Yield every item with the stored path of its note, in order; one that is damaged is logged and left out."""
        for parts in sorted(self._note_parts(FOLDER)):
            try:
                item = self._read(parts)
            except NotewellError as error:
                _log.warning("%s; %s", error.message, error.hint)
                continue
            if item is not None:
                yield "/".join(parts), item

    def _note_parts(self, parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        try:
            with os.scandir(os.path.join(self._base, *parts)) as entries:  # noqa: PTH118
                listed = [entry for entry in entries if not is_skipped(entry.name)]
        except FileNotFoundError:
            return
        except OSError as error:
            raise system_error(error) from error
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                yield from self._note_parts((*parts, entry.name))
            elif is_markdown(entry.name):
                yield (*parts, entry.name)

    def _read(self, parts: tuple[str, ...]) -> StoredItem | None:
        """Return the item that a note holds now; None when there is no such note."""
        path = "/".join(parts)
        try:
            info = os.lstat(os.path.join(self._base, *parts))  # noqa: PTH118
            stamp = (info.st_ino, info.st_size, info.st_mtime_ns)
            known = self._known.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            raw = read_below(self._base, parts)[0]
        except (FileNotFoundError, NotADirectoryError):
            self._known.pop(path, None)
            return None
        except OSError as error:
            raise NoteUnreadableError(path, error.strerror or str(error)) from error
        item = item_of(raw.decode("utf-8", "replace").replace("\r\n", "\n"), path)
        self._known[path] = (stamp, item)
        return item

    # --- writing ---------------------------------------------------------------------------------

    def _apply(self, puts: list[PutOp]) -> None:
        now = datetime.now(UTC)
        changed: list[str] = []
        texts: list[tuple[tuple[str, ...], StoredItem | None]] = []
        for op in puts:
            parts = note_parts(FOLDER, op.namespace, op.key)
            item = None
            if op.value is not None:
                value = dict(op.value)
                item = StoredItem(tuple(op.namespace), op.key, value, now, now, ranked=op.index is not False)
                note_text(item)  # whatever cannot be written is refused before anything is
            texts.append((parts, item))
        try:
            with notes_lock(self.memory.workspace):
                for parts, item in texts:
                    if self._write(parts, item):
                        changed.append("/".join(parts))
        except OSError as error:
            raise system_error(error) from error
        finally:
            self._index(changed)

    def _index(self, paths: list[str]) -> None:
        """Bring what changed into the index; it is written, so what keeps it from being found is only logged."""
        try:
            report = self.memory.sync(paths=paths) if paths else None
        except NotewellError as error:
            _log.warning("written, but not indexed yet: %s; %s", error.message, error.hint)
            return
        for problem in report.problems if report else ():
            _log.warning("%s: %s", problem.path, problem.reason)

    def _write(self, parts: tuple[str, ...], item: StoredItem | None) -> bool:
        """Write or delete a note; False when there was nothing to delete."""
        known = self._read(parts)
        if item is None and known is None:
            return False
        with open_folder(self._base, parts[:-1], create=True) as folder:
            folder.remove_drafts()
            info = folder.stat(parts[-1])
            if info is not None and not stat.S_ISREG(info.st_mode):
                raise NoteUnreadableError("/".join(parts), "it is not a regular file")
            if item is None:
                folder.remove(parts[-1])
                folder.sync()
            else:
                folder.replace(parts[-1], note_text(later(item, known)).encode("utf-8", "replace"), NOTE_MODE)
        return True


def _item(item: StoredItem) -> Item:
    return Item(
        namespace=item.namespace,
        key=item.key,
        value=_own(item.value),
        created_at=item.created_at,
        updated_at=item.updated_at,
    )


def _search_item(item: StoredItem, score: float | None) -> SearchItem:
    return SearchItem(item.namespace, item.key, _own(item.value), item.created_at, item.updated_at, score)


def _own(value: Any) -> Any:
    """Return a copy that the caller may change without changing what is kept here."""
    if isinstance(value, dict):
        return {key: _own(inner) for key, inner in value.items()}
    return [_own(inner) for inner in value] if isinstance(value, list) else value
