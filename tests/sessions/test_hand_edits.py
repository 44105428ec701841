"""Files that people or other programs wrote: read as they are, changed only where needed, repaired when broken."""

from __future__ import annotations

import pyjson5
import pytest

from notewell import SessionDamagedError

from .conftest import texts

OPENCLAW = """{
  // Metadata
  sessionId: "old-chat",
  version: 2,
  createdAt: 1704067200000,
  updatedAt: 1704070800000,

  // Message History
  messages: [
    {
      role: "user",
      content: "How do I implement JWT authentication?", // typed by Dana
      timestamp: 1704067200000,
    },
    {
      role: 'assistant',
      content: "JWT authentication requires...",
      timestamp: 1704067205000,
      usage: { inputTokens: 120, outputTokens: 350 },
    }
    // ...
  ],

  // Compaction Summaries (if compacted)
  compactedHistory: [
    { role: "system", content: "[Summary] Basics.", compactedAt: 1704069000000, originalMessageCount: 24, },
  ],
  mood: 'good', /* mine */
}
"""


@pytest.fixture
def old(store):
    store.create("first")
    path = store.folder / "chats" / "old-chat.json5"
    path.write_text(OPENCLAW, encoding="utf-8")
    return path


def test_a_file_of_version_2_is_read_as_it_is(store, old):
    session = store.get("old-chat")
    assert texts(session) == ["How do I implement JWT authentication?", "JWT authentication requires..."]
    assert [summary.original_message_count for summary in session.summaries] == [24]
    assert (session.entry.message_count, session.entry.input_tokens, session.entry.output_tokens) == (2, 120, 350)
    assert session.entry.extra == {"mood": "good"}
    assert old.read_text(encoding="utf-8") == OPENCLAW


def test_the_first_append_brings_it_to_version_3_and_keeps_every_comment(store, old):
    store.append("old-chat", {"role": "user", "content": "And refresh tokens?"})
    text = old.read_text(encoding="utf-8")
    for kept in (
        "// Metadata",
        "// typed by Dana",
        "    // ...",
        "// Compaction Summaries (if compacted)",
        "/* mine */",
        "role: 'assistant'",
    ):
        assert kept in text
    session = store.get("old-chat")
    assert texts(session)[2:] == ["And refresh tokens?"]
    assert (session.entry.message_count, session.entry.input_tokens) == (3, 120)
    assert pyjson5.decode(text)["version"] == 3
    before = text.encode()
    update = store.append("old-chat", {"role": "user", "content": "next"})  # in place from now on
    assert old.read_bytes()[: update.first_byte] == before[: update.first_byte]
    store.compact("old-chat", "More basics.", keep_last=1)
    assert [each.content for each in store.get("old-chat").summaries] == ["[Summary] Basics.", "More basics."]
    assert "/* mine */" in old.read_text(encoding="utf-8")


def test_a_file_without_a_version_may_hold_seconds_and_dates(store):
    store.create("first")
    path = store.folder / "chats" / "oldest.json5"
    path.write_text(
        "{createdAt: 1704067200, messages: [{role: 'user', content: 'a', timestamp: 1704067201.5},"
        " {role: 'user', content: 'b', timestamp: '2024-01-01T00:00:05Z'}]}",
        encoding="utf-8",
    )
    session = store.get("oldest")
    assert [message.timestamp for message in session.messages] == [1_704_067_201_500, 1_704_067_205_000]
    assert (session.entry.created_at, session.entry.updated_at) == (1_704_067_200_000, 1_704_067_205_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{}", [], id="nothing"),
        pytest.param("{messages: []}", [], id="one line"),
        pytest.param('{messages: [{role: "user", content: "a"}]}', ["a"], id="one line with a message"),
        pytest.param(
            '{"messages":[{"role":"user","content":"a","timestamp":"2026-01-02T03:04:05Z"}]}', ["a"], id="plain JSON"
        ),
        pytest.param(
            '\ufeff{\r\n  messages: [\r\n    {role: "user", content: "a"},\r\n  ],\r\n}\r\n', ["a"], id="Windows"
        ),
        pytest.param("{messages: [{role: 'user', content: 'a'}, // last\n]}", ["a"], id="a comment behind the comma"),
        pytest.param("{messages: [{role: 'user', content: 'a'} /* last */ ]}", ["a"], id="a comment and no comma"),
        pytest.param(
            "// top\n{messages: [{role: 'user', content: 'a'},\n// {role: 'user', content: 'b'},\n]}\n// end",
            ["a"],
            id="commented out",
        ),
        pytest.param(
            "{messages: [{role: 'user', content: 'a \\\n b'}], x: [']', '}']}", ["a  b"], id="a line that goes on"
        ),
        pytest.param("{'messages' : [ ] , }", [], id="a quoted key"),
        pytest.param(
            "{history: 1, messages: [], messages: [{role: 'user', content: 'z'}]}", ["z"], id="the last one counts"
        ),
    ],
)
def test_any_layout_can_be_appended_to(store, text, expected):
    store.create("first")
    path = store.folder / "chats" / "hand.json5"
    path.write_bytes(text.encode())
    assert texts(store.get("hand")) == expected
    store.append("hand", {"role": "user", "content": "one"})
    store.append("hand", {"role": "user", "content": "two"})
    store.update("hand", title="Mine")
    assert texts(store.get("hand")) == [*expected, "one", "two"]
    assert (store.entry("hand").message_count, store.entry("hand").title) == (len(expected) + 2, "Mine")
    assert pyjson5.decode(path.read_text(encoding="utf-8"))["title"] == "Mine"


