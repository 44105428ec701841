"""Measures how much of the evidence for an answer an agent gets to read, on conversations indexed as real memory.

Layout `transcript`: every scope is one transcript, one message per line. A turn counts as read if its beginning is in
the snippets of a default search (`evidence@6`), or of as many hits as fit 4,000 characters (`evidence@4000`).

Layout `notes`: every session is one note, one turn per line. A turn counts as read if its whole line is in the first
4,000 characters of the snippets of a default search (`evidence`; `any evidence` counts the queries with one or more).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from notewell.evaluation.runner import is_iso_date, run, safe_name, write_if_changed
from notewell.evaluation.test_sets import TestSetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from notewell.evaluation.metrics import Figures
    from notewell.evaluation.test_sets import EvalDocument, EvalQuery, EvalSet
    from notewell.memory.memory import Memory
    from notewell.types import Hit, ProgressCallback, SearchAnswer

INJECTED_CHARS = 4_000  # what OpenClaw lets a search add to a prompt
MORE_HITS = 40  # more than fit into that
BEGINNING_CHARS = 80  # enough to tell one message from another; long messages are never shown whole
LONGEST_LINE = 700  # characters of a snippet: a longer line is never shown whole
_SPEAKER = re.compile(r"([^:：\n]{1,40})[:：]\s*(?=\S)")
_ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Conversation:
    """One scope laid out as memory."""

    folder: Path
    flags: Mapping[str, object]  # settings that make it part of the memory
    turns: Mapping[str, tuple[str, str]]  # id of the turn -> path of its file, the text that shows that it was read


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to keep conversations as memory, and what counts as read in it."""

    name: str
    suits: Callable[[EvalSet], bool]
    write: Callable[[Sequence[EvalDocument], Path], Conversation]
    shares: Callable[[Memory, SearchAnswer, Sequence[tuple[str, str]]], dict[str, float]]  # of a default search

    def conversations(self, eval_set: EvalSet, work: Path) -> dict[str, Conversation]:
        """Write every scope below `work` and return the conversations by scope."""
        return {
            scope: self.write(
                [document for document in eval_set.documents if document.scope == scope],
                work.resolve() / f"{eval_set.name}-{self.name}" / (safe_name(scope) or "all"),
            )
            for scope in eval_set.scopes
        }

    def measure(
        self, conversations: Mapping[str, Conversation], memory: Memory, answer: SearchAnswer, query: EvalQuery
    ) -> dict[str, float]:
        """Return the shares of the answering turns that are read, by metric."""
        turns = conversations[query.scope].turns
        return self.shares(memory, answer, [turns[turn] for turn in query.grades])


def evaluate_evidence(
    eval_set: EvalSet,
    *,
    work: Path,
    variants: Sequence[str],
    flags: Mapping[str, object],
    progress: ProgressCallback | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> list[Figures]:
    """Index the conversations once in each layout that suits them and return the figures of each variant."""
    layouts = [layout for layout in LAYOUTS if layout.suits(eval_set)]
    if not layouts:
        raise TestSetError(
            f"{eval_set.name}: evidence is measured on the turns of conversations: every document needs a `session`, "
            "or a `scope` and a text that begins with the speaker"
        )
    figures: list[Figures] = []
    for layout in layouts:
        conversations = layout.conversations(eval_set, work)
        figures += run(
            replace(eval_set, name=f"{eval_set.name} ({layout.name})"),
            {scope: (each.folder, each.flags) for scope, each in conversations.items()},
            partial(layout.measure, conversations),
            variants=variants,
            flags=flags,
            progress=progress,
            announce=announce,
        )
    return figures


# --- one transcript a scope ----------------------------------------------------------------------


def _are_turns(eval_set: EvalSet) -> bool:
    """Say whether the documents are what two speakers said in turn."""
    speakers: defaultdict[str, set[str]] = defaultdict(set)
    for document in eval_set.documents:
        found = _SPEAKER.match(document.text)
        if not (found and document.scope) or document.title:
            return False
        speakers[document.scope].add(found[1])
    return all(len(names) <= len(_ROLES) for names in speakers.values())


def _write_transcript(turns: Sequence[EvalDocument], folder: Path) -> Conversation:
    talks = folder / "talks"
    talks.mkdir(parents=True, exist_ok=True)
    path = f"{safe_name(turns[0].scope)}.jsonl"
    messages = list(_messages(turns))
    write_if_changed(talks / path, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in messages))
    flags = {"sources": ["sessions"], "sessions.paths": [str(talks)]}
    return Conversation(
        folder, flags, {turn.id: (f"sessions/@talks/{path}", _folded(_said(turn))[:BEGINNING_CHARS]) for turn in turns}
    )


