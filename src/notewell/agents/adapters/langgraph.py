"""A LangGraph `BaseStore` that keeps each item as a note of the workspace."""

from __future__ import annotations

import asyncio
import hashlib
import json
import operator
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from notewell.agents.adapters.shared import index_written, log, needs_extra
from notewell.errors import MemoryDisabledError, NoteUnreadableError, NotewellError, QueryError, system_error
from notewell.files.no_follow import read_below
from notewell.memory.note_files import notes_lock, open_folder
from notewell.sources.notes import LARGEST_NOTE_BYTES, split_front_matter
from notewell.sources.walk import is_markdown, is_skipped, means_else_on_windows

with needs_extra("langgraph"):
    from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, PutOp, SearchItem, SearchOp

if TYPE_CHECKING:
    from langgraph.store.base import Op, Result

    from notewell.memory.memory import Memory

__all__ = ["MemoryStore"]

FOLDER = ("memory", "store")
MAX_RANKED = 200  # hits that a search considers at most; further items have no score
NOTE_MODE = 0o600  # an agent's items are private


class MemoryStore(BaseStore):
    """`graph.compile(store=MemoryStore(memory))`: each item is a note in `memory/store/<namespace>/<key>.md`.

    `Memory.search` answers queries; items it does not find follow without a score. Safe to use from several threads and
    processes.
    """

    def __init__(self, memory: Memory) -> None:
        if memory.audience.is_group:
            raise QueryError("a store shows every item, so it is not for groups", hint="open the memory without chat=")
        self.memory = memory
        self._base = os.path.realpath(memory.workspace)
        self._known: dict[str, tuple[tuple[int, int, int], StoredItem | None]] = {}

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads see the state before the batch, and the last write of a key wins."""
        if not self.memory.settings.enabled:
            raise MemoryDisabledError
        results: list[Result] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in ops:
            result: Result = None
            if isinstance(op, PutOp):
                puts[(op.namespace, op.key)] = op
            elif isinstance(op, GetOp):
                found = self._read(_note_parts(op.namespace, op.key))
                result = Item(**found.fields()) if found else None
            elif isinstance(op, SearchOp):
                result = self._search(op)
            elif isinstance(op, ListNamespacesOp):
                result = self._namespaces(op)
            else:
                raise QueryError(f"unknown operation: {type(op).__name__}", hint="use put, get, search or delete")
            results.append(result)
        if puts:
            self._put(puts.values())
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    # --- reading ---------------------------------------------------------------------------------

    def _search(self, op: SearchOp) -> list[SearchItem]:
        items = {
            path: item
            for path, item in self._items()
            if item.namespace[: len(op.namespace_prefix)] == tuple(op.namespace_prefix)
            and all(_matches(item.value.get(field), wanted) for field, wanted in (op.filter or {}).items())
        }
        scores = self._scores(op.query, items) if op.query and items else {}
        ranked = sorted(items, key=lambda path: (path not in scores, -scores.get(path, 0.0)))
        wanted = ranked[op.offset : op.offset + op.limit]
        return [SearchItem(**items[path].fields(), score=scores.get(path)) for path in wanted]

    def _scores(self, query: str, items: Mapping[str, StoredItem]) -> dict[str, float]:
        """Return the best score of each item that a search finds."""
        answer = self.memory.search(query, limit=MAX_RANKED, min_score=0.0, source="memory")
        for note in answer.notes:
            log.warning("%s", note)
        scores: dict[str, float] = {}
        for hit in answer.hits:
            if hit.path in items and items[hit.path].ranked:
                scores[hit.path] = max(hit.score, scores.get(hit.path, 0.0))
        return scores

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = {
            item.namespace[: op.max_depth]
            for _, item in self._items()
            if all(_in_namespace(item.namespace, each.match_type, each.path) for each in op.match_conditions or ())
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    def _items(self) -> Iterator[tuple[str, StoredItem]]:
        """Yield every item with the stored path of its note, sorted; corrupt ones are logged and skipped."""
        for parts in sorted(self._notes_below(FOLDER)):
            try:
                item = self._read(parts)
            except NotewellError as error:
                log.warning("%s; %s", error.message, error.hint)
                continue
            if item is not None:
                yield "/".join(parts), item

    def _notes_below(self, parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        try:
            with os.scandir(os.path.join(self._base, *parts)) as entries:  # noqa: PTH118
                listed = [entry for entry in entries if not is_skipped(entry.name)]
        except FileNotFoundError:
            return
        except OSError as error:
            raise system_error(error) from error
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                yield from self._notes_below((*parts, entry.name))
            elif is_markdown(entry.name):
                yield (*parts, entry.name)

    def _read(self, parts: tuple[str, ...]) -> StoredItem | None:
        """Return the item in a note, cached until the file changes; None if there is no such note."""
        path = "/".join(parts)
        try:
            info = os.lstat(os.path.join(self._base, *parts))  # noqa: PTH118
            stamp = (info.st_ino, info.st_size, info.st_mtime_ns)
            known = self._known.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            raw = read_below(self._base, parts, most_bytes=LARGEST_NOTE_BYTES)[0]
        except (FileNotFoundError, NotADirectoryError):
            self._known.pop(path, None)
            return None
        except OSError as error:
            raise NoteUnreadableError(path, error) from error
        item = _parse_note(raw.decode("utf-8", "replace").replace("\r\n", "\n"), path)
        self._known[path] = (stamp, item)
        return item

    # --- writing ---------------------------------------------------------------------------------

    def _put(self, puts: Iterable[PutOp]) -> None:
        now = datetime.now(UTC)
        writes: list[tuple[tuple[str, ...], StoredItem | None]] = []
        for op in puts:
            item = None
            if op.value is not None:
                ranked = op.index is not False
                item = StoredItem(tuple(op.namespace), op.key, dict(op.value), now, now, ranked=ranked)
                _note_text(item)  # raises for invalid values before anything is written
            writes.append((_note_parts(op.namespace, op.key), item))
        changed: list[str] = []
        try:
            with notes_lock(self.memory.workspace):
                for parts, item in writes:
                    if self._write(parts, item):
                        changed.append("/".join(parts))
        except OSError as error:
            raise system_error(error) from error
        finally:
            for problem in index_written(self.memory, changed):
                log.warning("%s", problem)

    def _write(self, parts: tuple[str, ...], item: StoredItem | None) -> bool:
        """Write or delete a note; returns False if there was nothing to delete."""
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
                item = replace(item, created_at=known.created_at) if known else item
                folder.replace(parts[-1], _note_text(item).encode("utf-8", "replace"), NOTE_MODE)
        return True


# --- items as notes ------------------------------------------------------------------------------

MARK = "notewell-item"  # the first key of the front matter; its value is the version of the format
VERSION = "1"
MAX_NAME = 80  # of a file named after a key; file systems allow 255 bytes
_SEPARATOR = "\u001f"  # between the parts of a namespace
_SAFE_NAME = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{MAX_NAME - 1}}}")
_JSON_BLOCK = re.compile(r"^```json\n(?P<json>.*?)^```\s*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as stored in its note."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    ranked: bool = True  # False: queries give it no score

    def fields(self) -> dict[str, Any]:
        """Return the fields of a LangGraph item, with a copy of the value."""
        return {
            "namespace": self.namespace,
            "key": self.key,
            "value": _copied(self.value),
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }


def note_name(part: str) -> str:
    """Return a file name for a key or a part of a namespace: itself if it is safe everywhere, else with a hash."""
    if _SAFE_NAME.fullmatch(part) and not is_skipped(part) and not means_else_on_windows(part):
        return part
    readable = re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-")[: MAX_NAME // 2]
    digest = hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{readable}-{digest}" if readable else f"x-{digest}"


def _note_parts(namespace: tuple[str, ...], key: str) -> tuple[str, ...]:
    return (*FOLDER, *map(note_name, namespace), f"{note_name(key)}.md")


def _note_text(item: StoredItem) -> str:
    """Return the note of an item, with its value in a JSON block that people may edit."""
    try:
        value = json.dumps(item.value, ensure_ascii=False, indent=2)
    except (TypeError, ValueError) as error:
        raise NotewellError(
            f"the value of {item.key!r} cannot be written as JSON: {error}",
            hint="store text, numbers, lists and objects",
        ) from error
    head = {
        MARK: VERSION,
        "namespace": json.dumps(_SEPARATOR.join(item.namespace)),
        "key": json.dumps(item.key),
        "created": json.dumps(item.created_at.isoformat()),
        "updated": json.dumps(item.updated_at.isoformat()),
        "ranked": "true" if item.ranked else "false",
    }
    lines = [f"{name}: {text}" for name, text in head.items()]
    title = " ".join(item.key.split())
    return "\n".join(["---", *lines, "---", "", f"# {title}", "", "```json", value, "```", ""])


def _parse_note(text: str, path: str) -> StoredItem | None:
    """Return the item in a note; None if it is not a note of the store."""
    if MARK not in split_front_matter(text)[0]:
        return None
    head = dict(line.split(": ", 1) for line in text.split("\n---", 1)[0].split("\n")[1:] if ": " in line)
    try:
        return StoredItem(
            tuple(json.loads(head["namespace"]).split(_SEPARATOR)),
            json.loads(head["key"]),
            _value_in(text),
            datetime.fromisoformat(json.loads(head["created"])),
            datetime.fromisoformat(json.loads(head["updated"])),
            ranked=head.get("ranked", "true").strip() != "false",
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NoteUnreadableError(path, f"its store item is corrupt: {error}") from error


def _value_in(text: str) -> dict[str, Any]:
    block = _JSON_BLOCK.search(text)
    if block is None:
        raise ValueError("its JSON block is missing")
    value = json.loads(block["json"])
    if not isinstance(value, dict):
        raise TypeError("its JSON is not an object")
    return value


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


# --- filters -------------------------------------------------------------------------------------

_ORDER: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _matches(value: object, wanted: object) -> bool:
    """Return whether a value fits a filter, as in LangGraph's own stores."""
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_compares(value, str(name), other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(_matches(value.get(name), inner) for name, inner in wanted.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(_matches(one, other) for one, other in zip(value, wanted, strict=True))
        )
    return value == wanted


def _compares(value: object, name: str, other: object) -> bool:
    if name == "$eq":
        return value == other
    if name == "$ne":
        return value != other
    if name not in _ORDER:
        raise QueryError(f"unknown filter operator: {name}", hint=f"use $eq, $ne, {', '.join(_ORDER)}")
    try:
        return _ORDER[name](float(value), float(other))  # type: ignore[arg-type]  # not a number: no match
    except (TypeError, ValueError):
        return False


def _in_namespace(namespace: Sequence[str], kind: str, pattern: Sequence[str]) -> bool:
    """Return whether a namespace begins (`prefix`) or ends (`suffix`) with the pattern, where `*` matches any part."""
    if len(namespace) < len(pattern):
        return False
    if kind not in {"prefix", "suffix"}:
        raise QueryError(f"unknown kind of namespace match: {kind}", hint="use prefix or suffix")
    part = namespace[: len(pattern)] if kind == "prefix" else namespace[len(namespace) - len(pattern) :]
    return all(wanted in ("*", own) for own, wanted in zip(part, pattern, strict=True))
