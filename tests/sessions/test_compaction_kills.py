"""Compaction that is cut short at any step: no message is lost, none is archived twice, and debris goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from notewell import Memory
from notewell.files import faults
from notewell.sessions import ConversationStore, import_file
from notewell.sessions.append_journal import locked

from .conftest import texts


def killed_at(store, chat, step):
    """Compact in a process that is killed at the given step; returns whether it got so far."""
    script = (
        "import os, signal, sys\n"
        "from notewell.files import faults\n"
        "from notewell.sessions import ConversationStore\n"
        "seen = 0\n"
        "def look(point):\n"
        "    global seen\n"
        "    seen += 1\n"
        f"    if seen == {step}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "with faults.planted(look):\n"
        f"    ConversationStore(sys.argv[1]).compact({chat!r}, 'canary-5521 in short', keep_last=1)\n"
    )
    return subprocess.run([sys.executable, "-c", script, str(store.folder)], check=False).returncode != 0


def archived(store, chat):
    return [
        json.loads(line)["message"]["content"]
        for path in sorted((store.folder / "compacted").glob(f"{chat}.*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if "message" in json.loads(line)
    ]


def left_over(store):
    return [path.name for path in store.folder.rglob("*") if path.name.endswith((".tmp", ".pending"))]


def holding(folder, text):
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


@pytest.mark.slow
def test_a_compaction_killed_at_any_step_archives_each_message_once(tmp_path):
    step = 0
    while True:
        step += 1
        store = ConversationStore(tmp_path / str(step) / ".notewell" / "main" / "sessions")
        store.create("chat")
        said = [f"canary-{number}" for number in range(4)]
        store.append("chat", *({"role": "user", "content": text} for text in said))
        killed = killed_at(store, "chat", step)
        assert [*dict.fromkeys([*archived(store, "chat"), *texts(store.get("chat"))])][-1] == said[-1]
        with Memory.open(tmp_path / str(step), provider="none"):
            assert left_over(store) == []
        assert [*archived(store, "chat"), *texts(store.get("chat"))] == said
        store.compact("chat", "in short", keep_last=1)
        assert [*archived(store, "chat"), *texts(store.get("chat"))] == said
        named = store.entry("chat").compacted_files
        assert sorted(named) == sorted(path.name for path in (store.folder / "compacted").iterdir())
        if not killed:
            break
    assert step > 8


@pytest.mark.slow
def test_what_a_killed_compaction_left_is_forgotten(tmp_path):
    for step in range(1, 12):
        workspace = tmp_path / str(step)
        store = ConversationStore(workspace / ".notewell" / "main" / "sessions")
        store.create("chat", title="canary-5521")
        store.append("chat", *({"role": "user", "content": f"canary-5521 {number}"} for number in range(3)))
        killed_at(store, "chat", step)
        with Memory.open(workspace, provider="none") as memory:
            memory.forget(match="canary-5521", for_good=True)
        assert holding(workspace, b"canary-5521") == []


def test_a_session_that_is_being_written_is_not_swept(store, chat):
    draft = store.folder / "chats" / f".{chat}.json5.1-aa.tmp"
    draft.write_text("half")
    with locked(store.folder / ".locks" / f"{chat}.lock", 1, "test"):
        ConversationStore(store.folder).sweep()
        assert draft.exists()
    ConversationStore(store.folder).sweep()
    assert not draft.exists()


def test_sweeping_a_folder_that_cannot_be_written_changes_nothing(store, chat):
    draft = store.folder / "chats" / f".{chat}.json5.1-aa.tmp"
    draft.write_text("half")
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    draft.parent.chmod(0o500)
    try:
        store.sweep()
        assert draft.exists()
    finally:
        draft.parent.chmod(0o700)


def test_drafts_of_the_registry_go_as_well(store, chat):
    (store.folder / ".registry.json5.1-aa.tmp").write_text("half")
    store.sweep()
    assert left_over(store) == []


def test_messages_that_an_older_release_archived_again_and_again_are_kept_once(store, chat):
    store.append(chat, *({"role": "user", "content": f"m{number}"} for number in range(3)))
    before = store.path_of(chat).read_bytes()
    store.compact(chat, "short", keep_last=1)
    path = store.folder / "compacted" / f"{chat}.0001.jsonl"
    for number in (11, 12, 13):  # three kills, each after the archive was written
        path.with_name(f"{chat}.{number:04}.jsonl").write_bytes(path.read_bytes())
    path.unlink()
    store.path_of(chat).write_bytes(before)
    assert len(archived(store, chat)) == 12
    store.repair(chat)
    assert archived(store, chat) == []
    assert len(store.get(chat).messages) == 5
    store.compact(chat, "short", keep_last=1)
    store.update(chat, title="x")
    assert archived(store, chat) == ["Where do we go?", "To Lisbon.", "m0", "m1"]


def test_archives_of_an_older_release_are_named_and_kept(store, chat):
    store.compact(chat, "short", keep_last=1)
    path = store.path_of(chat)
    path.write_text("\n".join(line for line in path.read_text().split("\n") if "compactedFiles" not in line))
    assert store.entry(chat).compacted_files == ()
    store.append(chat, {"role": "user", "content": "on"})
    store.compact(chat, "short", keep_last=0)
    assert archived(store, chat) == ["Where do we go?", "To Lisbon.", "on"]
    assert store.entry(chat).compacted_files == (f"{chat}.0001.jsonl", f"{chat}.0002.jsonl")


def test_a_corrupt_session_keeps_an_archive_that_only_it_had_named(store, chat):
    store.compact(chat, "short", keep_last=1)
    final = store.folder / "compacted" / f"{chat}.0001.jsonl"
    final.rename(final.with_suffix(".pending"))
    store.path_of(chat).write_text("{ torn", encoding="utf-8")
    (store.folder / "registry.json5").unlink()
    store.sweep()
    store.repair(chat)
    assert archived(store, chat) == ["Where do we go?"]
    assert store.entry(chat).compacted_files == (final.name,)


def test_a_journal_that_was_cut_short_keeps_no_text(store, chat):
    journal = store.folder / ".journal" / chat
    journal.write_bytes(b'{"offset": 3, "oldSize": 1, "newSize": 90, "hash": "x"}\nxcanary-8812')
    store.set_state(chat)
    assert b"canary" not in journal.read_bytes()


def test_what_is_left_of_a_deleted_session_is_forgotten_by_match(store, chat, tmp_path):
    store.compact(chat, "canary-9917", keep_last=0)
    store.path_of(chat).unlink()
    assert store.remove_messages(chat, lambda text, _: "Lisbon" in text) == 1
    assert holding(store.folder / "compacted", b"Lisbon") == []


def test_a_comment_of_a_person_counts_as_something_to_forget(store, chat):
    path = store.path_of(chat)
    path.write_text(path.read_text().replace("{", "{ // canary-1203 said a person", 1))
    assert store.remove_messages(chat, lambda text, _: "canary-1203" in text) == 1
    assert holding(store.folder, b"canary-1203") == []


def test_the_same_steps_fail_and_leave_no_debris(store, chat):
    """A disk that fails is no kill: the error is told and nothing is left behind for the next opening."""
    with faults.failing("session.draft.rename", 5, times=1), pytest.raises(OSError, match="error"):
        store.compact(chat, "short", keep_last=1)
    assert archived(store, chat) == []
    assert len(store.compact(chat, "short", keep_last=1).messages) == 1
    assert archived(store, chat) == ["Where do we go?"]


def test_an_import_counts_what_a_killed_compaction_left_pending_as_stored(store, chat, tmp_path):
    """Importing a conversation again appends nothing, whatever of it was compacted or forgotten since."""
    exported = tmp_path / "again.jsonl"
    exported.write_text("\n".join(store.export_jsonl(chat)), encoding="utf-8")
    store.compact(chat, "short", keep_last=1)
    final = store.folder / "compacted" / f"{chat}.0001.jsonl"
    final.rename(final.with_suffix(".pending"))
    assert import_file(store, exported)[0].added == 0
    assert [*archived(store, chat), *texts(store.get(chat))] == ["Where do we go?", "To Lisbon."]
    store.remove_messages(chat, lambda text, _: "Where do we go" in text)
    assert import_file(store, exported)[0].added == 1


def test_a_session_that_another_program_named_is_settled_as_well(store):
    path = store.folder / "groups" / "120363@g.us.json5"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{messages: [{role: "user", content: "one"}, {role: "user", content: "two"}]}', encoding="utf-8")
    store.compact("120363@g.us", "short", keep_last=1)
    final = store.folder / "compacted" / "120363@g.us.0001.jsonl"
    final.rename(final.with_suffix(".pending"))
    (path.parent / ".120363@g.us.json5.1-aa.tmp").write_text("half")
    (final.parent / ".120363@g.us.0002.pending.1-aa.tmp").write_text("half")
    store.sweep()
    assert left_over(store) == []
    assert archived(store, "120363@g.us") == ["one"]
    assert [name for name in store.ids() if "@" in name] == ["120363@g.us"]
    assert len(store.delete("120363@g.us")) >= 2
    assert not list(store.folder.rglob("*120363*json*"))


def test_sweeping_for_a_group_keeps_the_archives_of_others(store, chat):
    store.compact(chat, "short", keep_last=1)
    final = store.folder / "compacted" / f"{chat}.0001.jsonl"
    final.rename(final.with_suffix(".pending"))
    group = ConversationStore(store.folder, group_only=frozenset({"team"}))
    group.sweep(wait=True)
    assert archived(store, chat) == ["Where do we go?"]
    assert list(group.ids()) == []


def test_a_pipe_or_a_link_among_the_archives_is_no_archive(store, chat, tmp_path):
    store.compact(chat, "short", keep_last=1)
    outside = tmp_path / "outside.jsonl"
    outside.write_text('{"message": {"role": "user", "content": "Lisbon outside"}}\n')
    os.mkfifo(store.folder / "compacted" / f"{chat}.0007.jsonl")
    (store.folder / "compacted" / f"{chat}.0008.jsonl").symlink_to(outside)
    assert store.remove_messages(chat, lambda text, _: "Lisbon" in text) == 1
    assert "Lisbon outside" in outside.read_text()
    store.repair(chat)


def test_a_registry_that_was_set_aside_keeps_no_title_that_was_forgotten(tmp_path):
    with Memory.open(tmp_path, provider="none") as memory:
        store = memory.conversations
        store.create("chat", title="canary-4471")
        registry = store.folder / "registry.json5"
        registry.write_text(registry.read_text() + "}}} torn")
        store.update("chat", channel="x")
        assert len(holding(store.folder / "damaged", b"canary-4471")) == 1
        report = memory.forget(match="canary-4471", for_good=True)
    assert report.problems == ()
    assert holding(tmp_path, b"canary-4471") == []


def test_a_file_that_nobody_knows_is_named_if_it_holds_the_text(tmp_path):
    with Memory.open(tmp_path, provider="none") as memory:
        memory.conversations.create("chat")
        (memory.conversations.folder / "backup.txt").write_text("canary-4472")
        report = memory.forget(match="canary-4472", for_good=True)
    assert [(problem.path, "not a file of notewell" in problem.reason) for problem in report.problems] == [
        ("sessions/backup.txt", True)
    ]


def test_a_corrupt_session_keeps_its_summaries_in_their_order(store, chat):
    store.append(chat, *({"role": "user", "content": f"message {number}"} for number in range(6)))
    store.compact(chat, "The first two.", through=2)
    store.compact(chat, "The next two.", through=2)
    path = store.path_of(chat)
    path.write_text(path.read_text().replace("message 5", 'message " 5'))
    assert store.repair(chat)
    assert [summary.content for summary in store.get(chat).summaries] == ["The first two.", "The next two."]
