"""What the session store does with sessions: create, append, update, list, compact, archive, delete."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyjson5
import pytest

from notewell import (
    ConversationError,
    ConversationStore,
    NotewellError,
    SessionBusyError,
    SessionExistsError,
    SessionInputError,
    SessionNotFoundError,
    SessionTooNewError,
)
from notewell.sessions import Message, ToolCall

from .conftest import texts

FULL = Message(
    role="assistant",
    content="JWT needs a key.",
    timestamp=1_704_067_205_000,
    usage={"inputTokens": 120, "outputTokens": 350},
    thinking_blocks=({"type": "thought", "content": "First the flow."},),
    tool_calls=(ToolCall("call_1", "read", {"path": "src/auth/jwt.ts"}),),
)
ANSWER = Message("tool", "// JWT\n", 1_704_067_206_000, tool_call_id="call_1", name="read")


def test_a_new_session_is_an_empty_file_that_any_json5_reader_reads(store):
    entry = store.create(title="Trip", channel="telegram", origin={"from": "Dana"}, thinking_level="low")
    read = pyjson5.decode((store.folder / entry.session_file).read_text(encoding="utf-8"))
    assert (read["version"], read["messages"], read["messageCount"]) == (3, [], 0)
    assert (read["sessionId"], read["title"], read["channel"]) == (entry.session_id, "Trip", "telegram")
    assert store.get(entry.session_id).entry == entry == store.entry(entry.session_id)
    assert entry.session_file == f"chats/{entry.session_id}.json5"


def test_messages_come_back_as_they_were(store):
    name = store.create().session_id
    update = store.append(name, {"role": "user", "content": "How?"}, FULL, ANSWER)
    session = store.get(name)
    assert session.messages == update.messages
    assert session.messages[1].tool_calls == FULL.tool_calls
    assert session.messages[1].thinking_blocks == FULL.thinking_blocks
    assert session.messages[2].tool_call_id == "call_1"
    assert (session.entry.input_tokens, session.entry.output_tokens, session.entry.message_count) == (120, 350, 3)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("two\nlines\r\n and \t tab", id="line breaks"),
        pytest.param("  ], // end of messages\n}\n", id="our own end mark"),
        pytest.param("quotes \" and \\ and '", id="quotes"),
        pytest.param("\u2028\u2029\x00\x07\ufeff", id="odd characters"),
        pytest.param("日本語 العربية 🎉", id="other writings"),
        pytest.param("", id="empty"),
        pytest.param("x" * 300_000, id="longer than the first look"),
    ],
)
def test_any_text_survives(store, content):
    name = store.create().session_id
    for _ in range(3):
        store.append(name, {"role": "user", "content": content})
    assert texts(store.get(name)) == [content] * 3
    assert store.entry(name).message_count == 3


def test_half_a_surrogate_pair_becomes_the_replacement_character(store):
    name = store.create().session_id
    update = store.append(name, {"role": "user", "content": "a\ud800b"})
    assert texts(store.get(name)) == ["a\ufffdb"] == [message.text for message in update.messages]


def test_unknown_fields_of_a_message_are_kept(store):
    name = store.create().session_id
    store.append(name, {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image"}], "mood": "good"})
    message = store.get(name).messages[0]
    assert (message.text, dict(message.extra), len(message.content)) == ("hi", {"mood": "good"}, 2)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        pytest.param({"content": "x"}, "a message needs a role", id="no role"),
        pytest.param({"role": " ", "content": "x"}, "a message needs a role", id="blank role"),
        pytest.param({"role": "user", "content": 3}, "text or a list of blocks", id="a number as content"),
        pytest.param(
            {"role": "user", "content": "x", "odd": float("nan")}, "cannot be written as JSON", id="no number"
        ),
        pytest.param({"role": "user", "content": "x", "odd": object()}, "cannot be written as JSON", id="no value"),
    ],
)
def test_what_is_no_message_is_refused_and_changes_nothing(store, chat, message, said):
    before = store.path_of(chat).read_bytes()
    with pytest.raises(SessionInputError, match=said) as raised:
        store.append(chat, {"role": "user", "content": "good"}, message)
    assert raised.value.hint
    assert store.path_of(chat).read_bytes() == before


def test_nesting_has_an_end(store, chat):
    deep: object = "x"
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(SessionInputError, match="nested deeper"):
        store.append(chat, {"role": "user", "content": "x", "odd": deep})
    assert len(store.get(chat).messages) == 2


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "/etc/passwd",
        "a\0b",
        "a\nb",
        "x" * 300,
        None,
        7,
    ],
)
@pytest.mark.parametrize("call", ["get", "append", "delete", "archive", "create", "files_of"])
def test_ids_that_are_paths_or_no_names_are_refused(store, name, call):
    if call == "create" and not name:
        return  # no id: a new one is made
    arguments = [{"role": "user", "content": "x"}] if call == "append" else []
    expected = "is not a session id" if isinstance(name, str) else "session_id must be text"
    with pytest.raises(SessionInputError, match=expected):
        getattr(store, call)(name, *arguments)
    assert not store.folder.exists()


@pytest.mark.parametrize("name", ["C:x", "con", "NUL", "a.b", "a b", "-x", "x" * 129, "ü", "120363@g.us"])
def test_ids_that_are_no_file_names_everywhere_are_found_but_not_created(store, name):
    with pytest.raises(SessionInputError, match="is not a session id"):
        store.create(name)
    with pytest.raises(SessionNotFoundError):
        store.append(name, {"role": "user", "content": "x"})
    with pytest.raises(SessionNotFoundError):
        store.delete(name)
    assert not store.folder.exists()


def test_case_does_not_make_another_session(store):
    store.create("Chat-A")
    with pytest.raises(SessionExistsError):
        store.create("chat-a")
    assert store.exists("CHAT-a")


def test_a_group_is_found_again_by_its_own_id(store):
    entry = store.create(group_id="120363@g.us", channel="whatsapp", group_activation="mention")
    assert (entry.kind, entry.group_id) == ("group", "120363@g.us")
    assert entry.session_file.startswith("groups/120363-g-us-")
    with pytest.raises(SessionExistsError):
        store.create(group_id="120363@g.us")
    assert store.create(group_id="120363-g.us").session_id != entry.session_id


def test_the_same_id_cannot_be_a_chat_and_a_group(store, chat):
    with pytest.raises(SessionExistsError, match="session 'chat-1' already exists"):
        store.create(chat, kind="group")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"colour": "red"}, "'colour' is not a field", id="unknown"),
        pytest.param({"message_count": 3}, "'message_count' is not a field", id="the store's own"),
        pytest.param({"thinking_level": "much"}, "thinking_level = 'much'", id="not a choice"),
        pytest.param({"queue_cap": "3"}, "queue_cap = '3'", id="text for a number"),
        pytest.param({"queue_cap": True}, "queue_cap = True", id="yes for a number"),
        pytest.param({"origin": "Dana"}, "origin = 'Dana'", id="text for a table"),
        pytest.param({"kind": "crowd"}, "'kind' is not a field", id="the kind"),
    ],
)
def test_wrong_fields_are_refused(store, chat, fields, said):
    with pytest.raises(SessionInputError, match=said):
        store.update(chat, **fields)


def test_an_unknown_kind_is_refused(store):
    with pytest.raises(SessionInputError, match="is not a kind") as raised:
        store.create(kind="crowd")
    assert raised.value.hint == "use direct or group"


def test_fields_are_set_and_taken_away(store, chat):
    changed = store.update(chat, title="Journey", model_override="m-1", delivery_context={"to": "x"})
    assert (changed.title, changed.model_override, changed.delivery_context) == ("Journey", "m-1", {"to": "x"})
    assert store.update(chat, model_override=None).model_override is None
    assert "modelOverride" not in store.path_of(chat).read_text(encoding="utf-8")
    assert texts(store.get(chat)) == ["Where do we go?", "To Lisbon."]


def test_the_newest_comes_first_and_kinds_are_listed_apart(store, chat):
    group = store.create(group_id="g-1").session_id
    store.append(chat, {"role": "user", "content": "later"})
    time.sleep(0.002)  # sessions are ordered by the millisecond of their last message
    store.append(group, {"role": "user", "content": "latest"})
    assert [entry.session_id for entry in store.list()] == [group, chat]
    assert [entry.session_id for entry in store.list(kind="direct")] == [chat]
    assert [entry.session_id for entry in store.list(kind="group")] == [group]


def test_a_store_that_is_not_there_yet_is_empty_and_reading_makes_nothing(store):
    assert store.list() == []
    assert not store.exists("chat-1")
    with pytest.raises(SessionNotFoundError, match="no such session: 'chat-1'"):
        store.get("chat-1")
    assert not store.folder.exists()


def test_compaction_puts_a_summary_in_place_and_keeps_the_originals(store, chat):
    store.append(chat, *({"role": "user", "content": f"m{number}"} for number in range(8)))
    session = store.compact(chat, "We chose Lisbon.", keep_last=3)
    assert texts(session) == ["m5", "m6", "m7"]
    assert [(each.content, each.original_message_count) for each in session.summaries] == [("We chose Lisbon.", 7)]
    assert (session.entry.compaction_count, session.entry.message_count) == (1, 3)
    [kept] = (store.folder / "compacted").iterdir()
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    assert [line["message"]["content"] for line in lines[1:]] == [
        "Where do we go?",
        "To Lisbon.",
        *(f"m{n}" for n in range(5)),
    ]
    again = store.compact(chat, "Then we counted.", through=1)
    assert [each.content for each in again.summaries] == ["We chose Lisbon.", "Then we counted."]
    assert len(list((store.folder / "compacted").iterdir())) == 2
    store.append(chat, {"role": "user", "content": "on"})
    assert texts(store.get(chat)) == ["m6", "m7", "on"]


def test_compaction_with_nothing_to_do_changes_nothing(store, chat):
    before = store.path_of(chat).read_bytes()
    assert len(store.compact(chat, "x", keep_last=2).messages) == 2
    assert store.path_of(chat).read_bytes() == before
    for wrong in ({"keep_last": -1}, {"through": -1}):
        with pytest.raises(SessionInputError, match="cannot be negative"):
            store.compact(chat, "x", **wrong)
    with pytest.raises(SessionInputError, match="a summary of the messages is needed"):
        store.compact(chat, "  ", keep_last=0)


def test_an_archived_session_is_out_of_the_list_but_not_gone(store, chat):
    entry = store.archive(chat)
    assert (entry.session_file, bool(entry.archived_at)) == ("archive/chats/chat-1.json5", True)
    assert store.list() == []
    assert [each.session_id for each in store.list(archived=True)] == [chat]
    store.append(chat, {"role": "user", "content": "still here"})
    assert len(store.get(chat).messages) == 3
    with pytest.raises(SessionExistsError):
        store.create(chat)
    assert store.unarchive(chat).archived_at is None
    assert [each.session_id for each in store.list()] == [chat]
    assert store.unarchive(chat).session_file == "chats/chat-1.json5"


def test_delete_leaves_nothing(store, chat):
    store.append(chat, {"role": "user", "content": "canary-7731"})
    store.compact(chat, "canary-7731 again", keep_last=0)
    store.path_of(chat).write_text("{canary-7731", encoding="utf-8")
    store.append(chat, {"role": "user", "content": "canary-7731"})
    gone = store.delete(chat)
    assert {path.split("/")[0] for path in gone} == {"chats", "compacted", "damaged", ".journal"}
    left = [path for path in store.folder.rglob("*") if path.is_file()]
    assert [path for path in left if b"canary-7731" in path.read_bytes() or "chat-1.json5" in path.name] == []
    with pytest.raises(SessionNotFoundError):
        store.delete(chat)
    assert "chat-1" not in (store.folder / "registry.json5").read_text(encoding="utf-8")


def test_a_session_of_a_newer_release_is_left_alone(store, chat):
    path = store.path_of(chat)
    path.write_text(path.read_text(encoding="utf-8").replace("version: 3", "version: 99"), encoding="utf-8")
    before = path.read_bytes()
    for call in (
        store.get,
        lambda name: store.update(name, title="x"),
        lambda name: store.compact(name, "x", keep_last=0),
    ):
        with pytest.raises(SessionTooNewError, match="newer release"):
            call(chat)
    assert path.read_bytes() == before


def test_a_busy_session_says_so_and_others_go_on(store, chat):
    other = store.create("other").session_id
    impatient = ConversationStore(store.folder, lock_timeout_s=0.05)
    with store._files.locked(chat):
        with pytest.raises(SessionBusyError, match="another process has been writing session 'chat-1'"):
            impatient.append(chat, {"role": "user", "content": "x"})
        impatient.append(other, {"role": "user", "content": "x"})
        assert len(impatient.get(chat).messages) == 2  # reading needs no lock
    impatient.append(chat, {"role": "user", "content": "x"})


def test_threads_do_not_lose_messages(store, chat):
    def write(number):
        for step in range(20):
            store.append(chat, {"role": "user", "content": f"{number}-{step}"})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    written = texts(store.get(chat))[2:]
    assert sorted(written) == sorted(f"{number}-{step}" for number in range(4) for step in range(20))
    for number in range(4):
        assert [text for text in written if text.startswith(f"{number}-")] == [f"{number}-{step}" for step in range(20)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("lisbon", [("chat-1", 2)], id="one word"),
        pytest.param("TO  lisbon.", [("chat-1", 2)], id="every word, any case"),
        pytest.param("lisbon madrid", [], id="a word that is missing"),
        pytest.param("go", [("old", 1), ("chat-1", 1)], id="the newest first, archived too"),
        pytest.param("  ", [], id="no words"),
    ],
)
def test_search_reads_the_files(store, chat, words, expected):
    store.append(store.create("old", kind="group").session_id, {"role": "user", "content": "Let us go"})
    store.archive("old")
    store.create("broken")
    store.path_of("broken").write_text("{", encoding="utf-8")
    assert [(found.entry.session_id, found.number) for found in store.search(words)] == expected
    assert len(store.search("go", limit=1)) == 1
    assert [found.entry.session_id for found in store.search("go", kind="direct")] == [chat]
    with pytest.raises(SessionInputError, match="at least 1"):
        store.search("go", limit=0)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts what a process reads and writes")
def test_an_append_reads_and_writes_as_much_in_a_long_conversation_as_in_an_empty_one(store, chat):
    def traffic(name):
        before = io_counts()
        store.append(name, {"role": "user", "content": "one more"})
        return [after - start for after, start in zip(io_counts(), before, strict=True)]

    def io_counts():
        facts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
        return int(facts["rchar"]), int(facts["wchar"])

    store.append(chat, *({"role": "user", "content": "x" * 400} for _ in range(10_000)))
    inode = store.path_of(chat).stat().st_ino
    short, long = traffic(store.create().session_id), traffic(chat)
    assert store.path_of(chat).stat().st_size > 4_000_000
    assert store.path_of(chat).stat().st_ino == inode
    assert long[0] < short[0] + 20_000
    assert long[1] < short[1] + 20_000


def test_without_the_extra_it_says_what_to_install(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyjson5", None)
    assert store.list() == []
    with pytest.raises(ConversationError, match="need pyjson5") as raised:
        store.create("x")
    assert "notewell[sessions]" in raised.value.hint
    assert not store.folder.exists()


def test_a_session_of_a_newer_release_keeps_nobody_from_listing_the_others(store, chat):
    store.create("new")
    store.path_of("new").write_text("{version: 99}", encoding="utf-8")
    assert {entry.session_id: entry.damage.partition(" (")[0] for entry in store.list()} == {
        chat: "",
        "new": "session '' was written by a newer release",
    }


# --- events --------------------------------------------------------------------------------------


def test_an_append_is_announced_when_it_can_be_read_at_the_place_it_says(store, chat):
    seen = []

    def look(update):
        with update.path.open("rb") as file:
            file.seek(update.first_byte)
            lines = file.read(update.end_byte - update.first_byte).decode().splitlines()
        seen.append(
            (update.session_id, update.kind, [json.loads(line.rstrip().rstrip(","))["content"] for line in lines])
        )

    stop = store.on_update(look)
    store.append(chat, {"role": "user", "content": "one"}, {"role": "user", "content": "two"})
    store.append(chat, {"role": "user", "content": "three"})
    stop()
    stop()
    store.append(chat, {"role": "user", "content": "four"})
    assert seen == [(chat, "direct", ["one", "two"]), (chat, "direct", ["three"])]


def test_spans_of_appends_follow_each_other(store, chat):
    first = store.append(chat, {"role": "user", "content": "one"})
    second = store.append(chat, {"role": "user", "content": "two"})
    assert second.first_byte == first.end_byte


def test_a_listener_that_fails_does_not_make_the_append_fail(store, chat, caplog):
    def fail(update):
        raise ValueError("no room")

    seen = []
    store.on_update(fail)
    store.on_update(seen.append)
    with caplog.at_level(logging.ERROR, "notewell.sessions"):
        store.append(chat, {"role": "user", "content": "x"})
    assert len(seen) == 1
    assert "no room" in caplog.text
    assert len(store.get(chat).messages) == 3


def test_a_listener_may_write_itself(store, chat):
    store.create("other")
    store.on_update(lambda update: update.session_id == chat and store.append("other", *update.messages))
    store.append(chat, {"role": "user", "content": "copied"})
    assert texts(store.get("other")) == ["copied"]


# --- the registry --------------------------------------------------------------------------------


def registry_of(store):
    return pyjson5.decode((store.folder / "registry.json5").read_text(encoding="utf-8"))


def test_the_registry_lists_every_session_and_an_append_does_not_touch_it(store, chat):
    store.create(group_id="g-1", title="Crew")
    registry = store.folder / "registry.json5"
    before = registry.stat()
    store.append(chat, {"role": "user", "content": "x"})
    after = registry.stat()
    assert (before.st_mtime_ns, before.st_size, before.st_ino) == (after.st_mtime_ns, after.st_size, after.st_ino)
    listed = {each["sessionId"]: each for each in registry_of(store)["sessions"]}
    assert {name: each["sessionFile"] for name, each in listed.items()} == {
        "chat-1": "chats/chat-1.json5",
        "g-1": "groups/g-1.json5",
    }
    assert listed["g-1"]["title"] == "Crew"


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.unlink(), id="deleted"),
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:-40]), id="cut short"),
        pytest.param(lambda path: path.write_text('{sessions: "none"}'), id="something else"),
        pytest.param(lambda path: path.write_bytes(b"\xff\xfe\x00"), id="not text"),
    ],
)
def test_the_registry_is_made_anew_from_the_sessions(store, chat, damage):
    store.archive(store.create("old", title="Old").session_id)
    damage(store.folder / "registry.json5")
    assert [entry.session_id for entry in store.list()] == [chat]
    store.create("new")
    assert {each["sessionId"] for each in registry_of(store)["sessions"]} == {chat, "old", "new"}


def test_comments_in_the_registry_are_kept(store, chat):
    registry = store.folder / "registry.json5"
    text = registry.read_text(encoding="utf-8").replace("  sessions: [\n", "  sessions: [\n    // mine\n")
    registry.write_text(text, encoding="utf-8")
    store.create("new")
    store.update(chat, title="Other")
    store.delete("new")
    assert "    // mine\n" in registry.read_text(encoding="utf-8")
    assert [each["title"] for each in registry_of(store)["sessions"]] == ["Other"]


def test_rebuilding_the_registry_on_request(store, chat):
    (store.folder / "registry.json5").write_text("{version: 1, sessions: []}", encoding="utf-8")
    assert store.rebuild_registry() == 1
    assert [each["sessionId"] for each in registry_of(store)["sessions"]] == [chat]


def test_a_file_copied_in_by_hand_is_a_session(store, chat):
    other = store.path_of(chat).with_name("copied.json5")
    other.write_bytes(store.path_of(chat).read_bytes())
    (other.with_name(".hidden.json5")).write_text("{}", encoding="utf-8")
    assert {entry.session_id for entry in store.list()} == {chat, "copied"}
    assert store.get("copied").entry.session_id == "copied"


@pytest.mark.skipif(os.name == "nt", reason="making links needs special rights on Windows")
def test_a_link_is_no_session(store, chat, tmp_path):
    secret = tmp_path / "secret.json5"
    secret.write_text('{messages: [{role: "user", content: "secret"}]}', encoding="utf-8")
    (store.folder / "chats" / "linked.json5").symlink_to(secret)
    assert [entry.session_id for entry in store.list()] == [chat]
    for call in (store.get, lambda name: store.append(name, {"role": "user", "content": "x"})):
        with pytest.raises(SessionNotFoundError):
            call("linked")
    assert secret.read_text(encoding="utf-8") == '{messages: [{role: "user", content: "secret"}]}'


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_only_the_owner_may_look_into_the_store(store, chat):
    assert stat.S_IMODE(store.folder.stat().st_mode) & 0o077 == 0


def test_a_file_in_the_way_is_said(tmp_path):
    (tmp_path / "sessions").write_text("x", encoding="utf-8")
    with pytest.raises(NotewellError, match="a file is in the way"):
        ConversationStore(tmp_path / "sessions").create()


PIPE = """
import os, sys
from notewell import Memory, NotewellError
with Memory.open(sys.argv[1], provider="none", sources=["memory", "sessions"]) as memory:
    store = memory.conversations
    store.create("chat-1")
    store.append("chat-1", {"role": "user", "content": "a heron"})
    place = store.folder / sys.argv[2]
    place.unlink()
    os.mkfifo(place)
    for call in (
        lambda: store.append("chat-1", {"role": "user", "content": "x" * 200_000}),
        lambda: store.get("chat-1"),
        lambda: memory.forget(match="heron", for_good=True),
        lambda: memory.forget(session="chat-1", for_good=True),
    ):
        try:
            call()
        except (NotewellError, OSError) as error:
            print(type(error).__name__)
print("done")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("place", ["registry.json5", ".journal/chat-1"])
def test_a_pipe_in_place_of_a_file_is_waited_for_by_nobody(workspace, place):
    command = [sys.executable, "-c", PIPE, str(workspace), place]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("done\n")
