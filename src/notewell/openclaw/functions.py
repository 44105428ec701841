"""OpenClaw's helper functions for files, chunks, vectors, keyword queries and scores."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import struct
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from notewell.chunking.lines import chunk_lines
from notewell.errors import BadVectorError, NoteUnreadableError, PathRefusedError, QueryError
from notewell.settings.arguments import checked_call
from notewell.types import Document, FileStamp
from notewell.types import hash_text as hash_of_text

Json = dict[str, Any]
_T = TypeVar("_T")
_log = logging.getLogger("notewell.openclaw")

hash_text = checked_call(QueryError)(hash_of_text)
RANK_OFFSET = 60  # of reciprocal rank fusion; Cormack et al. 2009

# --- files and chunks --------------------------------------------------------------------------


@checked_call(QueryError)
def list_memory_files(workspace_dir: str | Path, extra_paths: Iterable[str | Path] = ()) -> list[str]:
    """Return the absolute paths of `MEMORY.md`, `memory.md`, `memory/**/*.md` and the extra paths, each file once.

    Symbolic links are left out. What cannot be listed is logged as a warning.
    """
    from notewell.sources.notes import NotesSource

    folder, *extra = (_path(path) for path in (workspace_dir, *extra_paths))
    notes = NotesSource(Path(os.path.abspath(folder)), extra)  # noqa: PTH100
    listing = notes.list()
    for problem in listing.problems:
        _log.warning("not listed: %s: %s", problem.path, problem.reason)
    return [str(notes.resolve(stamp.path)) for stamp in listing.files]


@checked_call(QueryError)
def build_file_entry(abs_path: str | Path, workspace_dir: str | Path) -> Json:
    """Return `path` (relative, with `/`), `absPath`, `mtimeMs`, `size` in bytes and `hash` of a file's text."""
    from notewell.files.no_follow import read_below
    from notewell.sources.notes import LARGEST_NOTE_BYTES

    file, folder = _path(abs_path), _path(workspace_dir)
    try:
        parent, name = os.path.split(os.path.realpath(file))  # links are followed: the caller chose the path
        raw, info = read_below(parent, (name,), most_bytes=LARGEST_NOTE_BYTES)
    except OSError as error:
        raise NoteUnreadableError(str(file), error) from error
    return {
        "path": os.path.relpath(file, folder).replace("\\", "/"),
        "absPath": str(file),
        "mtimeMs": info.st_mtime_ns / 1e6,
        "size": info.st_size,
        "hash": hash_text(raw.decode("utf-8", "replace")),
    }


def _path(path: str | Path) -> Path:
    """Return a path; raise PathRefusedError for one that no file can have."""
    try:
        is_possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_possible = False
    if not is_possible:
        raise PathRefusedError(str(path))
    return Path(path)


@checked_call(QueryError)
def chunk_markdown(content: str, *, tokens: int = 400, overlap: int = 80) -> list[Json]:
    """Return runs of lines of at most `max(32, tokens * 4)` characters: `startLine`, `endLine`, `text` and `hash`.

    The last lines, about `overlap * 4` characters, begin the next chunk as well. Unlike OpenClaw's own, a chunk never
    exceeds the limit because of them, and blank chunks are left out here and not later.
    """
    document = Document(FileStamp("memory", "", 0, 0), content, content_hash="")
    return [
        {"startLine": chunk.first_line, "endLine": chunk.last_line, "text": chunk.text, "hash": chunk.text_hash}
        for chunk in chunk_lines(document, tokens=tokens, overlap=overlap)
    ]


@checked_call(QueryError)
def chunk_id(source: str, path: str, chunk: Mapping[str, Any], model: str) -> str:
    """Return OpenClaw's id of a chunk of `chunk_markdown`: the same text at the same place has the same id."""
    return hash_text(f"{source}:{path}:{chunk['startLine']}:{chunk['endLine']}:{chunk['hash']}:{model}")


# --- vectors, words and scores -----------------------------------------------------------------


