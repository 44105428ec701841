"""Items of a key-value store in, the notes that hold them out, and back: their paths, front matter and JSON."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from notewell.errors import NoteUnreadableError, NotewellError
from notewell.sources.front_matter import split_front_matter
from notewell.sources.note_paths import is_skipped, means_else_on_windows

MARK = "notewell-item"  # the front matter's first key, whose value is the format's version
VERSION = "1"
LONGEST_NAME = 80  # of a file made from a key; with its hash well below the 255 bytes that file systems take
_SAFE = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{LONGEST_NAME - 1}}}")
_JSON_BLOCK = re.compile(r"^```json\n(?P<json>.*?)^```\s*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StoredItem:
    """One value of the store, and what is known of it."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    ranked: bool = True  # False: no query ranks it


def note_name(part: str) -> str:
    """Return a file name for a part of a namespace or a key: itself where that is safe everywhere, else with a hash."""
    if _SAFE.fullmatch(part) and not is_skipped(part) and not means_else_on_windows(part):
        return part
    readable = re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-")[: LONGEST_NAME // 2]
    digest = hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{readable}-{digest}" if readable else f"x-{digest}"


def note_parts(folder: tuple[str, ...], namespace: tuple[str, ...], key: str) -> tuple[str, ...]:
    """Return where an item's note lies below the workspace."""
    return (*folder, *map(note_name, namespace), f"{note_name(key)}.md")


def note_text(item: StoredItem) -> str:
    """Return the note of an item; its value is the JSON block, which people may edit."""
    try:
        value = json.dumps(item.value, ensure_ascii=False, indent=2)
    except (TypeError, ValueError) as error:
        raise NotewellError(
            f"the value of {item.key!r} cannot be written as JSON: {error}",
            hint="store text, numbers, lists and objects",
        ) from error
    head = {
        MARK: VERSION,
        "namespace": json.dumps("\u001f".join(item.namespace)),
        "key": json.dumps(item.key),
        "created": json.dumps(item.created_at.isoformat()),
        "updated": json.dumps(item.updated_at.isoformat()),
        "ranked": "true" if item.ranked else "false",
    }
    lines = [f"{name}: {text}" for name, text in head.items()]
    title = " ".join(item.key.split())
    return "\n".join(["---", *lines, "---", "", f"# {title}", "", "```json", value, "```", ""])


def item_of(text: str, path: str) -> StoredItem | None:
    """Return the item that a note holds, None when it is a note of somebody else; raises when it is damaged."""
    if MARK not in split_front_matter(text)[0]:
        return None
    raw = dict(line.split(": ", 1) for line in text.split("\n---", 1)[0].split("\n")[1:] if ": " in line)
    try:
        return StoredItem(
            tuple(json.loads(raw["namespace"]).split("\u001f")),
            json.loads(raw["key"]),
            _value_in(text),
            datetime.fromisoformat(json.loads(raw["created"])),
            datetime.fromisoformat(json.loads(raw["updated"])),
            ranked=raw.get("ranked", "true").strip() != "false",
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NoteUnreadableError(path, f"it holds an item of a store that cannot be read: {error}") from error


def _value_in(text: str) -> dict[str, Any]:
    found = _JSON_BLOCK.search(text)
    if found is None:
        raise ValueError("its block of JSON is gone")
    value = json.loads(found["json"])
    if not isinstance(value, dict):
        raise TypeError("its JSON is not an object")
    return value


def later(item: StoredItem, known: StoredItem | None) -> StoredItem:
    """Return the item as the successor of the one there is."""
    return replace(item, created_at=known.created_at) if known else item
