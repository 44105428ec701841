"""Conversations out as JSONL and in again, and the transcripts of other programs."""

from __future__ import annotations

import json

import pytest

from notewell import SessionExistsError, SessionInputError
from notewell.sessions import Message, ToolCall, export_lines, import_file, import_lines

from .conftest import texts


def lines(*records: object) -> list[str]:
    return [json.dumps(record) for record in records]


OPENCLAW = lines(
    {"type": "session", "version": 3, "id": "0a1b", "timestamp": "2026-11-15T10:00:00.000Z", "cwd": "/x"},
    {"type": "model_change", "id": "1", "modelId": "m"},
    {
        "type": "message",
        "id": "2",
        "timestamp": "2026-11-15T10:00:01.000Z",
        "message": {"role": "user", "content": "Hello world"},
    },
    {"type": "message", "id": "3", "message": {"role": "assistant", "content": [{"type": "text", "text": "Hi there"}]}},
    {
        "type": "message",
        "id": "4",
        "timestamp": "2026-11-15T10:00:03Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "A file."},
                {"type": "text", "text": "I look."},
                {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.md"}},
            ],
            "usage": {"input": 10, "output": 4},
        },
    },
    {
        "type": "message",
        "id": "5",
        "message": {
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": "read",
            "content": [{"type": "text", "text": "# A"}],
        },
    },
    {"type": "compaction", "id": "6", "summary": "They said hello.", "timestamp": "2026-11-15T10:00:09Z"},
)

CLAUDE = lines(
    {"type": "summary", "summary": "Wifi", "leafUuid": "x"},
    {
        "type": "user",
        "uuid": "u1",
        "sessionId": "5f0e-a",
        "timestamp": "2026-11-15T10:00:00Z",
        "message": {"role": "user", "content": "Fix the wifi"},
    },
    {
        "type": "user",
        "uuid": "u2",
        "sessionId": "5f0e-a",
        "isMeta": True,
        "message": {"role": "user", "content": "<caveat>"},
    },
    {
        "type": "assistant",
        "uuid": "u3",
        "sessionId": "5f0e-a",
        "timestamp": "2026-11-15T10:00:05Z",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Hm."}],
            "usage": {"input_tokens": 7, "output_tokens": 3},
        },
    },
    {
        "type": "assistant",
        "uuid": "u4",
        "sessionId": "5f0e-a",
        "timestamp": "2026-11-15T10:00:06Z",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Restarting."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "reboot"}},
            ],
            "usage": {"input_tokens": 7, "output_tokens": 3},
        },
    },
    {
        "type": "user",
        "uuid": "u5",
        "sessionId": "5f0e-a",
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]},
    },
    {
        "type": "assistant",
        "uuid": "u6",
        "sessionId": "5f0e-a",
        "isSidechain": True,
        "message": {"role": "assistant", "content": "side"},
    },
)

CODEX = lines(
    {
        "timestamp": "2026-11-15T10:00:00Z",
        "type": "session_meta",
        "payload": {"id": "c0de-1", "timestamp": "2026-11-15T10:00:00Z"},
    },
    {
        "timestamp": "2026-11-15T10:00:01Z",
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List files"}]},
    },
    {"timestamp": "2026-11-15T10:00:02Z", "type": "event_msg", "payload": {"type": "token_count"}},
    {
        "timestamp": "2026-11-15T10:00:02Z",
        "type": "response_item",
        "payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Use ls."}]},
    },
    {
        "timestamp": "2026-11-15T10:00:03Z",
        "type": "response_item",
        "payload": {"type": "function_call", "name": "shell", "arguments": '{"cmd": "ls"}', "call_id": "k1"},
    },
    {
        "timestamp": "2026-11-15T10:00:04Z",
        "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": "k1", "output": "a.md"},
    },
    {
        "timestamp": "2026-11-15T10:00:05Z",
        "type": "response_item",
        "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One file."}]},
    },
)


def test_openclaw():
    done = import_lines(OPENCLAW)
    assert done.session.entry.session_id == "0a1b"
    assert [(message.role, message.text) for message in done.session.messages] == [
        ("user", "Hello world"), ("assistant", "Hi there"), ("assistant", "I look."), ("tool", "# A"),
    ]  # fmt: skip
    looked = done.session.messages[2]
    assert looked.tool_calls == (ToolCall("c1", "read", {"path": "a.md"}),)
    assert looked.thinking_blocks == ({"type": "thought", "content": "A file."},)
    assert looked.usage == {"inputTokens": 10, "outputTokens": 4}
    assert (done.session.messages[3].tool_call_id, done.session.messages[3].name) == ("c1", "read")
    assert [summary.content for summary in done.session.summaries] == ["They said hello."]
    assert done.session.messages[0].timestamp == 1_794_736_801_000
    assert done.left_out == {"type model_change": 1}


