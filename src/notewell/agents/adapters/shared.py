"""Shared by adapters: errors for missing packages, retrieval of passages, indexing of written notes."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from notewell.errors import NoteNotFoundError, NotewellError
from notewell.text.fences import fence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from notewell.memory.memory import Memory
    from notewell.search.options import SearchOptions
    from notewell.types import Hit

log = logging.getLogger("notewell.agents.adapters")


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Turn a missing package into an error that says which extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "notewell":
            raise
        raise NotewellError(
            f"this adapter needs the package {error.name}, which is not installed",
            hint=f"pip install 'notewell[{extra}]'",
        ) from error


def passages_for(
    memory: Memory, query: str, *, whole: bool, fenced: bool, options: SearchOptions
) -> list[tuple[str, dict[str, Any]]]:
    """Return the passages that a search finds, best first, with their metadata; notes are logged as warnings.

    `whole` returns full passages instead of snippets; `fenced` marks them as recalled data.
    """
    answer = memory.search(query, **options)
    for note in answer.notes:
        log.warning("%s", note)
    found = []
    for hit in answer.hits:
        text = _whole_text(memory, hit) if whole else hit.snippet
        metadata: dict[str, Any] = {
            "path": hit.path,
            "first_line": hit.first_line,
            "last_line": hit.last_line,
            "citation": hit.citation,
            "score": hit.score,
            "source": hit.source,
            "found_by": hit.found_by,
            "mode": answer.mode,
        }
        found.append((fence(text, hit.citation) if fenced else text, metadata))
    return found


def _whole_text(memory: Memory, hit: Hit) -> str:
    try:
        return memory.get(hit.path, first_line=hit.first_line, lines=hit.last_line - hit.first_line + 1).text
    except NoteNotFoundError:  # deleted since the search
        return hit.snippet


def index_written(memory: Memory, paths: Collection[str]) -> list[str]:
    """Index notes that were just written; returns problems, since the notes are safely on disk."""
    if not paths:
        return []
    try:
        report = memory.sync(paths=paths)
    except NotewellError as error:
        return [f"written, but search cannot find it yet: {error.message}; {error.hint}"]
    return [f"{problem.path}: {problem.reason}" for problem in report.problems]
