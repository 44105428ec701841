"""What each program's records say, and what of them is left out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.sources.transcripts.messages import LeftOut, Message, NotARecord, milliseconds, record_in, spoken_in
from notewell.text.fences import fence
from tests.sources.transcripts.records import AT, claude, codex, codex_message, openclaw, text_block

SAID = [
    pytest.param(openclaw("user", "Hello"), "User: Hello", id="OpenClaw, a string"),
    pytest.param(
        openclaw("assistant", [{"type": "thinking", "thinking": "hm"}, text_block("Hi"), text_block("there")]),
        "Assistant: Hi there",
        id="OpenClaw, blocks",
    ),
    pytest.param(
        openclaw("assistant", [text_block("I look."), {"type": "toolCall", "name": "read", "arguments": {}}]),
        "Assistant: I look.",
        id="OpenClaw, text beside a tool call",
    ),
    pytest.param(claude("user", "Fix the  login\n\tbug"), "User: Fix the login bug", id="Claude Code, a string"),
    pytest.param(
        claude("assistant", [{"type": "thinking", "thinking": "x"}, text_block("Done."), {"type": "tool_use"}]),
        "Assistant: Done.",
        id="Claude Code, blocks",
    ),
    pytest.param(
        claude("user", [{"type": "tool_result", "content": "42"}, text_block("and this?")]),
        "User: and this?",
        id="Claude Code, text beside a tool result",
    ),
    pytest.param(
        claude("user", "<system-reminder>be nice</system-reminder>Go on"), "User: Go on", id="a reminder is taken out"
    ),
    pytest.param(codex_message("user", "what is 2+2?"), "User: what is 2+2?", id="Codex, user"),
    pytest.param(codex_message("assistant", "4"), "Assistant: 4", id="Codex, assistant"),
    pytest.param(
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "old"}]},
        "User: old",
        id="Codex, before the envelope",
    ),
    pytest.param({"role": "user", "content": "bare"}, "User: bare", id="a bare message"),
    pytest.param({"role": "assistant", "content": "x", "timestamp": 1704067205000}, "Assistant: x", id="our own store"),
    pytest.param(openclaw("user", "\ud800 lone \0 marks"), "User: \ufffd lone marks", id="what UTF-8 cannot hold"),
    pytest.param(openclaw("user", "a\u2028b\x0bc\u3000d"), "User: a b c d", id="every kind of white space"),
    pytest.param(
        openclaw("user", 'Conversation info (untrusted metadata):\n```json\n{"id": 1}\n```\n\nDinner at eight'),
        "User: Dinner at eight",
        id="facts about the sender",
    ),
    pytest.param(
        openclaw("user", "Why does it say HEARTBEAT_OK?"), "User: Why does it say HEARTBEAT_OK?", id="talk of it"
    ),
    pytest.param(
        openclaw("assistant", fence("old fact", "memory/a.md#L1") + " So: yes."),
        "Assistant: So: yes.",
        id="beside recall",
    ),
]


@pytest.mark.parametrize(("record", "line"), SAID)
def test_what_people_and_assistants_say_is_kept(record, line):
    message = spoken_in(record)
    assert isinstance(message, Message)
    assert message.line == line


LEFT_OUT = [
    pytest.param(openclaw("toolResult", [text_block("42")]), LeftOut.TOOL, id="OpenClaw, tool result"),
    pytest.param(openclaw("assistant", [{"type": "toolCall"}]), LeftOut.TOOL, id="OpenClaw, tool call alone"),
    pytest.param(openclaw("system", "You are"), LeftOut.OTHER_ROLE, id="system prompt"),
    pytest.param({"type": "session", "version": 3, "id": "x"}, LeftOut.NO_MESSAGE, id="OpenClaw, session head"),
    pytest.param({"type": "compaction", "summary": "so far"}, LeftOut.NO_MESSAGE, id="OpenClaw, compaction"),
    pytest.param(openclaw("assistant", "HEARTBEAT_OK"), LeftOut.HEARTBEAT, id="heartbeat"),
    pytest.param(openclaw("assistant", " **HEARTBEAT_OK**\n"), LeftOut.HEARTBEAT, id="heartbeat, emphasised"),
    pytest.param(openclaw("assistant", "NO_REPLY"), LeftOut.HEARTBEAT, id="silence"),
    pytest.param(
        openclaw("user", "Read HEARTBEAT.md if it exists. If nothing needs attention, reply HEARTBEAT_OK."),
        LeftOut.HEARTBEAT,
        id="heartbeat prompt",
    ),
    pytest.param(
        claude("user", [{"type": "tool_result", "content": "42"}]), LeftOut.TOOL, id="Claude Code, tool result"
    ),
    pytest.param(claude("assistant", [{"type": "tool_use"}]), LeftOut.TOOL, id="Claude Code, tool call"),
    pytest.param(claude("user", "x", isSidechain=True), LeftOut.SIDE_TALK, id="Claude Code, sub-agent"),
    pytest.param(claude("user", "x", isMeta=True), LeftOut.MACHINE, id="Claude Code, meta"),
    pytest.param(claude("user", "x", isCompactSummary=True), LeftOut.MACHINE, id="Claude Code, compact summary"),
    pytest.param(claude("assistant", "x", isApiErrorMessage=True), LeftOut.MACHINE, id="Claude Code, API error"),
    pytest.param({"type": "summary", "summary": "x", "leafUuid": "u"}, LeftOut.NO_MESSAGE, id="Claude Code, summary"),
    pytest.param({"type": "file-history-snapshot", "snapshot": {}}, LeftOut.NO_MESSAGE, id="Claude Code, snapshot"),
    pytest.param(
        claude("user", "<command-name>/clear</command-name>\n<command-args></command-args>"),
        LeftOut.MACHINE,
        id="Claude Code, command",
    ),
    pytest.param(claude("user", "<local-command-stdout>ok"), LeftOut.MACHINE, id="Claude Code, output cut off"),
    pytest.param(claude("user", "[Request interrupted by user]"), LeftOut.MACHINE, id="Claude Code, interruption"),
    pytest.param(codex({"type": "function_call", "name": "shell"}), LeftOut.TOOL, id="Codex, tool call"),
    pytest.param(codex({"type": "reasoning", "summary": []}), LeftOut.NO_MESSAGE, id="Codex, reasoning"),
    pytest.param(
        codex({"type": "user_message", "message": "x"}, kind="event_msg"), LeftOut.NO_MESSAGE, id="Codex, event"
    ),
    pytest.param(codex({"id": "x", "cwd": "/"}, kind="session_meta"), LeftOut.NO_MESSAGE, id="Codex, session meta"),
    pytest.param(codex_message("developer", "rules"), LeftOut.OTHER_ROLE, id="Codex, developer"),
    pytest.param(
        codex_message("user", "<environment_context>\n<cwd>/</cwd>\n</environment_context>"),
        LeftOut.MACHINE,
        id="Codex, environment",
    ),
    pytest.param(
        codex_message("user", "# AGENTS.md instructions for /x\n\n- a"), LeftOut.MACHINE, id="Codex, AGENTS.md"
    ),
    pytest.param({"role": "tool", "content": "42"}, LeftOut.TOOL, id="our own store, tool"),
    pytest.param({"role": "system", "content": "[Summary]"}, LeftOut.OTHER_ROLE, id="our own store, summary"),
    pytest.param(openclaw("user", "  \n "), LeftOut.EMPTY, id="white space"),
    pytest.param(openclaw("user", fence("old", "a.md#L1")), LeftOut.RECALLED, id="recalled memory"),
    pytest.param(openclaw("user", fence("old", "a.md")[:-8]), LeftOut.RECALLED, id="recalled memory, cut off"),
    pytest.param({"type": "user", "message": "flat"}, LeftOut.NO_MESSAGE, id="a shape nobody writes"),
    pytest.param({"type": ["x"], "message": {"role": {}}}, LeftOut.NO_MESSAGE, id="odd types"),
    pytest.param({}, LeftOut.NO_MESSAGE, id="an empty record"),
]


@pytest.mark.parametrize(("record", "reason"), LEFT_OUT)
def test_everything_else_is_left_out_for_a_reason(record, reason):
    assert spoken_in(record) is reason


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"{bad", id="no JSON"),
        pytest.param(b"[1, 2]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[" * 100_000, id="nested too deep"),
        pytest.param(b'{"n": ' + b"9" * 5000 + b"}", id="a number without end"),
        pytest.param(b"\xff\xfe\x00", id="no text"),
    ],
)
def test_what_is_no_record_is_told(line):
    with pytest.raises(NotARecord):
        record_in(line)


def test_broken_utf_8_inside_a_record_does_not_lose_it():
    assert record_in(b'{"role": "user", "content": "caf\xe9"}')["content"] == "caf\ufffd"


@pytest.mark.parametrize(
    ("value", "day"),
    [
        pytest.param(AT, "2026-03-04", id="ISO with Z"),
        pytest.param("2026-03-04T23:00:00-05:00", "2026-03-05", id="ISO with an offset"),
        pytest.param("2026-03-04T10:00:00", "2026-03-04", id="ISO without a zone is UTC"),
        pytest.param(1704067200000, "2024-01-01", id="milliseconds"),
        pytest.param(1704067200, "2024-01-01", id="seconds"),
        pytest.param("yesterday", None, id="no time"),
        pytest.param(None, None, id="none"),
        pytest.param(True, None, id="a boolean"),
        pytest.param(1e300, None, id="beyond all calendars"),
    ],
)
def test_moments(value, day):
    moment = milliseconds(value)
    assert (datetime.fromtimestamp(moment / 1000, UTC).date().isoformat() if moment else None) == day


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.sampled_from(["user", "text", "message"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)
KEYS = ("type", "role", "content", "message", "payload", "timestamp", "text", "isMeta")
RECORDS = st.dictionaries(
    st.sampled_from(KEYS),
    st.one_of(
        JSON,
        st.sampled_from(["message", "user", "assistant", "response_item"]),
        st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4),
    ),
    max_size=6,
)


@pytest.mark.slow
@settings(max_examples=300, derandomize=True)
@given(RECORDS)
def test_no_record_is_too_odd(record):
    said = spoken_in(record)
    assert isinstance(said, Message | LeftOut)
    if isinstance(said, Message):
        assert "\n" not in said.line
        said.line.encode()
