"""Changes where the index is kept in the user's settings file, and leaves the rest of its text as it is."""

from __future__ import annotations

import json
import os
import re
import tomllib
from typing import TYPE_CHECKING, Any

from notewell.errors import SettingsError
from notewell.files.atomic import write_atomically
from notewell.settings.load import DEEP_KEY
from notewell.settings.workspace import user_file_of

if TYPE_CHECKING:
    from pathlib import Path

_REPLICA = "read_url"  # of the database that is left


def switch_store(url: str) -> Path:
    """Set `store.url` in the user's settings file, or remove it where it is empty; return the file.

    A replica that was named goes with it. Raises SettingsError where the file is written in a way that cannot be
    edited safely: the URL then has to be set by hand.
    """
    path, _ = user_file_of(os.environ)
    by_hand = f"set it by hand: [store] url = {_shown(url)}"
    if path.exists() and not path.is_file():
        raise SettingsError(f"{path} is not a file: store.url cannot be changed in it", hint=by_hand)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    changed = ""
    try:
        changed = edited(text, url)
        is_right = tomllib.loads(changed) == _expected(tomllib.loads(text), url)
    except tomllib.TOMLDecodeError:
        is_right = False  # such as a dotted key elsewhere that sets it, too
    if not is_right:
        raise SettingsError(f"{path}: store.url cannot be changed in it", hint=by_hand)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, changed.encode(), mode=0o600)  # the URL may hold a password
    return path


def edited(text: str, url: str) -> str:
    """Return the settings with the URL set, or removed where it is empty."""
    if re.search(DEEP_KEY, text):
        raise tomllib.TOMLDecodeError("a key has too many parts")
    line = f"url = {json.dumps(url, ensure_ascii=False)}\n"
    table = "defaults.store" if "defaults" in tomllib.loads(text) else "store"  # where the settings of all agents are
    header = re.search(rf"^[ \t]*\[[ \t]*{re.escape(table)}[ \t]*\][^\n]*(\n|\Z)", text, re.MULTILINE)
    if header is None:
        gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}[{table}]\n{line}" if url else text
    start = header.end()
    following = re.search(r"^[ \t]*\[", text[start:], re.MULTILINE)
    end = start + following.start() if following else len(text)
    body = re.sub(rf"^[ \t]*(url|{_REPLICA})[ \t]*=[^\n]*(\n|\Z)", "", text[start:end], flags=re.MULTILINE)
    gap = "" if text[:start].endswith("\n") else "\n"
    return f"{text[:start]}{gap}{line if url else ''}{body}{text[end:]}"


def _expected(values: dict[str, Any], url: str) -> dict[str, Any]:
    if "defaults" in values:
        return {**values, "defaults": _expected(values["defaults"], url)}
    store = {key: value for key, value in values.get("store", {}).items() if key not in {"url", _REPLICA}}
    kept = {key: value for key, value in values.items() if key != "store"}
    if url or "store" in values:
        kept["store"] = store | ({"url": url} if url else {})
    return kept


def _shown(url: str) -> str:
    return "..." if url else '""'