def _messages(turns: Sequence[EvalDocument]) -> Iterator[dict[str, str]]:
    """Yield the turns as the messages of a transcript; speakers with names keep them, so that they can be found."""
    speakers = list(dict.fromkeys(_speaker(turn) for turn in turns))
    named = not set(speakers) <= set(_ROLES)
    for turn in turns:
        role = _ROLES[speakers.index(_speaker(turn))] if named else _speaker(turn)
        message = {"role": role, "content": turn.text if named else _said(turn)}
        yield message | ({"timestamp": turn.date} if is_iso_date(turn.date) else {})


def _speaker(turn: EvalDocument) -> str:
    found = _SPEAKER.match(turn.text)
    return found[1] if found else ""


def _said(turn: EvalDocument) -> str:
    return _SPEAKER.sub("", turn.text, count=1)


def transcript_shares(memory: Memory, answer: SearchAnswer, answering: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Return the shares of the answering turns that are read, given the answer of a default search."""
    more = memory.search(answer.query, limit=MORE_HITS, sync=False)
    return {
        "evidence@6": _share_begun([hit.snippet for hit in answer.hits], answering),
        f"evidence@{INJECTED_CHARS}": _share_begun(_injected(more.hits), answering),
    }


def _share_begun(snippets: Sequence[str], answering: Sequence[tuple[str, str]]) -> float:
    shown = [_folded(snippet) for snippet in snippets]
    return sum(any(beginning in text for text in shown) for _, beginning in answering) / len(answering)


def _injected(hits: Sequence[Hit]) -> list[str]:
    """Return the snippets that fit into what may be injected; the last may be cut."""
    room = INJECTED_CHARS
    snippets = []
    for hit in hits:
        snippets.append(hit.snippet[:room])
        room -= len(snippets[-1])
    return snippets


def _folded(text: str) -> str:
    return " ".join(text.split())


# --- one note a session --------------------------------------------------------------------------


def _have_short_turns_in_sessions(eval_set: EvalSet) -> bool:
    return all(document.session and len(_folded(document.text)) <= LONGEST_LINE for document in eval_set.documents)


def _write_notes(turns: Sequence[EvalDocument], folder: Path) -> Conversation:
    (folder / "memory").mkdir(parents=True, exist_ok=True)
    sessions: defaultdict[str, list[EvalDocument]] = defaultdict(list)
    for turn in turns:
        sessions[turn.session].append(turn)
    places: dict[str, tuple[str, str]] = {}
    for session, said in sessions.items():
        path = f"memory/{safe_name(session)}.md"
        lines = [_folded(turn.text) for turn in said]
        places |= {turn.id: (path, line) for turn, line in zip(said, lines, strict=True)}
        title = said[0].date or session
        write_if_changed(folder / path, f"# {title}\n\n" + "\n".join(lines) + "\n")
    return Conversation(folder, {}, places)


def _whole_lines(_: Memory, answer: SearchAnswer, answering: Sequence[tuple[str, str]]) -> dict[str, float]:
    injected: defaultdict[str, list[str]] = defaultdict(list)
    for hit, snippet in zip(answer.hits, _injected(answer.hits), strict=True):
        injected[hit.path] += snippet.split("\n")
    share = sum(line in injected[path] for path, line in answering) / len(answering)
    return {"evidence": share, "any evidence": float(share > 0)}


TRANSCRIPT = Layout("transcript", _are_turns, _write_transcript, transcript_shares)
NOTES = Layout("notes", _have_short_turns_in_sessions, _write_notes, _whole_lines)
LAYOUTS = (NOTES, TRANSCRIPT)