EDITS = {
    "a comment among the messages": lambda text: text.replace('"Where do we go?"', '"Where do we go?" /* in May */', 1),
    "a comment behind the last": lambda text: text.replace("  ], // end", "    // more to come\n  ], // end"),
    "a comment after the last": lambda text: text.replace("},\n  ], // end", "}, // the end?\n  ], // end"),
    "no comma behind the last": lambda text: text.replace("},\n  ], // end", "}\n  ], // end"),
    "a field on top": lambda text: text.replace("{\n", "{\n  colour: 'red', // mine\n", 1),
    "a field in the foot": lambda text: text.replace("  updatedAt", "  colour: 'red', // mine\n  updatedAt"),
    "no last comma in the foot": lambda text: text.rstrip().removesuffix("}").rstrip().removesuffix(",") + "\n}\n",
    "no end mark": lambda text: text.replace(" // end of messages", ""),
    "no line break at the end": str.rstrip,
    "Windows line ends": lambda text: text.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_by_hand_survives_every_change(store, chat, edit):
    path = store.path_of(chat)
    path.write_bytes(edit(path.read_text(encoding="utf-8")).encode())
    marks = [mark for mark in ("/* in May */", "// more to come", "// the end?", "// mine") if mark in path.read_text()]
    store.append(chat, {"role": "user", "content": "three"})
    store.update(chat, title="Other")
    store.append(chat, {"role": "user", "content": "four"})
    session = store.get(chat)
    assert texts(session) == ["Where do we go?", "To Lisbon.", "three", "four"]
    assert (session.entry.title, session.entry.message_count, store.entry(chat).message_count) == ("Other", 4, 4)
    assert [mark for mark in marks if mark not in path.read_text(encoding="utf-8")] == []


def test_a_message_taken_out_by_hand_is_counted_out(store, chat):
    path = store.path_of(chat)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "To Lisbon" not in line), encoding="utf-8")
    assert store.entry(chat).message_count == 1
    store.append(chat, {"role": "user", "content": "on"})
    assert (store.entry(chat).message_count, texts(store.get(chat))) == (2, ["Where do we go?", "on"])


# --- damage --------------------------------------------------------------------------------------

DAMAGE = {
    "cut in the middle": (lambda data: data[: data.index(b"To Lisbon")], ["Where do we go?"]),
    "a broken line": (lambda data: data.replace(b'"content":"Where', b'"content":Where'), ["To Lisbon."]),
    "zeros at the end": (lambda data: data[: data.index(b"  ], //")] + bytes(200), ["Where do we go?", "To Lisbon."]),
    "no foot": (lambda data: data[: data.index(b"  updatedAt")], ["Where do we go?", "To Lisbon."]),
    "bytes that are no text": (
        lambda data: data.replace(b"To Lisbon", b"\xff\xfe"),
        ["Where do we go?", "\ufffd\ufffd."],
    ),
    "a broken head": (lambda data: data.replace(b'title: "Trip"', b"title: Tr ip"), ["Where do we go?", "To Lisbon."]),
    "empty": (lambda data: b"", []),
    "a message without a role": (lambda data: data.replace(b'"role":"user",', b""), ["To Lisbon."]),
}


@pytest.mark.parametrize(("damage", "saved"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_session_is_said_saved_and_alone(store, chat, damage, saved):
    other = store.create("other").session_id
    path = store.path_of(chat)
    broken = damage(path.read_bytes())
    path.write_bytes(broken)

    with pytest.raises(SessionDamagedError, match="the file of session 'chat-1' cannot be read") as raised:
        store.get(chat)
    assert raised.value.path == path
    assert "notewell sessions repair chat-1" in raised.value.hint
    assert path.read_bytes() == broken  # reading repairs nothing
    assert {entry.session_id: bool(entry.damage) for entry in store.list()}[other] is False
    store.append(other, {"role": "user", "content": "fine"})

    [done] = store.repair(chat)
    assert f"{len(saved)} messages were saved" in done
    [kept] = (store.folder / "damaged").iterdir()
    assert kept.read_bytes() == broken
    assert str(kept) in done
    session = store.get(chat)
    assert texts(session) == saved
    assert session.entry.title == "Trip"  # from the registry, where the file had lost it
    assert store.repair(chat) == ()


def test_a_damaged_session_is_listed_with_what_the_registry_knows(store, chat):
    store.path_of(chat).write_bytes(b"{")
    [entry] = store.list()
    assert (entry.session_id, entry.title) == (chat, "Trip")
    assert "cannot be read" in entry.damage


def test_a_conversation_goes_on_when_its_file_is_damaged(store, chat):
    path = store.path_of(chat)
    path.write_bytes(path.read_bytes()[:-30])
    update = store.append(chat, {"role": "user", "content": "hello?"})
    assert "2 messages were saved" in update.notes[0]
    assert texts(store.get(chat)) == ["Where do we go?", "To Lisbon.", "hello?"]
    assert store.append(chat, {"role": "user", "content": "fine"}).notes == ()


def test_what_was_flushed_outlives_the_damage(store, chat):
    store.set_state(
        chat, memory_flush={"total": 2, "lastId": store.get(chat).messages[-1].id}, memory_flush_at=7_000_000_000_000
    )
    path = store.path_of(chat)
    path.write_bytes(path.read_bytes().replace(b'"role":"user"', b'"role":user"'))
    store.repair(chat)
    entry = store.entry(chat)
    assert (entry.extra["memoryFlush"]["total"], entry.memory_flush_at) == (2, 7_000_000_000_000)


def test_messages_over_several_lines_are_saved_too(store, old):
    old.write_text(OPENCLAW.replace("mood: 'good'", "mood: good'"), encoding="utf-8")
    with pytest.raises(SessionDamagedError):
        store.get("old-chat")
    store.repair("old-chat")
    assert texts(store.get("old-chat")) == ["How do I implement JWT authentication?", "JWT authentication requires..."]