@checked_call(BadVectorError)
def parse_embedding(raw: str | bytes | bytearray | memoryview) -> list[float]:
    """Return the vector that OpenClaw stored as a JSON array, or as the bytes of 32-bit floats.

    Raises BadVectorError for anything else, where OpenClaw gives an empty vector.
    """
    if not isinstance(raw, str):
        stored = bytes(raw)
        if len(stored) % 4:
            raise BadVectorError(f"{len(stored)} bytes are not a vector of 32-bit floats", hint="embed the text again")
        values = list(struct.unpack(f"<{len(stored) // 4}f", stored))
    else:
        try:
            values = json.loads(raw, parse_int=float)
        except (ValueError, RecursionError) as error:
            raise BadVectorError(f"not a vector in JSON: {error}", hint="embed the text again") from error
    if not isinstance(values, list) or not all(type(value) is float and math.isfinite(value) for value in values):
        raise BadVectorError("a vector is an array of finite numbers, this is not", hint="embed the text again")
    return values


def cosine_similarity(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors of the same length; 0 where one of them is zero."""
    try:
        if len(a) != len(b):
            raise BadVectorError(
                f"vectors of {len(a)} and {len(b)} dimensions cannot be compared", hint="use vectors of one model"
            )
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        norms = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    except TypeError as error:
        raise BadVectorError(f"a vector is a list of numbers: {error}", hint="embed the text again") from error
    return dot / norms if norms else 0.0


@checked_call(QueryError)
def build_fts_query(raw: str, *, prefixes: bool = False) -> str | None:
    """Return the FTS5 query for chunks with every word of `raw`: `"hello" AND "world"`; None without a word.

    `prefixes` finds any word that begins with one of them, `hello* OR world*`. That older form knows only ASCII, and
    FTS5 refuses its words with a hyphen.
    """
    if prefixes:
        words = [re.sub(r"[^a-z0-9_-]", "", word) for word in raw.lower().split()]
        return " OR ".join(f"{word}*" for word in words if len(word) >= 2) or None
    return " AND ".join(f'"{word}"' for word in re.findall(r"\w+", raw)) or None


@checked_call(QueryError)
def bm25_rank_to_score(rank: float) -> float:
    """Return 1 / (1 + rank), where rank 0 is the best; ranks that are no number count as 999.

    SQLite's `bm25()` is negative, so every hit of it scores 1: pass the position of the hit instead.
    """
    return 1 / (1 + (max(0.0, rank) if math.isfinite(rank) else 999))


@checked_call(QueryError)
def merge_hybrid_results(
    vector: Sequence[Mapping[str, Any]],
    keyword: Sequence[Mapping[str, Any]],
    *,
    vector_weight: float = 0.7,
    text_weight: float = 0.3,
    fusion: Literal["weighted", "rrf"] = "weighted",
    limit: int | None = None,
) -> list[Json]:
    """Return the results of both searches, each once, best first, with their combined `score`.

    `weighted` adds the weighted `vectorScore` and `textScore`; a chunk that only one search found has 0 for the other.
    `rrf` looks at ranks alone, which begin at 0: weight / (rank + 60). Chunks are the same by their `id`, or where
    they have none by their place. Snippets are those of the keyword search where both have one.
    """
    merged: dict[object, Json] = {}
    for name, weight, results in (("vectorScore", vector_weight, vector), ("textScore", text_weight, keyword)):
        for rank, result in enumerate(results):
            key = result.get("id") or tuple(result.get(field) for field in ("source", "path", "startLine", "endLine"))
            entry = merged.setdefault(key, {**result, "score": 0.0})
            part = weight / (rank + RANK_OFFSET) if fusion == "rrf" else weight * result[name]
            entry |= {"score": entry["score"] + part, "snippet": result.get("snippet") or entry.get("snippet", "")}
    best = sorted(merged.values(), key=lambda entry: entry["score"], reverse=True)[:limit]
    return [{name: value for name, value in entry.items() if name not in _PARTS} for entry in best]


_PARTS = {"id", "vectorScore", "textScore"}


@checked_call(QueryError)
def run_with_concurrency(tasks: Sequence[Callable[[], _T]], limit: int) -> list[_T]:
    """Run the tasks in up to `limit` threads and return their results in order.

    After the first error no further task is started; those in progress are awaited, then it is raised.
    """
    results: dict[int, _T] = {}
    errors: list[BaseException] = []
    waiting = iter(enumerate(tasks))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number, task = (None, None) if errors else next(waiting, (None, None))
            if number is None or task is None:
                return
            try:
                results[number] = task()
            except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
                errors.append(error)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(min(max(1, limit), len(tasks)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(tasks))]
