"""The prompt `recall`: a question in, a message that holds the question and what the memory says about it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from notewell import QueryError
from notewell.agents.tools.schemas import GET, SEARCH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from notewell.agents.tools import MemoryTools

RECALL: dict[str, Any] = {
    "name": "recall",
    "title": "Recall",
    "description": "Answer a question from long-term memory",
    "arguments": [{"name": "question", "description": "What you want to know", "required": True}],
}


def recall_text(tools: MemoryTools, arguments: Mapping[str, str]) -> str:
    """Return the message; when nothing was found it says so, and how it was searched."""
    question = arguments.get("question", "").strip()
    if not question:
        raise QueryError("recall needs a question", hint="give the argument `question`")
    result = tools.call(SEARCH.name, {"query": question})
    if result.is_error:
        error = result.document["error"]
        raise QueryError(error["message"], hint=error["hint"])
    found = result.document
    lines = [question, ""]
    if found["hits"]:
        cite = "Cite what you use as `Source: path#L5-L9`." if tools.cited else "Do not mention file paths."
        lines += [f"Answer from what long-term memory holds about it; {GET.name} reads on. {cite}", ""]
        lines += [f"{hit['snippet']}\n" for hit in found["hits"]]
    else:
        lines.append(f"Long-term memory was searched ({found['mode']} search) and holds nothing that fits: say so.")
    return "\n".join([*lines, *(f"Note: {note}" for note in found["notes"])]).rstrip()
