"""Conversations are found by search whatever the layout of their file, and named where they cannot be read."""

from __future__ import annotations

import json

import pytest

from notewell import Memory
from notewell.sessions import ConversationStore
from tests.indexing.contents import contents_of, faults_of

pyjson5 = pytest.importorskip("pyjson5", reason="the session store needs the extra `sessions`")

SETTINGS = {"provider": "hashing", "sources": ["memory", "sessions"], "experimental__session_memory": True}

# OpenClaw's own documentation of a session file, word for word.
VERSION_2 = """{
  // Metadata
  sessionId: "550e8400-e29b-41d4-a716-446655440000",
  version: 2,
  createdAt: 1704067200000,
  updatedAt: 1704070800000,

  // Message History
  messages: [
    {
      role: "user",
      content: "How do I implement JWT authentication?",
      timestamp: 1704067200000,
    },
    {
      role: "assistant",
      content: "JWT authentication requires...",
      timestamp: 1704067205000,
      usage: {
        inputTokens: 120,
        outputTokens: 350,
      },
      thinkingBlocks: [
        {
          type: "thought",
          content: "First, I should explain the basic JWT flow...",
        },
      ],
      toolCalls: [
        {
          id: "call_abc123",
          name: "read",
          arguments: { path: "src/auth/jwt.ts" },
        },
      ],
    },
    {
      role: "tool",
      toolCallId: "call_abc123",
      name: "read",
      content: "// JWT utility functions\\n...",
    },
    // ...
  ],

  // Compaction Summaries (if compacted)
  compactedHistory: [
    {
      role: "system",
      content: "[Summary] Previous conversation covered JWT basics, middleware setup...",
      compactedAt: 1704069000000,
      originalMessageCount: 24,
    },
  ],
}
""".replace("\n\n", "\n  \n")
OLD = "550e8400-e29b-41d4-a716-446655440000"


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path, sync__sessions__delta_messages=1, **SETTINGS) as opened:
        yield opened


@pytest.fixture
def old(memory):
    path = memory.conversations.folder / "chats" / f"{OLD}.json5"
    path.parent.mkdir(parents=True)
    path.write_text(VERSION_2, encoding="utf-8")
    return path


def line_of(path, text: str) -> int:
    """Return the line where the message begins that contains the text."""
    lines = path.read_text(encoding="utf-8").split("\n")
    end = next(number for number, line in enumerate(lines, start=1) if text in line)
    return max(number for number, line in enumerate(lines[:end], start=1) if line.lstrip().startswith("{"))


def check_found(memory, path, text: str) -> None:
    hit = memory.search(text, source="sessions").hits[0]
    assert hit.path == f"sessions/chats/{path.name}"
    assert text in hit.snippet
    assert hit.first_line <= line_of(path, text) <= hit.last_line
    shown = memory.get(hit.path, first_line=line_of(path, text), lines=1)
    assert text in shown.text


def check_against_fresh(memory, tmp_path) -> None:
    before = contents_of(memory)
    with Memory.open(tmp_path, **SETTINGS) as other:
        other.index(force=True)
        assert contents_of(other) == before
    assert faults_of(memory) == []


def test_a_version_2_session_is_found(memory, old, tmp_path):
    report = memory.index()
    assert (report.added, report.problems) == (1, ())
    check_found(memory, old, "How do I implement JWT authentication?")
    check_found(memory, old, "JWT authentication requires...")
    assert not memory.search("utility functions", source="sessions", mode="keyword").hits  # a tool said it
    assert old.read_text(encoding="utf-8") == VERSION_2
    assert memory.index().unchanged == 1
    check_against_fresh(memory, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda store: store.append(OLD, {"role": "user", "content": "And refresh tokens?"}), id="append"),
        pytest.param(lambda store: store.update(OLD, title="Tokens"), id="update"),
        pytest.param(lambda store: store.repair(OLD), id="repair"),
    ],
)
def test_it_is_found_after_every_change(memory, old, tmp_path, change):
    memory.index()
    change(memory.conversations)
    memory.index()
    check_found(memory, old, "How do I implement JWT authentication?")
    if "refresh" in old.read_text(encoding="utf-8"):
        check_found(memory, old, "And refresh tokens?")
    check_against_fresh(memory, tmp_path)


