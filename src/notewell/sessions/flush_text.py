"""Messages that are about to be compacted in; a prompt for a model, or a plain entry or summary without one, out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from notewell.sessions.model import Message
from notewell.text.fences import strip_fenced

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
        speaker = {"user": "User", "assistant": "Assistant"}.get(message.role)
        text = strip_fenced(message.text).strip()
        if speaker and text and not _HEARTBEAT.fullmatch(text):
            yield speaker, " ".join(text.split()) if fold else text


def _shortened(text: str, most: int = LONGEST_LINE) -> str:
    return text if len(text) <= most else text[: most - 3].rstrip() + "..."
