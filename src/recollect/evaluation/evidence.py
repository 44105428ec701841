"""Conversations in, the share of the evidence that an agent gets to read out.

Each session is one note with one turn a line. A question counts as far as the turns that answer it stand in the text
that a search hands over at its default limit, within the characters that may be injected into a prompt.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.evaluation.runner import Figures, open_memory, summarise
from recollect.evaluation.test_sets import TestSetError
from recollect.evaluation.variants import VARIANTS
from recollect.evaluation.workspaces import safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from recollect.evaluation.test_sets import EvalDocument, EvalQuery, EvalSet
    from recollect.types import ProgressCallback, SearchAnswer

INJECTED_CHARS = 4_000  # what OpenClaw lets a search add to a prompt


@dataclass(frozen=True, slots=True)
class _Conversation:
    """The sessions of one scope as notes, and where each turn stands."""

    folder: Path
    places: Mapping[str, tuple[str, str]]  # id of the turn -> path of its note, its line


def evaluate_evidence(
    eval_set: EvalSet,
    *,
    work: Path,
    variants: Sequence[str],
    flags: Mapping[str, object],
    progress: ProgressCallback | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> list[Figures]:
    """Index the conversations once below `work` and return the figures of each variant."""
    if not all(document.session for document in eval_set.documents):
        raise TestSetError(f"{eval_set.name}: evidence mode needs a `session` for every document")
    conversations = {scope: _write(eval_set, scope, work) for scope in eval_set.scopes}
    for scope, conversation in conversations.items():
        announce(f"{eval_set.name}: indexing {scope}")
        with open_memory(conversation.folder, flags) as memory:
            memory.index(progress=progress)
    return [_figures(eval_set, conversations, variant, flags) for variant in variants]


def _write(eval_set: EvalSet, scope: str, work: Path) -> _Conversation:
    folder = work / f"{eval_set.name}-evidence" / (safe_name(scope) or "all")
    (folder / "memory").mkdir(parents=True, exist_ok=True)
    sessions: defaultdict[str, list[EvalDocument]] = defaultdict(list)
    for document in eval_set.documents:
        if document.scope == scope:
            sessions[document.session].append(document)
    places: dict[str, tuple[str, str]] = {}
    for session, turns in sessions.items():
        path = f"memory/{safe_name(session)}.md"
        lines = [" ".join(turn.text.split()) for turn in turns]
        places |= {turn.id: (path, line) for turn, line in zip(turns, lines, strict=True)}
        title = turns[0].date or session
        text = f"# {title}\n\n" + "\n".join(lines) + "\n"
        file = folder / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8", newline="\n")
    return _Conversation(folder, places)


def _figures(
    eval_set: EvalSet, conversations: Mapping[str, _Conversation], variant: str, flags: Mapping[str, object]
) -> Figures:
    shares: list[float] = []
    milliseconds: list[float] = []
    for scope, conversation in conversations.items():
        with open_memory(conversation.folder, {**flags, **VARIANTS[variant]}) as memory:
            for query in (q for q in eval_set.queries if q.scope == scope):
                started = time.perf_counter()
                answer = memory.search(query.text, sync=False)
                milliseconds.append((time.perf_counter() - started) * 1000)
                shares.append(_share_read(answer, query, conversation))
    found_any = [float(share > 0) for share in shares]
    return summarise(eval_set, variant, {"evidence": shares, "any evidence": found_any}, milliseconds)


def _share_read(answer: SearchAnswer, query: EvalQuery, conversation: _Conversation) -> float:
    """Return the share of the gold turns whose line stands whole in the injected text."""
    room = INJECTED_CHARS
    injected: defaultdict[str, list[str]] = defaultdict(list)
    for hit in answer.hits:
        text = hit.snippet[:room]
        room -= len(text)
        injected[hit.path] += text.split("\n")
    places = [conversation.places[turn] for turn in query.grades]
    return sum(line in injected[path] for path, line in places) / len(places)
