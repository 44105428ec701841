"""Writes what is worth keeping of a conversation to today's note before it is compacted, each message once.

The session's own file records the flush. It first states what will be written and where, then the note is written
unless it contains that mark, then the session records completion: after an interruption, the next flush knows which
step to repeat.
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

KEEP_LAST = 20  # messages that stay in the conversation, as in `compact`

NOTHING = "NO_REPLY"  # what an agent answers when there is nothing to keep, as in OpenClaw

LONGEST_LINE = 280  # characters of a message in a plain entry
MOST_LINES = 60  # of a plain entry: a screen or two; the session store has the whole conversation
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
    messages: int  # how many were new
    through: int  # how many messages from the beginning are flushed and may be compacted
    by_model: bool = False
    note: str = ""  # why nothing was written, or that an interrupted flush was finished


@dataclass(frozen=True, slots=True)
class _Span:
    """Messages of a session to flush: `start` up to but not including `end`."""

    session: Session
    start: int
    end: int
    mark: str

    @property
    def messages(self) -> Sequence[Message]:
        return self.session.messages[self.start : self.end]

    @property
    def source(self) -> str:
        return f"session {self.session.entry.session_id}, {self.end - self.start} messages, flush {self.mark}"


def flush(
    store: ConversationStore,
    session_id: str,
    write: WriteNote,
    *,
    summarize: Summarize | None = None,
    keep_last: int = KEEP_LAST,
    now: datetime | None = None,
) -> Flushed:
    """Append what is worth keeping of all but the `keep_last` newest messages to today's note.

    `summarize` is a model that answers a prompt with the entry, or NO_REPLY. Without it, or if it fails, the messages
    are shortened instead. Only one process flushes a session at a time; appends are not blocked.
    """
    if keep_last < 0:
        raise SessionInputError("the number of messages cannot be negative", hint="use 0 or more")
    with store.flushing(session_id):
        moment = now or datetime.now().astimezone()
        session = store.get(session_id)
        finished = _finish(store, session, write, moment)
        if finished:
            session = store.get(session_id)
        start, end = _flushed_until(session), len(session.messages) - keep_last
        if end <= start:
            note = "every message that would be compacted was flushed before"
            return finished or Flushed(session.entry.session_id, "", 0, start, note=note)
        span = _Span(session, start, end, _mark_of(session, start, end))
        path = f"memory/{moment.date().isoformat()}.md"
        text, by_model, failure = _entry(span.messages, path, summarize)
        if text:
            _remember(store, span, path=path, pending=True, text=text)
            write(path, text, source=span.source, mark=span.mark, when=moment)
        _remember(store, span, path=path if text else None)
        note = failure or ("" if text else "there was nothing worth keeping in it")
        return Flushed(session.entry.session_id, path if text else "", end - start, end, by_model, note)


def _finish(store: ConversationStore, session: Session, write: WriteNote, moment: datetime) -> Flushed | None:
    """Finish an interrupted flush, if there was one, in the note that it named."""
    state = _state_of(session)
    path, text, count = state.get("path"), state.get("text"), state.get("messages")
    if not state.get("pending") or not isinstance(text, str) or not path:
        return None
    end = _flushed_until(session)
    start = max(0, end - count) if isinstance(count, int) else 0
    span = _Span(session, start, end, str(state.get("mark") or ""))
    write(str(path), text, source=span.source, mark=span.mark, when=moment)
    _remember(store, span, path=path)
    note = "an interrupted flush was finished"
    return Flushed(session.entry.session_id, str(path), end - start, end, note=note)


def _entry(messages: Sequence[Message], path: str, summarize: Summarize | None) -> tuple[str, bool, str]:
    """Return the entry (empty if nothing is worth keeping), whether the model wrote it, and why not if it failed."""
    plain = plain_notes(messages)
    if summarize is None or not plain:
        return plain, False, ""
    try:
        answer = strip_fenced(summarize(flush_prompt(messages, path))).strip()
    except Exception as error:  # noqa: BLE001 - a failing model must not lose messages
        return plain, False, f"written without the model, which failed: {error}"
    if answer.strip("`*. ").upper() == NOTHING:
        return "", True, ""
    return (answer, True, "") if answer else (plain, False, "written without the model, which answered nothing")


# --- what was flushed already --------------------------------------------------------------------


def _state_of(session: Session) -> Mapping[str, Any]:
    state = session.entry.extra.get("memoryFlush")
    return state if isinstance(state, Mapping) else {}


def _flushed_until(session: Session) -> int:
    """Return how many of the session's current messages were flushed, even after an edit or a compaction."""
    state = _state_of(session)
    last_id = state.get("lastId")
    for position in range(len(session.messages), 0, -1):
        if last_id and session.messages[position - 1].id == last_id:
            return position
    total = state.get("total")
    return min(len(session.messages), max(0, total - _compacted(session))) if isinstance(total, int) else 0


def _remember(store: ConversationStore, span: _Span, **facts: object) -> None:
    session = span.session
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


def _mark_of(session: Session, start: int, end: int) -> str:
    """Return a mark derived from the messages: the same messages always have the same mark."""
    digest = hashlib.sha256(session.entry.session_id.encode())
    for message in session.messages[start:end]:
        digest.update(f"\0{message.id}\0{message.role}\0{message.text}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:12]


# --- texts ---------------------------------------------------------------------------------------


def flush_prompt(messages: Sequence[Message], path: str) -> str:
    """Return the prompt for a model that writes the entry."""
    lines = [f"{speaker}: {text[:LONGEST_PROMPT_TEXT]}" for speaker, text in _spoken(messages, fold=False)]
    conversation = "\n\n".join(lines).replace("</conversation>", "")
    return _PROMPT.format(path=path, nothing=NOTHING, conversation=conversation)


def agent_prompt(path: str) -> str:
    """Return the prompt for an agent that writes its notes itself."""
    return _AGENT_PROMPT.format(path=path, nothing=NOTHING)


def plain_notes(messages: Sequence[Message]) -> str:
    """Return the messages as a list of shortened lines; empty when nobody said anything."""
    lines = [f"- {speaker}: {_shortened(text)}" for speaker, text in _spoken(messages, fold=True)]
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        lines = [*lines[:half], f"- ({len(lines) - MOST_LINES} more messages)", *lines[-half:]]
    return "\n".join(lines)


def plain_summary(messages: Sequence[Message]) -> str:
    """Return a summary for use without a model: what the user asked, shortened."""
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
