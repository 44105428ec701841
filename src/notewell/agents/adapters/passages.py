"""A memory and a question in, the passages that answer it as plain values for any framework's documents out."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from notewell.errors import NoteNotFoundError
from notewell.text.fences import fence

if TYPE_CHECKING:
    from notewell.memory.memory import Memory
    from notewell.types import Hit

_log = logging.getLogger("notewell.adapters")


@dataclass(frozen=True, slots=True)
class Passage:
    """Text that answers a question, where it stands and how it was found."""

    text: str
    citation: str
    score: float
    metadata: dict[str, Any]


def passages_for(memory: Memory, query: str, *, whole: bool, fenced: bool, options: dict[str, Any]) -> list[Passage]:
    """Return the passages that a search finds, best first; what the reader should know of the answer is logged.

    `whole` gives the passage as the file has it instead of a snippet; `fenced` marks it as recalled data.
    """
    answer = memory.search(query, **{name: value for name, value in options.items() if value is not None})
    for note in answer.notes:
        _log.warning("%s", note)
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
        found.append(Passage(fence(text, hit.citation) if fenced else text, hit.citation, hit.score, metadata))
    return found


def _whole_text(memory: Memory, hit: Hit) -> str:
    try:
        return memory.get(hit.path, first_line=hit.first_line, lines=hit.last_line - hit.first_line + 1).text
    except NoteNotFoundError:  # gone since the search: the snippet is what was found
        return hit.snippet
