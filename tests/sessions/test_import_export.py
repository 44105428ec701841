"""Conversations out as JSONL and in again, and the transcripts and session files of other programs."""

from __future__ import annotations

import json

import pytest

from notewell import SessionExistsError, SessionInputError
from notewell.sessions import Message, ToolCall, export_lines, files_to_import, import_file, import_lines
from tests.indexing.test_session_layouts import VERSION_2

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
    with pytest.raises(SessionInputError, match="no message to import") as raised:
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


# --- session files --------------------------------------------------------------------------------

SEEDED = "550e8400-e29b-41d4-a716-446655440000"


@pytest.mark.parametrize("ending", [".json5", ".json", ".JSON"])
def test_a_session_file_of_version_2_is_imported_with_all_it_holds(store, tmp_path, ending):
    import pyjson5

    path = tmp_path / f"any name{ending}"
    path.write_text(VERSION_2 if ending == ".json5" else json.dumps(pyjson5.decode(VERSION_2)), encoding="utf-8")
    done, entry = import_file(store, path)
    assert (entry.session_id, entry.kind, entry.message_count, done.added) == (SEEDED, "direct", 3, 3)
    assert (entry.created_at, entry.updated_at) == (1704067200000, 1704070800000)
    assert (entry.input_tokens, entry.output_tokens) == (120, 350)
    session = store.get(SEEDED)
    assert [message.role for message in session.messages] == ["user", "assistant", "tool"]
    assert session.messages[1].tool_calls == (ToolCall("call_abc123", "read", {"path": "src/auth/jwt.ts"}),)
    assert session.messages[1].thinking_blocks[0]["content"].startswith("First, I should")
    assert session.messages[2].timestamp == 1704067205000, "without a time of its own, that of the message before"
    assert [(each.original_message_count, each.compacted_at) for each in session.summaries] == [(24, 1704069000000)]


@pytest.mark.parametrize("group_id", ["120363@g.us", "-1001234567890", "crew"])
def test_a_file_of_a_group_is_found_by_the_group_s_id(store, tmp_path, group_id):
    path = tmp_path / "groups" / f"{group_id}.json5"
    path.parent.mkdir()
    path.write_text(VERSION_2, encoding="utf-8")
    _, entry = import_file(store, path)
    assert (entry.kind, entry.group_id) == ("group", group_id)
    assert store.entry(group_id).session_id == entry.session_id


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("{ messages: [", "line 1: not valid JSON5", id="torn"),
        pytest.param("{}", "no message to import", id="empty"),
        pytest.param("[1]", "not an object", id="a list"),
        pytest.param("{messages: 7}", "messages is not a list", id="no list"),
        pytest.param("{messages: [{content: 'x'}]}", "message 1: a message needs a role", id="no role"),
    ],
)
def test_a_session_file_that_is_none_is_refused(store, tmp_path, text, said):
    path = tmp_path / "a.json5"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SessionInputError, match=said) as raised:
        import_file(store, path)
    assert raised.value.hint
    assert not store.folder.exists()


# --- the same conversation once more ---------------------------------------------------------------

GROWING = {
    "OpenClaw": ("a.jsonl", OPENCLAW),
    "Claude Code": ("b.jsonl", CLAUDE),
    "Codex": ("c.jsonl", CODEX),
    "without ids or times": (
        "d e.jsonl",
        lines(*({"role": "user", "content": text} for text in ("ok", "no", "ok", "ok", "bye"))),
    ),
}


@pytest.mark.parametrize("program", GROWING)
def test_importing_twice_adds_only_what_is_new(store, tmp_path, program):
    name, all_lines = GROWING[program]
    path = tmp_path / name
    path.write_text("\n".join(all_lines[:4]), encoding="utf-8")
    first, entry = import_file(store, path)
    path.write_text("\n".join(all_lines), encoding="utf-8")
    second, _ = import_file(store, path)
    third, _ = import_file(store, path)
    whole = import_lines(all_lines).session
    assert (first.added + second.added, third.added) == (len(whole.messages), 0)
    assert texts(store.get(entry.session_id)) == [message.text for message in whole.messages]
    assert len(store.list()) == 1
    store.append(entry.session_id, {"role": "user", "content": "said here"})
    store.compact(entry.session_id, "They spoke.", keep_last=2)
    assert import_file(store, path)[0].added == 0, "what was compacted is still known"


def test_importing_twice_a_session_file(store, tmp_path):
    path = tmp_path / "a.json5"
    path.write_text(VERSION_2, encoding="utf-8")
    import_file(store, path)
    assert import_file(store, path)[0].added == 0
    path.write_text(VERSION_2.replace("    // ...", '    {role: "user", content: "And now?"},'), encoding="utf-8")
    assert import_file(store, path)[0].added == 1
    assert texts(store.get(SEEDED))[-1] == "And now?"
    assert store.get(SEEDED).entry.message_count == 4


def test_another_conversation_of_the_same_name_is_not_mixed_in(store, tmp_path):
    for folder, text in (("one", "hello"), ("two", "something else")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "chat.json").write_text(
            json.dumps({"messages": [{"role": "user", "content": text}]}), encoding="utf-8"
        )
    import_file(store, tmp_path / "one" / "chat.json")
    with pytest.raises(SessionExistsError, match="'chat'"):
        import_file(store, tmp_path / "two" / "chat.json")
    assert texts(store.get("chat")) == ["hello"]


@pytest.mark.parametrize("group_id", ["120363@g.us", "-1001234567890", SEEDED.upper()])
def test_a_group_whose_file_is_in_the_store_already_gets_no_second_session(store, tmp_path, group_id):
    files = [folder / "groups" / f"{group_id}.json5" for folder in (store.folder, tmp_path / "other")]
    for path in files:
        path.parent.mkdir(parents=True)
        path.write_text(VERSION_2, encoding="utf-8")
    done, entry = import_file(store, files[1])
    assert (entry.session_id, done.added) == (group_id, 0)
    assert len(store.list()) == 1


def test_a_direct_conversation_is_not_mixed_into_a_group(store, tmp_path):
    path = tmp_path / "a.json5"
    path.write_text(VERSION_2, encoding="utf-8")
    import_file(store, path, kind="group")
    path.write_text(VERSION_2.replace("    // ...", '    {role: "user", content: "a secret"},'), encoding="utf-8")
    with pytest.raises(SessionExistsError):
        import_file(store, path)
    assert "a secret" not in texts(store.get(SEEDED))


def test_a_folder_holds_conversations_and_other_things(store, chat, tmp_path):
    store.compact(chat, "They spoke.", keep_last=1)
    (store.folder / "damaged").mkdir()
    (store.folder / "damaged" / "x.json5").write_text("{")
    (store.folder / "sessions.json").write_text("{}")
    (store.folder / "deep" / "deeper").mkdir(parents=True)
    (store.folder / "deep" / "deeper" / "a.JSONL").write_text("")
    (store.folder / "link.jsonl").symlink_to(store.folder / "deep" / "deeper" / "a.JSONL")
    (store.folder / "notes.txt").write_text("")
    assert [path.relative_to(store.folder).as_posix() for path in files_to_import(store.folder)] == [
        "chats/chat-1.json5",
        "deep/deeper/a.JSONL",
    ]