@pytest.mark.parametrize("indent", [None, 1, 4, "\t"], ids=["one line", "1", "4", "tabs"])
def test_our_own_file_saved_by_an_editor_is_found(memory, tmp_path, indent):
    store = memory.conversations
    store.create("trip", title="Lisbon")
    store.append("trip", {"role": "user", "content": "Where is the ferry?"})
    memory.index()
    path = store.path_of("trip")
    values = pyjson5.decode(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(values, indent=indent), encoding="utf-8")
    assert memory.index().problems == ()
    hit = memory.search("ferry", source="sessions").hits[0]
    assert hit.snippet == "User: Where is the ferry?"
    store.append("trip", {"role": "assistant", "content": "At the quay."})
    memory.index()
    assert "At the quay." in memory.search("quay", source="sessions").hits[0].snippet
    assert [message.text for message in store.get("trip").messages] == ["Where is the ferry?", "At the quay."]
    check_against_fresh(memory, tmp_path)


def test_a_person_may_indent_a_single_message(memory, tmp_path):
    store = memory.conversations
    store.create("trip")
    for text in ("Where is the ferry?", "At the quay.", "Thanks."):
        store.append("trip", {"role": "user", "content": text})
    memory.index()
    path = store.path_of("trip")
    path.write_text(
        path.read_text(encoding="utf-8").replace('","content":"At', '",\n  "content":"At'), encoding="utf-8"
    )
    memory.index()
    check_found(memory, path, "Thanks.")
    check_found(memory, path, "At the quay.")
    check_against_fresh(memory, tmp_path)


def test_what_is_appended_to_a_file_of_another_layout_is_read_alone(memory, old):
    store = memory.conversations
    for number in range(500):
        store.append(OLD, {"role": "user", "content": f"subject{number} about the harbour " + "and so on " * 9})
    memory.index()
    size = old.stat().st_size
    store.append(OLD, {"role": "user", "content": "One more about the lighthouse"})
    report = memory.index()
    assert report.bytes_read < size / 2
    assert report.embedded == 1
    check_found(memory, old, "One more about the lighthouse")
    check_found(memory, old, "How do I implement JWT authentication?")


# --- what cannot be read -------------------------------------------------------------------------


@pytest.fixture
def corrupt(memory):
    store = memory.conversations
    store.create("trip")
    store.append("trip", {"role": "user", "content": "Where is the ferry?"}, {"role": "user", "content": "Lisbon"})
    path = store.path_of("trip")
    path.write_bytes(path.read_bytes().replace(b'"content":"Where', b'"content":Where'))
    return path


TOLD = (
    "sessions/chats/trip.json5: cannot be read as a session: line 9: not valid JSON5; "
    "run `notewell sessions repair trip`"
)


def test_a_conversation_that_cannot_be_read_is_named_everywhere(memory, corrupt):
    for report in (memory.index(), memory.index()):
        [problem] = report.problems
        assert f"{problem.path}: {problem.reason}" == TOLD
    for _ in range(2):
        answer = memory.search("Lisbon")
        assert TOLD in answer.notes
        assert answer.hits[0].snippet == "User: Lisbon"  # what can be read is found
        assert answer.index.stale is False
    status = memory.status(deep=True)
    assert TOLD in status.notes
    [check] = [check for check in status.checks if check.name == "conversations"]
    assert (check.ok, check.detail) == (False, TOLD)


def test_a_conversation_that_was_repaired_is_named_no_more(memory, corrupt, tmp_path):
    memory.index()
    memory.conversations.repair("trip")
    assert memory.index().problems == ()
    assert memory.search("Lisbon").notes == ()
    assert not any("cannot be read" in note for note in memory.status(deep=True).notes)
    assert not [check for check in memory.status(deep=True).checks if check.name == "conversations"]
    check_against_fresh(memory, tmp_path)


def test_a_group_is_not_told_which_conversation_is_corrupt(memory, corrupt):
    memory.index()
    assert not any("trip" in note for note in memory.search("Lisbon", chat="group").notes)


def test_the_store_and_the_index_agree_on_what_a_conversation_says(memory, old, corrupt):
    memory.index()
    listed = {entry.session_id: entry.damage for entry in ConversationStore(memory.conversations.folder).list()}
    assert bool(listed["trip"])
    assert not listed[OLD]
    said = [message.line for message in memory.conversations.get(OLD).messages if message.role != "tool"]
    shown = memory.get(f"sessions/chats/{OLD}.json5").text
    assert [line for line in shown.split("\n") if line] == said