def test_claude_code():
    done = import_lines(CLAUDE)
    assert done.session.entry.session_id == "5f0e-a"
    assert [(message.role, message.text) for message in done.session.messages] == [
        ("user", "Fix the wifi"), ("assistant", ""), ("assistant", "Restarting."), ("tool", "done"),
    ]  # fmt: skip
    assert done.session.messages[2].tool_calls == (ToolCall("t1", "Bash", {"command": "reboot"}),)
    assert [message.usage for message in done.session.messages] == [
        None,
        {"inputTokens": 7, "outputTokens": 3},
        None,
        None,
    ]
    assert done.left_out == {"meta": 1, "sidechain": 1, "type summary": 1}


def test_codex():
    done = import_lines(CODEX)
    assert done.session.entry.session_id == "c0de-1"
    assert [(message.role, message.text) for message in done.session.messages] == [
        ("user", "List files"), ("assistant", ""), ("assistant", ""), ("tool", "a.md"), ("assistant", "One file."),
    ]  # fmt: skip
    assert done.session.messages[2].tool_calls == (ToolCall("k1", "shell", {"cmd": "ls"}),)
    assert done.left_out == {"type event_msg": 1}


def test_plain_messages_and_bad_lines():
    done = import_lines(
        ["", "{", "7", '{"role": "user", "content": "plain"}', '{"role": 3}', "[" * 5000], session_id="x"
    )
    assert [message.text for message in done.session.messages] == ["plain"]
    assert done.left_out == {"not JSON": 2, "not a record": 1, "not a message": 1}


def test_a_file_without_messages_is_refused():
    with pytest.raises(SessionInputError, match="no message in it") as raised:
        import_lines(['{"type": "session", "id": "a"}'])
    assert "Claude Code" in raised.value.hint


def test_what_is_exported_comes_in_again_as_it_was(store):
    name = store.create(group_id="crew", title="Crew", queue_cap=3).session_id
    store.append(
        name,
        {"role": "user", "content": "a\nb"},
        Message("assistant", "c", usage={"inputTokens": 2, "outputTokens": 1}),
    )
    store.append(name, {"role": "tool", "content": [{"type": "text", "text": "d"}], "odd": [1]})
    store.compact(name, "They said a.", keep_last=2)
    before = store.get(name)
    exported = list(store.export_jsonl(name))
    assert all("\n" not in line for line in exported)
    done = import_lines(exported)
    store.delete(name)
    store.restore(done.session)
    after = store.get(name)
    assert (after.messages, after.summaries) == (before.messages, before.summaries)
    assert (after.entry.title, after.entry.kind, after.entry.queue_cap, after.entry.group_id) == (
        "Crew",
        "group",
        3,
        "crew",
    )
    assert list(export_lines(after)) == exported
    with pytest.raises(SessionExistsError):
        store.restore(done.session)


@pytest.mark.parametrize(
    ("file", "session_id", "expected"),
    [
        pytest.param("Chat-A.jsonl", "", "chat-a", id="the name of the file"),
        pytest.param("Chat-A.jsonl", "mine", "mine", id="a given id"),
    ],
)
def test_a_file_becomes_a_session(store, tmp_path, file, session_id, expected):
    path = tmp_path / file
    path.write_text('{"role": "user", "content": "hello"}\n{"role": "user", "conte', encoding="utf-8")
    done, entry = import_file(store, path, session_id=session_id, kind="group")
    assert (entry.session_id, entry.kind, entry.message_count) == (expected, "group", 1)
    assert done.left_out == {"not JSON": 1}
    assert texts(store.get(expected)) == ["hello"]


def test_an_id_of_a_transcript_cannot_lead_out_of_the_store(store, tmp_path):
    path = tmp_path / "a b.jsonl"
    path.write_text(
        "\n".join(lines({"type": "session", "id": "../../evil"}, {"role": "user", "content": "x"})), encoding="utf-8"
    )
    _, entry = import_file(store, path)
    assert store.path_of(entry.session_id).parent == store.folder / "chats"
    assert not (tmp_path / "evil.json5").exists()
