"""What was found out about large files: a path comes in, facts that still hold for it go out, kept between runs.

A fact holds as long as the file's size and time of change stay: hashing a model of 300 MB at every start would take
longer than a search.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from pathlib import Path
from typing import Any

from notewell.errors import EmbedderUnavailableError
from notewell.files.atomic import write_atomically

FACTS_FILE = "facts.json"
# Some file systems stamp whole seconds or two: a file that young may change again and keep its stamp.
YOUNG_S = 4.0
_MOST_FILES = 64  # a record has some hundred bytes; nobody keeps more models than that


class FileFacts:
    """Facts about files, in one JSON file of the given folder. Where it cannot be written, facts are found out anew."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FACTS_FILE

    def sha256(self, path: Path) -> str:
        """Return the SHA-256 of the file's content, in hex."""
        known = self.get(path).get("sha256")
        if isinstance(known, str):
            return known
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise EmbedderUnavailableError(
                f"the model file {path} cannot be read: {error.strerror or error}", hint="check who may read the file"
            ) from error
        self.put(path, {"sha256": digest})
        return digest

    def get(self, path: Path) -> dict[str, Any]:
        """Return what is known of the file as it is now."""
        record = self._read().get(str(path), {})
        return dict(record.get("facts", {})) if record.get("stamp") == _stamp(path) else {}

    def put(self, path: Path, facts: dict[str, Any]) -> None:
        """Remember facts about the file as it is now, beside those that still hold."""
        stamp = _stamp(path)
        if stamp is None or time.time() - stamp[1] / 1e9 < YOUNG_S:
            return
        known = self._read()
        merged = self.get(path) | facts
        known.pop(str(path), None)
        known[str(path)] = {"stamp": stamp, "facts": merged}
        self._write(dict(list(known.items())[-_MOST_FILES:]))

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(content, dict):
            return {}
        return {path: record for path, record in content.items() if isinstance(record, dict)}

    def _write(self, content: dict[str, Any]) -> None:
        """Replace the file in one step; without the right to, the next run finds the facts out again."""
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, json.dumps(content, indent=1), mode=0o600)


def _stamp(path: Path) -> list[int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]
