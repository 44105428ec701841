"""`notewell sessions`: what each command prints and returns."""

from __future__ import annotations

import json

import pytest

from notewell import Memory

pytest.importorskip("pyjson5", reason="conversations need the extra `sessions`")

SESSIONS = ("--set", "sources=memory,sessions")


@pytest.fixture
def sessions(notewell, workspace):
    """Run a sub-command on the workspace."""
    return lambda *words: notewell("sessions", *words, "-w", workspace)


@pytest.fixture
def chat(workspace):
    with Memory.open(workspace, provider="none") as memory:
        store = memory.conversations
        store.create("chat-1", title="Trip")
        said = [("user", "Where do we go?"), ("assistant", "To Lisbon."), ("user", "And the heron?")]
        store.append("chat-1", *({"role": role, "content": text} for role, text in said))
        store.append(store.create(group_id="crew").session_id, {"role": "user", "content": "Hello crew"})
    return "chat-1"


def test_an_empty_store(sessions):
    assert sessions("list").out == "no sessions\n"
    assert sessions("list", "--json").document == {"sessions": []}


def test_list(sessions, chat):
    lines = sessions("list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["crew", "chat-1"]
    assert lines[1].endswith("3 messages  Trip")
    listed = sessions("list", "--kind", "direct", "--json").document["sessions"]
    assert [(each["sessionId"], each["kind"], each["messageCount"]) for each in listed] == [("chat-1", "direct", 3)]


def test_show(sessions, chat):
    shown = sessions("show", chat, "--last", 1).out
    assert "And the heron?" in shown
    assert "Lisbon" not in shown
    document = sessions("show", chat, "--json").document
    assert [message["content"] for message in document["messages"]] == [
        "Where do we go?",
        "To Lisbon.",
        "And the heron?",
    ]
    assert document["title"] == "Trip"


def test_export_and_import_are_each_others_reverse(sessions, chat, tmp_path):
    exported = sessions("export", chat).out
    assert [json.loads(line)["type"] for line in exported.splitlines()] == ["session", "message", "message", "message"]
    file = tmp_path / "chat.jsonl"
    assert sessions("export", chat, "--output", file).out == f"3 messages written to {file}\n"
    assert file.read_text(encoding="utf-8") == exported
    assert sessions("export", chat, "--output", file, "--json").document == {"sessionId": chat, "file": str(file)}
    assert sessions("delete", chat, "--yes").code == 0
    assert sessions("import", file).out == f"chat-1: 3 messages of {file}\n"
    assert sessions("export", chat).out == exported


def test_import_says_what_was_left_out_and_goes_on_after_a_failure(sessions, tmp_path):
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text('{"role": "user", "content": "hi"}\n{"torn', encoding="utf-8")
    bad.write_text("nothing\n", encoding="utf-8")
    done = sessions("import", good, bad, tmp_path / "none.jsonl", "--json")
    assert done.code == 1
    assert done.document["imported"] == [
        {
            "file": str(good),
            "sessionId": "good",
            "kind": "direct",
            "messages": 1,
            "added": 1,
            "leftOut": {"not JSON": 1},
        }
    ]
    assert [each["file"] for each in done.document["failed"]] == [str(bad), str(tmp_path / "none.jsonl")]
    assert "no message to import" in done.err
    again = sessions("import", good, "--json")
    assert (again.code, again.document["imported"][0]["messages"], again.document["imported"][0]["added"]) == (0, 1, 0)
    assert sessions("import", good, bad, "--id", "x").code == 1
    named = sessions("import", good, "--id", "mine", "--kind", "group")
    assert named.out == f"mine: 1 messages of {good}; left out: 1 not JSON\n"


def test_index_makes_conversations_searchable(notewell, sessions, workspace, chat):
    refused = sessions("index", "--json")
    assert (refused.code, refused.document["error"]["kind"]) == (1, "settings")
    assert refused.document["error"]["hint"] == 'set sources = ["memory", "sessions"] in your settings'
    done = sessions("index", "--json", *SESSIONS)
    assert (done.code, done.document["added"]) == (0, 2)
    found = notewell("search", "heron", "--source", "sessions", "--no-sync", "--json", "-w", workspace, *SESSIONS)
    assert found.document["hits"][0]["path"] == "sessions/chats/chat-1.json5"


def test_compact_writes_to_todays_note_first(sessions, workspace, chat):
    done = sessions("compact", chat, "--keep", 1, "--json")
    document = done.document
    assert (document["compacted"], document["kept"]) == (2, 1)
    note = workspace / document["flush"]["path"]
    assert "To Lisbon." in note.read_text(encoding="utf-8")
    shown = sessions("show", chat, "--json").document
    assert shown["compactedHistory"][0]["content"].startswith("[Summary] 2 earlier messages")
    assert sessions("compact", chat, "--keep", 1).out == "0 messages compacted, 1 kept\n"


def test_compact_without_a_flush_and_with_a_summary(sessions, workspace, chat):
    assert (
        sessions("compact", chat, "--keep", 0, "--no-flush", "--summary", "We talked.").out
        == "3 messages compacted, 0 kept\n"
    )
    assert sessions("show", chat, "--json").document["compactedHistory"][0]["content"] == "We talked."
    assert sorted(path.name for path in (workspace / "memory").glob("20*.md")) == ["2026-11-01.md"]


def test_archive_and_back(sessions, chat):
    assert sessions("archive", chat).out == "chat-1 is archived: archive/chats/chat-1.json5\n"
    assert "chat-1" not in sessions("list").out
    assert "chat-1" in sessions("list", "--archived").out
    assert sessions("archive", chat, "--undo", "--json").document["sessionFile"] == "chats/chat-1.json5"


def test_delete_asks_and_without_a_terminal_refuses(sessions, chat):
    refused = sessions("delete", chat, "--json")
    assert (refused.code, refused.document["error"]["hint"]) == (1, "use --yes to delete it")
    assert sessions("delete", chat, "--yes").out == "deleted chats/chat-1.json5\n"
    assert sessions("show", chat).code == 1


def test_repair(sessions, workspace, chat):
    assert sessions("repair", chat).out == "chat-1 needs no repair\n"
    path = workspace / ".notewell" / "main" / "sessions" / "chats" / "chat-1.json5"
    path.write_bytes(path.read_bytes()[:-60])
    listed = sessions("list")
    assert "cannot be read" in listed.out
    assert "run `notewell sessions repair chat-1`" in listed.err
    done = sessions("repair", chat, "--json").document
    assert done["repaired"] is True
    assert "3 messages were saved" in done["notes"][0]
    assert "And the heron?" in sessions("show", chat).out


def test_agents_do_not_see_each_others_sessions(sessions, chat):
    assert sessions("list", "--agent", "other").out == "no sessions\n"
    for command in ("show", "export", "archive", "compact", "repair"):
        done = sessions(command, chat, "--agent", "other", "--json")
        assert (done.code, done.document["error"]["kind"]) == (1, "session_not_found"), command
    done = sessions("delete", chat, "--yes", "--agent", "other", "--json")
    assert done.document["error"]["kind"] == "session_not_found"
    assert sessions("show", f"../../main/sessions/chats/{chat}", "--agent", "other").code == 1
    assert "To Lisbon." in sessions("show", chat).out


def test_conversations_are_kept_out_of_git(workspace, chat):
    assert (workspace / ".notewell" / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_session_that_an_editor_reformatted_is_still_found(notewell, sessions, workspace, chat):
    import pyjson5

    path = workspace / ".notewell/main/sessions/chats/chat-1.json5"
    values = pyjson5.decode(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(values, indent=4), encoding="utf-8")
    assert "And the heron?" in sessions("show", chat).out
    found = notewell("search", "heron", "-w", workspace, "--source", "sessions", "--json", *SESSIONS).document
    assert (found["hits"][0]["path"], found["notes"]) == ("sessions/chats/chat-1.json5", [])
    assert "User: And the heron?" in found["hits"][0]["snippet"]


def test_a_session_that_cannot_be_read_is_named_by_search_status_and_doctor(notewell, sessions, workspace, chat):
    path = workspace / ".notewell/main/sessions/chats/chat-1.json5"
    path.write_bytes(path.read_bytes().replace(b'"content":"Where', b'"content":Where'))
    reason = "cannot be read as a session: line 10: not valid JSON5; run `notewell sessions repair chat-1`"
    for words in (("index",), ("index",), ("search", "heron"), ("status",), ("doctor",)):
        told = notewell(*words, "-w", workspace, *SESSIONS)
        assert f"sessions/chats/chat-1.json5: {reason}" in told.out + told.err, words
    assert "1 lines could not be read" in sessions("repair", chat).out
    for words in (("index",), ("search", "heron"), ("status",), ("doctor",)):
        told = notewell(*words, "-w", workspace, *SESSIONS)
        assert "cannot be read" not in told.out + told.err, words


def test_ids_of_groups_are_taken_as_they_are(notewell, sessions, workspace):
    groups = workspace / ".notewell" / "main" / "sessions" / "groups"
    groups.mkdir(parents=True)
    names = ("120363@g.us", "-1001234567890", "550E8400-E29B-41D4-A716-446655440000")
    for name in names:
        text = f'{{version: 2, messages: [{{role: "user", content: "quuxword of {name}", timestamp: 1704067200000}}]}}'
        (groups / f"{name}.json5").write_text(text, encoding="utf-8")
    assert {line.split()[0] for line in sessions("list").out.splitlines()} == set(names)
    for name in names:
        shown = sessions("show", name)
        assert (shown.code, f"quuxword of {name}" in shown.out) == (0, True)
        own = ("--chat", "group", "--session", name, "-w", workspace, *SESSIONS)
        found = notewell("search", "quuxword", "--json", *own)
        assert [hit["path"] for hit in found.document["hits"]] == [f"sessions/groups/{name}.json5"]
        assert f"quuxword of {name}" in notewell("get", f"sessions/groups/{name}.json5", *own).out
    assert sessions("show", "-1001234567890", "--lst", 1).code == 2
    assert "No such option '--lst'" in sessions("show", "chat", "--lst", 1).err
    assert sessions("repair", names[2].lower(), "--json").document["sessionId"] == names[2]
    assert sessions("delete", "-1001234567890", "--yes").code == 0


def test_a_folder_is_imported_file_by_file(notewell, sessions, workspace, tmp_path):
    folder = tmp_path / "sessions"
    (folder / "groups").mkdir(parents=True)
    (folder / "chats").mkdir()
    (folder / "registry.json5").write_text("{sessions: []}", encoding="utf-8")
    (folder / "chats" / "one.json5").write_text("{messages: [{role: 'user', content: 'quuxone'}]}", encoding="utf-8")
    (folder / "chats" / "torn.json5").write_text("{messages: [", encoding="utf-8")
    (folder / "chats" / "two.json").write_text('{"messages": [{"role": "user", "content": "quuxtwo"}]}')
    (folder / "groups" / "120363@g.us.json5").write_text("{messages: [{role: 'user', content: 'quuxthree'}]}")
    (folder / "old.jsonl").write_text('{"role": "user", "content": "quuxfour"}\n', encoding="utf-8")
    done = sessions("import", folder, "--json")
    assert done.code == 1
    assert [(each["sessionId"][:6], each["kind"], each["added"]) for each in done.document["imported"]] == [
        ("one", "direct", 1),
        ("two", "direct", 1),
        ("120363", "group", 1),
        ("old", "direct", 1),
    ]
    assert [each["file"] for each in done.document["failed"]] == [str(folder / "chats" / "torn.json5")]
    assert "not valid JSON5" in done.document["failed"][0]["reason"]
    for word in ("quuxone", "quuxtwo", "quuxthree", "quuxfour"):
        found = notewell("search", word, "--json", "-w", workspace, *SESSIONS)
        assert found.document["hits"][0]["path"].startswith("sessions/")
    (folder / "chats" / "torn.json5").unlink()
    with (folder / "old.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"role": "user", "content": "more"}\n{"role": "user", "content": "and more"}\n')
    again = sessions("import", folder)
    assert again.code == 0
    assert f"one: no new messages of {folder / 'chats' / 'one.json5'}\n" in again.out
    assert f"old: 2 new messages of {folder / 'old.jsonl'}\n" in again.out
    assert len(sessions("list", "--json").document["sessions"]) == 4


def test_a_folder_without_conversations_says_so(sessions, tmp_path):
    (tmp_path / "empty").mkdir()
    done = sessions("import", tmp_path / "empty", "--json")
    assert (done.code, done.document["error"]["hint"]) == (1, "import .jsonl, .json5 or .json files")
