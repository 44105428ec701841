"""Writes what is worth keeping of a conversation to today's note before it is compacted, never the same twice.

What was flushed is remembered in the session's own file. First it says what is about to be written and where, then the
note is written unless it holds that mark already, then the session says that it is done: whoever is interrupted in
between finds out which of the three it was.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from notewell.errors import SessionInputError
from notewell.sessions.model import Session
from notewell.sessions.store import ConversationStore
from notewell.sources.transcripts.messages import SPEAKERS, Message, now_ms
from notewell.text.fences import strip_fenced

KEEP_LAST = 20  # messages that stay in the conversation, as `compact` keeps them

NOTHING = "NO_REPLY"  # what an agent answers when there is nothing to keep, as in OpenClaw

LONGEST_LINE = 280  # characters of a message in a plain entry: what was said, not how it was explained
MOST_LINES = 60  # of a plain entry: a screen or two; the whole conversation is kept in the session store
LONGEST_PROMPT_TEXT = 4000  # characters of one message that a model is shown
_HEARTBEAT = re.compile(r"\W*(HEARTBEAT_OK|NO_REPLY)\W*", re.IGNORECASE)

_PROMPT = """\
This part of the conversation is about to be compacted: its messages will be replaced by a short summary. Write down
what must outlive it, as an entry that is appended to the note {path}.

- One fact, decision, preference, plan or open question a line, as a Markdown list. Say who and when where it matters.
- Only what this part of the conversation says. Leave out small talk, what tools printed, and recalled memory.
- No passwords, keys or tokens.
- The entry is only ever appended. Do not repeat the conversation, and write no heading.
- If nothing is worth keeping, answer with {nothing} and nothing else.

<conversation>
{conversation}
</conversation>
"""

_AGENT_PROMPT = """\
The conversation is close to its limit and will be compacted. Append what must outlive it to {path} now: facts,
decisions, preferences, plans, open questions. Append only; never rewrite or shorten what the note holds. Write no
secrets, and nothing that was recalled from memory. If nothing is worth keeping, answer with {nothing}.
"""

Summarize = Callable[[str], str]


class WriteNote(Protocol):
    """Appends an entry to a note and says whether it did; `mark` is part of what is written."""

    def __call__(self, path: str, text: str, *, source: str, mark: str, when: datetime) -> bool: ...


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a flush did."""

    session_id: str
    path: str  # of the note; empty when nothing was written
    messages: int  # how many were looked at for the first time
    through: int  # the first so many messages of the session are flushed now: those may be compacted
    by_model: bool = False
    note: str = ""  # why nothing was written, or that a flush was finished that had been interrupted


@dataclass(frozen=True, slots=True)
class _Span:
    """Messages to flush: `start` up to but not including `end` of those the session holds now."""

    start: int
    end: int
    mark: str


def flush(
    store: ConversationStore,
    session_id: str,
    write: WriteNote,
    *,
    summarize: Summarize | None = None,
    keep_last: int = KEEP_LAST,
    now: datetime | None = None,
) -> Flushed:
    """Append what is worth keeping of all but the `keep_last` newest messages to the note of today.

    `summarize` is a model: it gets a prompt and answers with the entry, or NO_REPLY. Without it, or when it fails, the
    messages themselves are shortened to an entry. Only one process flushes a session at a time; appends go on.
    """
    if keep_last < 0:
        raise SessionInputError("the number of messages cannot be negative", hint="use 0 or more")
    with store.flushing(session_id):
        moment = now or datetime.now().astimezone()
        session = store.get(session_id)
        pending = _pending_span(session, _state_of(session))
        finished = _finish(store, session, pending, write, moment) if pending else None
        span = _next_span(store.get(session_id) if finished else session, keep_last)
        if span is None:
            return finished or _nothing(session, "every message that would be compacted was flushed before")
        return _flush_span(store, session, span, write, summarize=summarize, moment=moment)


def _flush_span(
    store: ConversationStore,
    session: Session,
    span: _Span,
    write: WriteNote,
    *,
    summarize: Summarize | None,
    moment: datetime,
) -> Flushed:
    name = session.entry.session_id
    path = f"memory/{moment.date().isoformat()}.md"
    messages = session.messages[span.start : span.end]
    text, by_model, failure = _entry(messages, path, summarize)
    if text:
        _remember(store, session, span, {"path": path, "pending": True, "text": text})
        write(path, text, source=_source(name, messages, span), mark=span.mark, when=moment)
    _remember(store, session, span, {"path": path if text else None})
    note = failure or ("" if text else "there was nothing worth keeping in it")
    return Flushed(name, path if text else "", len(messages), span.end, by_model, note)


def _finish(store: ConversationStore, session: Session, span: _Span, write: WriteNote, moment: datetime) -> Flushed:
    """Do what an interrupted flush left to do; the note of that day is the one that counts."""
    state = _state_of(session)
    name, path = session.entry.session_id, str(state["path"])
    messages = session.messages[span.start : span.end]
    write(path, str(state["text"]), source=_source(name, messages, span), mark=span.mark, when=moment)
    _remember(store, session, span, {"path": path})
    return Flushed(name, path, len(messages), span.end, note="an interrupted flush was finished")


def _entry(messages: Sequence[Message], path: str, summarize: Summarize | None) -> tuple[str, bool, str]:
    """Return the entry, empty when nothing is worth keeping, whether the model wrote it, and why not if asked."""
    plain = plain_notes(messages)
    if summarize is None or not plain:
        return plain, False, ""
    try:
        answer = strip_fenced(summarize(flush_prompt(messages, path))).strip()
    except Exception as error:  # noqa: BLE001 - whatever fails in somebody's model, the messages must not be lost
        return plain, False, f"written without the model, which failed: {error}"
    if answer.strip("`*. ").upper() == NOTHING:
        return "", True, ""
    return (answer, True, "") if answer else (plain, False, "written without the model, which answered nothing")


# --- what was flushed already --------------------------------------------------------------------


def _state_of(session: Session) -> Mapping[str, Any]:
    state = session.entry.extra.get("memoryFlush")
    return state if isinstance(state, Mapping) else {}


def _next_span(session: Session, keep_last: int) -> _Span | None:
    start = _flushed_until(session, _state_of(session))
    end = len(session.messages) - keep_last
    return _span(session, start, end) if end > start else None


def _pending_span(session: Session, state: Mapping[str, Any]) -> _Span | None:
    if not state.get("pending") or not isinstance(state.get("text"), str) or not state.get("path"):
        return None
    end = _flushed_until(session, state)
    count = state.get("messages")
    start = max(0, end - count) if isinstance(count, int) else 0
    return _Span(start, end, str(state.get("mark") or ""))


def _flushed_until(session: Session, state: Mapping[str, Any]) -> int:
    """Return how many of the messages the session holds now were flushed, also after an edit or a compaction."""
    last_id = state.get("lastId")
    for position in range(len(session.messages), 0, -1):
        if last_id and session.messages[position - 1].id == last_id:
            return position
    total = state.get("total")
    return min(len(session.messages), max(0, total - _compacted(session))) if isinstance(total, int) else 0


def _remember(store: ConversationStore, session: Session, span: _Span, facts: Mapping[str, Any]) -> None:
    state = {
        "total": _compacted(session) + span.end,
        "lastId": session.messages[span.end - 1].id if span.end else None,
        "messages": span.end - span.start,
        "mark": span.mark,
        **facts,
    }
    kept = {key: value for key, value in state.items() if value is not None}
    store.set_state(session.entry.session_id, memory_flush=kept, memory_flush_at=now_ms())


def _compacted(session: Session) -> int:
    return sum(summary.original_message_count for summary in session.summaries)


def _span(session: Session, start: int, end: int) -> _Span:
    """The mark is made of the messages, so that the same ones always have the same."""
    digest = hashlib.sha256(session.entry.session_id.encode())
    for message in session.messages[start:end]:
        digest.update(f"\0{message.id}\0{message.role}\0{message.text}".encode("utf-8", "surrogatepass"))
    return _Span(start, end, digest.hexdigest()[:12])


def _source(name: str, messages: Sequence[Message], span: _Span) -> str:
    return f"session {name}, {len(messages)} messages, flush {span.mark}"


def _nothing(session: Session, note: str) -> Flushed:
    return Flushed(session.entry.session_id, "", 0, _flushed_until(session, _state_of(session)), note=note)


# --- texts ---------------------------------------------------------------------------------------


def flush_prompt(messages: Sequence[Message], path: str) -> str:
    """Return the prompt for a model that writes the entry."""
    lines = [f"{speaker}: {text[:LONGEST_PROMPT_TEXT]}" for speaker, text in _spoken(messages, fold=False)]
    conversation = "\n\n".join(lines).replace("</conversation>", "")
    return _PROMPT.format(path=path, nothing=NOTHING, conversation=conversation)


def agent_prompt(path: str) -> str:
    """Return the prompt for an agent that can write to its notes itself."""
    return _AGENT_PROMPT.format(path=path, nothing=NOTHING)


def plain_notes(messages: Sequence[Message]) -> str:
    """Return the messages as a list of shortened lines; empty when nobody said anything."""
    lines = [f"- {speaker}: {_shortened(text)}" for speaker, text in _spoken(messages, fold=True)]
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        lines = [*lines[:half], f"- ({len(lines) - MOST_LINES} more messages)", *lines[-half:]]
    return "\n".join(lines)


def plain_summary(messages: Sequence[Message]) -> str:
    """Return a summary that takes the place of the messages when there is no model: what the user asked, shortened."""
    times = [message.timestamp for message in messages if message.timestamp]
    days = sorted(
        {datetime.fromtimestamp(each / 1000).astimezone().date().isoformat() for each in (times[:1] + times[-1:])}
    )
    asked = [_shortened(text, 120) for speaker, text in _spoken(messages, fold=True) if speaker == "User"]
    when = f" of {' to '.join(days)}" if days else ""
    about = "; ".join(asked[:5]) + ("; ..." if len(asked) > 5 else "")
    return f"[Summary] {len(messages)} earlier messages{when}." + (f" The user said: {about}" if about else "")


def _spoken(messages: Sequence[Message], *, fold: bool) -> Iterator[tuple[str, str]]:
    """Yield who said what: users and assistants only, without recalled memory and heartbeats."""
    for message in messages:
        speaker = SPEAKERS.get(message.role)
        text = strip_fenced(message.text).strip()
        if speaker and text and not _HEARTBEAT.fullmatch(text):
            yield speaker, " ".join(text.split()) if fold else text


def _shortened(text: str, most: int = LONGEST_LINE) -> str:
    return text if len(text) <= most else text[: most - 3].rstrip() + "..."
