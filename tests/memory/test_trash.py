"""Forgetting can be undone for 30 days, loses nothing on the way, and is traceless after that."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell import (
    EntryNotFoundError,
    Memory,
    NoteNotFoundError,
    NotewellError,
    PathRefusedError,
    QueryError,
    TrashError,
)
from notewell.agents.tools import MemoryTools
from notewell.cli.main import run
from notewell.embedding.hashing import HashingEmbedder
from notewell.files.faults import POINTS, failing
from notewell.memory.note_lines import cut_lines, put_lines_back

from .test_forget import CANARY, SENTENCE, SESSIONS, embedded_texts, traces

NOTE = f"# Birds\n\nFirst line.\n\n- {SENTENCE}\n- Another item.\n\nLast line.\n"
TRASH_POINTS = sorted(point for point in POINTS if point.startswith("trash."))


@pytest.fixture
def birds(workspace) -> Path:
    note = workspace / "memory" / "birds.md"
    note.write_text(NOTE)
    return note


@pytest.fixture
def memory(birds, workspace):
    with Memory.open(workspace, embedder=HashingEmbedder(), **SESSIONS) as opened:
        opened.conversations.create("chat-1", title=f"about the {CANARY}")
        opened.conversations.append(
            "chat-1",
            {"role": "user", "content": "before"},
            {"role": "user", "content": SENTENCE},
            {"role": "assistant", "content": "after"},
        )
        opened.index()
        yield opened


def trash_files(workspace: Path) -> list[Path]:
    return [path for path in (workspace / ".notewell").rglob("*") if path.is_file() and ".trash" in path.parts]


def said(memory: Memory, session: str = "chat-1") -> list[object]:
    return [message.content for message in memory.conversations.get(session).messages]


def files_of(memory: Memory, session: str = "chat-1") -> dict[Path, bytes]:
    files = memory.conversations.files_of(session)
    return {path: path.read_bytes() for path in files if path.parent.name != ".journal"}


# --- there and back ------------------------------------------------------------------------------


def test_lines_leave_index_recall_and_tools_at_once_and_come_back_as_they_were(memory, birds):
    report = memory.forget(match=CANARY)
    assert {each.path for each in report.forgotten} == {"memory/birds.md", "sessions/chats/chat-1.json5"}
    assert [(line.line, line.text) for each in report.forgotten for line in each.lines] == [
        (5, f"- {SENTENCE}"),
        (0, SENTENCE),
        (0, f"about the {CANARY}"),  # the title
    ]
    assert birds.read_text() == NOTE.replace(f"- {SENTENCE}\n", "")
    assert memory.search(CANARY, sync=False).hits == ()
    tools = MemoryTools(memory)
    assert tools.call("memory_search", {"query": CANARY}).document["hits"] == []
    assert CANARY not in tools.call("memory_get", {"path": "memory/birds.md"}).text
    assert said(memory) == ["before", "after"]

    assert [batch.id for batch in memory.trash()] == [report.undo]
    back = memory.undo()
    assert (back.id, back.problems, back.notes) == (report.undo, (), ())
    assert birds.read_text() == NOTE
    assert said(memory) == ["before", SENTENCE, "after"]
    assert memory.conversations.entry("chat-1").title == f"about the {CANARY}"
    found = memory.search(CANARY, sync=False, keyword_only=True).hits
    assert {hit.path for hit in found} == {"memory/birds.md", "sessions/chats/chat-1.json5"}
    assert memory.trash() == ()
    assert trash_files(memory.workspace) == []
    assert memory.verify().findings == ()


def test_other_agents_find_it_no_more(memory, workspace):
    with Memory.open(workspace, agent="second", embedder=HashingEmbedder()) as second:
        second.index()
        memory.forget(match=CANARY)
        assert second.search(CANARY, sync=False).hits == ()
        second.undo()  # notes are everybody's
        assert second.search(CANARY, sync=False).hits


def test_a_whole_note_and_a_whole_conversation(memory, birds):
    memory.conversations.compact("chat-1", "a summary", keep_last=1)
    memory.conversations.archive("chat-1")
    kept = files_of(memory)
    memory.forget(path="memory/birds.md")
    memory.forget(session="chat-1")
    assert not birds.exists()
    assert not memory.conversations.exists("chat-1")
    memory.undo()
    memory.undo()
    assert birds.read_text() == NOTE
    assert files_of(memory) == kept
    assert memory.search(CANARY, sync=False).hits


def test_a_transcript_of_another_program(workspace, tmp_path):
    file = tmp_path / "other" / "projects" / "a.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"type": "message", "message": {"role": "user", "content": SENTENCE}}) + "\n")
    before = file.read_bytes()
    with Memory.open(workspace, provider="none", **SESSIONS, sessions__paths=[str(file.parent)]) as memory:
        memory.index()
        (hit,) = memory.search(CANARY).hits
        memory.forget(path=hit.path)
        assert not file.exists()
        assert memory.search(CANARY).hits == ()
        memory.undo()
        assert file.read_bytes() == before
        assert memory.search(CANARY).hits


def test_an_entry_by_id_and_by_citation(memory, workspace):
    first = memory.remember("The pelican eats at nine.", to="memory/zoo.md")
    second = memory.remember("The heron eats at ten.\n\nIt likes eel.", to="memory/zoo.md")
    text = (workspace / "memory/zoo.md").read_text()
    report = memory.forget(second.entry)
    assert [line.text for line in report.forgotten[0].lines] == ["The heron eats at ten.", "", "It likes eel."]
    assert second.entry not in (workspace / "memory/zoo.md").read_text()
    memory.forget(first.citation)
    assert "notewell id=" not in (workspace / "memory/zoo.md").read_text()
    memory.undo()
    memory.undo()
    assert (workspace / "memory/zoo.md").read_text() == text


def test_the_latest_comes_first_and_an_id_chooses(memory, workspace):
    first = memory.forget("memory/birds.md#L3")
    assert memory.get("memory/birds.md#L7").text == "Last line."
    second = memory.forget("memory/birds.md#L7")
    assert [batch.id for batch in memory.trash()] == [second.undo, first.undo]
    memory.undo(first.undo)
    assert "First line." in (workspace / "memory/birds.md").read_text()
    assert [batch.id for batch in memory.trash()] == [second.undo]


# --- undo after the file changed -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        pytest.param(
            lambda text: "New top.\n" + text,
            lambda cut: "New top.\n" + NOTE,
            id="lines above",
        ),
        pytest.param(
            lambda text: text.replace("First line.", "Changed line."),
            lambda cut: NOTE.replace("First line.", "Changed line."),
            id="a line nearby",
        ),
        pytest.param(
            lambda text: "quite another text\n",
            lambda cut: f"quite another text\n\n- {SENTENCE}\n",
            id="all of it: the line is at the end",
        ),
        pytest.param(
            lambda text: text.replace("\n", "\r\n"),
            lambda cut: NOTE.replace("\n", "\r\n"),
            id="its line ends",
        ),
    ],
)
def test_lines_come_back_where_the_lines_around_them_are(memory, birds, edit, expected):
    memory.forget("memory/birds.md#L5")
    birds.write_bytes(edit(birds.read_text()).encode())
    report = memory.undo()
    assert birds.read_bytes().decode() == expected(SENTENCE)
    assert report.problems == ()
    assert bool(report.notes) is ("another" in birds.read_text().split("\n")[0])


def test_a_note_that_is_gone_is_made_again_with_the_lines(memory, birds):
    memory.forget("memory/birds.md#L5")
    birds.unlink()
    report = memory.undo()
    assert birds.read_text() == f"- {SENTENCE}\n"
    assert "is gone" in report.notes[0]


def test_a_note_whose_name_is_taken_comes_back_beside_it(memory, birds):
    memory.forget(path="memory/birds.md")
    birds.write_text("a new one\n")
    report = memory.undo()
    assert [each.path for each in report.restored] == ["memory/birds-restored.md"]
    assert birds.with_name("birds-restored.md").read_text() == NOTE
    assert birds.read_text() == "a new one\n"
    assert "is taken" in report.notes[0]


def test_messages_come_back_into_a_conversation_that_went_on(memory):
    memory.forget(match=CANARY)
    memory.conversations.append("chat-1", {"role": "user", "content": "later"})
    memory.undo()
    assert said(memory) == ["before", SENTENCE, "after", "later"]
    assert memory.conversations.entry("chat-1").title == f"about the {CANARY}"


def test_a_conversation_whose_id_is_taken_stays_in_the_trash(memory):
    memory.forget(session="chat-1")
    memory.conversations.create("chat-1")
    report = memory.undo()
    assert report.restored == ()
    assert "already" in report.problems[0].reason
    memory.conversations.delete("chat-1")
    memory.undo()
    assert said(memory) == ["before", SENTENCE, "after"]


def test_an_entry_that_is_back_already_is_not_written_twice(memory, workspace):
    done = memory.remember("The pelican eats at nine.", to="memory/zoo.md")
    text = (workspace / "memory/zoo.md").read_text()
    memory.forget(done.entry)
    (workspace / "memory/zoo.md").write_text(text + "\nmore by hand\n")
    memory.undo()
    assert (workspace / "memory/zoo.md").read_text() == text + "\nmore by hand\n"


LINES = st.lists(st.sampled_from(["", "a", "- b", "```", "x <!-- notewell id=a -->", "<!-- notewell id=b -->", "é"]))


@pytest.mark.slow
@settings(max_examples=300)
@given(
    lines=LINES,
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    final=st.booleans(),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    numbers=st.sets(st.integers(1, 12)),
)
def test_what_is_cut_can_be_put_back_byte_by_byte(lines, end, final, mark, numbers):
    raw = mark + (end.join(lines) + (end if final else "")).encode()
    content, cuts = cut_lines(raw, "memory/a.md", numbers)
    assert put_lines_back(content, "memory/a.md", cuts, unchanged=True) == (raw, 0)
    back, _ = put_lines_back(content + b"more", "memory/a.md", cuts, unchanged=False)
    for cut in cuts:
        if not cut.instead:
            assert all(line.strip() in back.decode() for line in cut.lines)


def test_a_note_in_another_encoding_and_with_invalid_bytes(memory, workspace):
    notes = {
        "memory/utf16.md": "\ufeffone\r\nCANARYX two\r\nthree".encode("utf-16-le"),
        "memory/bytes.md": b"one\nCANARYX \xff two\nthree\n",
    }
    for path, content in notes.items():
        (workspace / path).write_bytes(content)
    report = memory.forget(match="canaryx")
    assert {each.path for each in report.forgotten} == set(notes)
    memory.undo()
    assert {path: (workspace / path).read_bytes() for path in notes} == notes


# --- for good ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wish", [{"match": CANARY}, {"path": "memory/birds.md"}], ids=["match", "path"])
def test_for_good_erases_what_is_in_the_trash(memory, birds, workspace, wish):
    texts = embedded_texts(memory)
    memory.forget(**wish)
    memory.forget(match=CANARY)
    assert any(CANARY in path.read_text() for path in trash_files(workspace))
    shown = memory.forget(match=CANARY, for_good=True, dry_run=True)
    assert all(each.in_trash for each in shown.forgotten)
    memory.forget(match=CANARY, for_good=True)
    memory.close()
    assert traces(workspace, *texts) == []


def test_for_good_by_path_session_and_id_reaches_the_trash(memory, workspace):
    done = memory.remember(SENTENCE, to="memory/zoo.md", force=True)
    memory.forget(done.entry)
    memory.forget(path="memory/birds.md")
    memory.forget(session="chat-1")
    texts = [SENTENCE]
    memory.forget(done.entry, for_good=True)
    memory.forget(path="memory/birds.md", for_good=True)
    memory.forget(session="chat-1", for_good=True)
    memory.close()
    assert traces(workspace, *texts) == []
    with pytest.raises(TrashError):
        memory.undo()


def test_for_good_spares_other_lines_in_the_trash(memory, birds):
    memory.forget("memory/birds.md#L5-L6")
    memory.forget(match=CANARY, for_good=True)
    memory.undo()
    assert CANARY not in birds.read_text()
    assert "- Another item." in birds.read_text()


def test_for_good_matches_the_comments_of_entries_and_the_trash_does_not(memory, workspace):
    memory.remember("Plain words.", to="memory/zoo.md", who=CANARY)
    assert [each.path for each in memory.forget(match=CANARY, dry_run=True).forgotten] == [
        "memory/birds.md",
        "sessions/chats/chat-1.json5",
    ]
    memory.forget(match=CANARY, for_good=True)
    memory.close()
    assert traces(workspace) == []
    assert "Plain words." in (workspace / "memory/zoo.md").read_text()


def make_older(workspace: Path, days: int) -> None:
    """Let what is in the trash be as old as this."""
    for top in [folder for folder in (workspace / ".notewell").rglob(".trash") if folder.is_dir()]:
        for batch in list(top.iterdir()):
            stamp, _, batch_id = batch.name.partition("-")
            when = datetime.strptime(stamp, "%Y%m%dT%H%M%S%fZ").replace(tzinfo=UTC) - timedelta(days=days)
            batch.rename(batch.with_name(f"{when:%Y%m%dT%H%M%S%fZ}-{batch_id}"))


@pytest.mark.parametrize(
    "use",
    [
        lambda memory: memory.search("printer"),
        lambda memory: memory.index(),
        lambda memory: memory.sync(),
        lambda memory: memory.forget(match="no such text", dry_run=True),
    ],
    ids=["search", "index", "sync", "forget"],
)
def test_after_thirty_days_it_is_erased_with_every_trace(memory, workspace, use):
    texts = embedded_texts(memory)
    memory.forget(match=CANARY)
    memory.close()
    make_older(workspace, 29)
    with Memory.open(workspace, embedder=HashingEmbedder(), **SESSIONS) as again:
        use(again)
        assert len(again.trash()) == 1
    make_older(workspace, 2)
    with Memory.open(workspace, embedder=HashingEmbedder(), **SESSIONS) as again:
        assert again.trash() == ()
        with pytest.raises(TrashError, match="empty"):
            again.undo()
        use(again)
    assert traces(workspace, *texts) == []


# --- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "error", "message"),
    [
        pytest.param(["nosuchid"], EntryNotFoundError, "no remembered entry", id="an id that does not exist"),
        pytest.param(["memory/none.md#L1"], NoteNotFoundError, "no such note", id="a note that does not exist"),
        pytest.param(["../secret.md#L1"], PathRefusedError, "not a memory file", id="a file outside"),
        pytest.param(["/etc/passwd#L1"], PathRefusedError, "not a memory file", id="a file of the system"),
        pytest.param(
            ["memory/birds.md#L90-L95"], QueryError, "memory/birds.md#L90-L95 is not in the note", id="behind the end"
        ),
        pytest.param(["memory/birds.md#L0"], NotewellError, "memory/birds.md#L0", id="line 0"),
        pytest.param(["sessions/chats/chat-1.json5#L3"], QueryError, "is a conversation", id="lines of a conversation"),
        pytest.param([""], EntryNotFoundError, "no remembered entry", id="an empty id"),
        pytest.param(["x" * 5000], EntryNotFoundError, "no remembered entry", id="a very long id"),
    ],
)
def test_entries_that_cannot_be_forgotten(memory, birds, workspace, entries, error, message):
    with pytest.raises(error, match=message):
        memory.forget(*entries)
    assert birds.read_text() == NOTE
    assert trash_files(workspace) == []


def test_an_id_in_two_places_is_refused(memory, workspace):
    done = memory.remember("The pelican eats at nine.", to="memory/zoo.md")
    (workspace / "memory/copy.md").write_text((workspace / "memory/zoo.md").read_text())
    with pytest.raises(EntryNotFoundError, match="names 2 remembered entries"):
        memory.forget(done.entry)
    memory.forget("memory/copy.md#L3")
    memory.forget(done.entry)


@pytest.mark.parametrize("point", TRASH_POINTS)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize(
    "wish",
    [{"match": CANARY}, {"path": "memory/birds.md"}, {"session": "chat-1"}],
    ids=["lines", "note", "session"],
)
def test_a_trash_that_is_full_or_read_only_loses_nothing(memory, birds, workspace, point, number, wish):
    with failing(point, number) as failures:
        report = memory.forget(**wish)
    assert failures()
    assert report.forgotten == ()
    assert report.undo == ""
    for problem in report.problems:
        assert "the trash cannot be written" in problem.reason
        assert "--for-good" in problem.reason
    assert birds.read_text() == NOTE
    assert said(memory) == ["before", SENTENCE, "after"]
    assert memory.trash() == ()
    memory.forget(match=CANARY, for_good=True)
    assert CANARY not in birds.read_text()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_trash_folder_without_permissions(memory, birds, workspace):
    (workspace / ".notewell/.trash").mkdir(mode=0o500)
    report = memory.forget("memory/birds.md#L5")
    assert "Permission denied" in report.problems[0].reason
    assert birds.read_text() == NOTE


def test_a_file_stands_where_the_trash_should_be(memory, birds, workspace):
    (workspace / ".notewell/.trash").write_text("in the way")
    report = memory.forget("memory/birds.md#L5")
    assert "the trash cannot be written" in report.problems[0].reason
    assert birds.read_text() == NOTE


def test_an_item_that_cannot_be_read_harms_no_other(memory, birds, workspace):
    first = memory.forget("memory/birds.md#L3")
    memory.get("memory/birds.md")
    second = memory.forget("memory/birds.md#L7")
    (broken,) = (path for path in trash_files(workspace) if first.undo in path.parent.name)
    broken.write_text("{")
    assert [batch.id for batch in memory.trash()] == [second.undo]
    memory.undo()
    assert "Last line." in birds.read_text()
    report = memory.forget(match=CANARY, for_good=True)
    assert any("cannot be read" in problem.reason for problem in report.problems)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"kind": "folder"}, id="kind"),
        pytest.param({"kind": "note"}, id="a note without content"),
        pytest.param({"kind": "transcript", "contents": {}}, id="a transcript without content"),
        pytest.param({"dated": "yesterday"}, id="day"),
        pytest.param({"path": 7}, id="path"),
        pytest.param({"count": "many"}, id="count"),
        pytest.param({"cuts": [{"first_line": "one", "lines": ["a\n"]}]}, id="line number"),
        pytest.param({"cuts": [{"first_line": 1, "lines": [7]}]}, id="line"),
        pytest.param({"messages": [7]}, id="message"),
    ],
)
def test_an_item_with_wrong_values_is_reported(memory, birds, workspace, values):
    memory.forget("memory/birds.md#L3")
    (file,) = trash_files(workspace)
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
    assert memory.trash() == ()
    with pytest.raises(TrashError, match="empty"):
        memory.undo()
    report = memory.forget(match=CANARY, for_good=True)
    assert [problem.reason for problem in report.problems] == ["cannot be read: delete it yourself"]


def test_undo_writes_no_file_that_is_not_part_of_the_memory(workspace, tmp_path):
    file = tmp_path / "other" / "projects" / "a.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"type": "message", "message": {"role": "user", "content": SENTENCE}}) + "\n")
    with Memory.open(workspace, provider="none", **SESSIONS, sessions__paths=[str(file.parent)]) as memory:
        memory.index()
        memory.forget(path=memory.search(CANARY).hits[0].path)
        (item,) = (path for path in trash_files(workspace) if path.suffix == ".json")
        written = json.loads(item.read_text())
        for elsewhere in (tmp_path / "evil.sh", file.with_name("b.jsonl")):
            item.write_text(json.dumps(written | {"place": str(elsewhere)}))
            (problem,) = memory.undo().problems
            assert "not part of this memory" in problem.reason
            assert not elsewhere.exists()
        item.write_text(json.dumps(written))
        assert memory.undo().problems == ()
    assert file.exists()


@pytest.mark.skipif(os.name == "nt", reason="making links needs rights there")
def test_undo_follows_no_link_in_the_trash(memory, birds, workspace, tmp_path):
    (tmp_path / "key").write_text("PRIVATE")
    memory.forget(path="memory/birds.md")
    (content,) = (path for path in trash_files(workspace) if path.suffix == ".content")
    content.unlink()
    content.symlink_to(tmp_path / "key")
    assert len(memory.undo().problems) == 1
    assert not birds.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_in_the_trash_stops_nothing(memory, birds, workspace):
    kept = memory.forget("memory/birds.md#L3")
    os.mkfifo(trash_files(workspace)[0].with_name("00001.json"))
    assert [batch.id for batch in memory.trash()] == [kept.undo]
    assert memory.undo().problems == ()


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=12), st.sets(st.integers(1, 12)), st.integers(0, 12))
@settings(max_examples=100)
def test_cut_lines_come_back_in_order_beside_a_new_line(lines, numbers, at):
    """Lines that differ have one place only, wherever somebody adds a line."""
    text = [f"{number} {line}" for number, line in enumerate(lines)]
    content, cuts = cut_lines("".join(f"{line}\n" for line in text).encode(), "memory/a.md", numbers)
    left = content.decode().splitlines()
    left.insert(min(at, len(left)), "new")
    changed = "".join(f"{line}\n" for line in left).encode()
    together, at_end = put_lines_back(changed, "memory/a.md", cuts, unchanged=False)
    restored = [line for line in together.decode().splitlines() if line not in {"new", ""}]
    assert sorted(restored) == sorted(text)
    if not at_end:
        assert restored == text


FORGETTING = """
import sys
from notewell import Memory, NotewellError
with Memory.open(sys.argv[1], provider="none") as memory:
    shown = memory.forget(sys.argv[2], dry_run=True)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        report = memory.forget(sys.argv[2], confirmed=shown)
        print(len(report.forgotten), *(problem.reason for problem in report.problems))
    except NotewellError as error:
        print(0, error.message)
"""


@pytest.mark.slow
@pytest.mark.parametrize("by", ["id", "citation"])
def test_processes_that_forget_the_same_line_take_only_that_line(workspace, by):
    with Memory.open(workspace, provider="none") as memory:
        done = [memory.remember(f"Fact {n} about {n * 7} herons.", to="memory/zoo.md") for n in range(10)][4]
    words = [sys.executable, "-c", FORGETTING, str(workspace), done.entry if by == "id" else done.citation]
    work = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.stdout.readline() for process in work] == ["ready\n"] * 4
    for process in work:
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=120)[0] for process in work]
    assert sorted(output.split()[0] for output in outputs) == ["0", "0", "0", "1"]
    left = (workspace / "memory/zoo.md").read_text()
    assert [n for n in range(10) if f"Fact {n} " in left] == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_a_line_that_moved_while_it_was_confirmed_is_found_and_one_that_changed_is_left(memory, birds):
    shown = memory.forget("memory/birds.md#L8", dry_run=True)
    memory.forget("memory/birds.md#L5")  # another process: line 8 is now line 7
    with pytest.raises(QueryError):
        memory.forget("memory/birds.md#L8", confirmed=shown)
    assert "Last line." in birds.read_text()


SHOWING = {
    "search": lambda memory: memory.search("Another item", min_score=0.0),
    "get": lambda memory: memory.get("memory/birds.md"),
    "list": lambda memory: memory.list(path="memory/birds.md"),
    "a preview": lambda memory: memory.forget("memory/birds.md#L5", dry_run=True),
}


@pytest.mark.parametrize("showing", SHOWING)
def test_a_citation_used_twice_takes_no_other_line_until_the_note_is_shown(memory, birds, showing):
    memory.forget("memory/birds.md#L5")
    memory.forget("memory/birds.md#L3")  # above the first one nothing had moved
    with pytest.raises(QueryError, match="lines of this note have moved since it was last shown") as refused:
        memory.forget("memory/birds.md#L3-L5")
    assert "L4  - Another item." in refused.value.message
    memory.undo()
    SHOWING[showing](memory)
    memory.forget("memory/birds.md#L5")
    assert "Another item" not in birds.read_text()


def test_a_refused_citation_has_been_shown_and_works_the_next_time(memory, birds):
    memory.forget("memory/birds.md#L5")
    with pytest.raises(QueryError, match=r"L5  - Another item\."):
        memory.forget("memory/birds.md#L5")
    memory.forget("memory/birds.md#L5")
    assert "Another item" not in birds.read_text()


def test_a_line_of_a_note_that_was_edited_since_it_was_indexed_is_looked_at_again(memory, birds):
    birds.write_text(NOTE + "A new last line.\n")
    memory.forget("memory/birds.md#L3")  # reads as it did
    memory.index()
    memory.get("memory/birds.md")
    birds.write_text("New top.\n" + birds.read_text())
    with pytest.raises(QueryError, match="this note has changed since it was last indexed") as refused:
        memory.forget("memory/birds.md#L4")
    assert "L4  " in refused.value.message
    memory.forget("memory/birds.md#L1")
    assert birds.read_text().startswith("# Birds")


def test_a_tool_is_refused_a_citation_that_it_used_before(memory, birds):
    tools = MemoryTools(memory)
    assert not tools.call("memory_forget", {"entry": "memory/birds.md#L6"}).is_error
    birds.write_text(birds.read_text().replace("Last", "- The last"))
    again = tools.call("memory_forget", {"entry": "memory/birds.md#L7"})
    assert again.is_error
    assert "The last line." in again.document["error"]["message"]
    tools.call("memory_search", {"query": "the last line", "minScore": 0})
    assert not tools.call("memory_forget", {"entry": "memory/birds.md#L7"}).is_error


def test_what_matches_but_was_not_shown_is_left(memory, birds):
    shown = memory.forget(match="line", dry_run=True)
    birds.write_text(NOTE + "A new line.\n")
    memory.forget(match="line", confirmed=shown)
    assert birds.read_text().endswith("A new line.\n")
    assert "First line." not in birds.read_text()


KILLED = """
import os, sys
from notewell import Memory
from notewell.files.faults import planted
point, left = sys.argv[2], int(sys.argv[3])
def look(reached):
    global left
    left -= reached.startswith(point)
    if left < 0:
        os._exit(9)
wish = eval(sys.argv[4])
with Memory.open(sys.argv[1], provider="none", sources=["memory", "sessions"]) as memory, planted(look):
    memory.undo() if wish is None else memory.forget(**wish)
"""


def killed(workspace: Path, point: str, left: int, wish: object) -> bool:
    words = [sys.executable, "-c", KILLED, str(workspace), point, str(left), repr(wish)]
    return subprocess.run(words, timeout=120, check=False).returncode == 9


@pytest.mark.slow
@pytest.mark.parametrize("point", ["trash.", "note.", "session."])
@pytest.mark.parametrize("wish", [{"match": CANARY}, {"path": "memory/birds.md"}, {"session": "chat-1"}])
def test_a_killed_process_loses_nothing_and_for_good_leaves_nothing(memory, birds, workspace, point, wish):
    memory.close()
    for left in range(12):
        if not killed(workspace, point, left, wish):
            break
        with Memory.open(workspace, provider="none", **SESSIONS) as again:
            while again.trash():
                assert again.undo().problems == ()
            assert SENTENCE in birds.read_text()
            assert SENTENCE in said(again)
            again.forget(match="no such thing", for_good=True)
    with Memory.open(workspace, provider="none", **SESSIONS) as again:
        again.forget(match=CANARY, for_good=True)
    assert traces(workspace) == []


@pytest.mark.slow
@pytest.mark.parametrize("point", ["trash.", "note.", "session."])
def test_a_killed_undo_loses_nothing(memory, birds, workspace, point):
    memory.close()
    for left in range(8):
        with Memory.open(workspace, provider="none", **SESSIONS) as again:
            again.forget(match=CANARY)
        was_killed = killed(workspace, point, left, None)
        with Memory.open(workspace, provider="none", **SESSIONS) as again:
            while again.trash():
                again.undo()
            assert birds.read_text() == NOTE
            assert said(again) == ["before", SENTENCE, "after"]
        if not was_killed:
            break


def test_forgetting_from_several_threads(memory, workspace):
    done = [memory.remember(f"Fact {n} about {n * 7} herons.", to="memory/zoo.md") for n in range(8)]
    threads = [threading.Thread(target=memory.forget, args=[each.entry]) for each in done]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "Fact" not in (workspace / "memory/zoo.md").read_text()
    assert len(memory.trash()) == 8
    while memory.trash():
        memory.undo()
    text = (workspace / "memory/zoo.md").read_text()
    assert sorted(n for n in range(8) if f"Fact {n} " in text) == list(range(8))


# --- groups --------------------------------------------------------------------------------------


def test_a_group_forgets_only_what_it_wrote_and_undoes_only_that(memory):
    team = memory.seen_by(chat="group", session="team")
    other = memory.seen_by(chat="group", session="board")
    own = team.remember("The team meets at nine.", to="memory/open.md")
    theirs = other.remember("The board meets at ten.", to="memory/open.md")
    mine = memory.remember("Dana meets at eleven.", to="memory/open.md")
    for entry in (theirs.entry, mine.entry, theirs.citation, "memory/network.md#L5"):
        with pytest.raises(QueryError, match="not written by this group"):
            team.forget(entry)
    secret = memory.remember("Dana's secret.", to="MEMORY.md")
    with pytest.raises(EntryNotFoundError):
        team.forget(secret.entry)
    with pytest.raises(NoteNotFoundError):
        team.forget(secret.citation)
    memory.forget(secret.entry)
    report = team.forget(own.entry)
    assert [batch.id for batch in team.trash()] == [report.undo]
    assert other.trash() == ()
    with pytest.raises(TrashError):
        other.undo(report.undo)
    assert len(memory.trash()) == 2  # the owner sees all of it
    team.undo()
    assert team.trash() == ()
    assert len(memory.trash()) == 1


@pytest.mark.parametrize("for_good", [False, True])
def test_a_group_forgets_no_lines_of_others(memory, workspace, for_good):
    note = workspace / "memory/open.md"
    note.write_text("# Open\n\nDana moved the ferry to nine.\n\nThe ferry is blue.\n")
    team = memory.seen_by(chat="group", session="team")
    own = team.remember("The ferry leaves late.", to="memory/open.md")
    memory.seen_by(chat="group", session="board").remember("The ferry needs paint.", to="memory/open.md", force=True)
    before = note.read_text()
    for asked in (
        {"path": "memory/open.md"},
        {"path": "memory/open.md#L3-L8"},
        {"path": "memory/open.md", "since": "2020-01-01"},
    ):
        with pytest.raises(QueryError, match="not written by this group"):
            team.forget(**asked, for_good=for_good)
    for entry in ("memory/open.md", "memory/open.md#L1-L11", f"{own.citation[:-1]}3-L8"):
        with pytest.raises(QueryError, match="not written by this group"):
            team.forget(entry, for_good=for_good)
    assert note.read_text() == before
    report = team.forget(match="ferry", for_good=for_good)
    assert [line.text for each in report.forgotten for line in each.lines] == ["The ferry leaves late."]
    assert [problem.path for problem in report.problems] == ["memory/open.md"]
    assert note.read_text() == before.replace("The ferry leaves late.\n", "").replace(
        next(line for line in before.splitlines(keepends=True) if f"id={own.entry} " in line), ""
    )


def test_a_group_restores_nothing_in_a_note_that_became_private(memory, workspace):
    team = memory.seen_by(chat="group", session="team")
    own = team.remember("The team meets at nine.", to="memory/open.md")
    team.forget(own.entry)
    note = workspace / "memory/open.md"
    note.write_text("---\nprivate: true\n---\nDana's plans.\n")
    report = team.undo()
    assert report.restored == ()
    assert [problem.path for problem in report.problems] == ["memory/open.md"]
    assert note.read_text() == "---\nprivate: true\n---\nDana's plans.\n"
    memory.undo()
    assert "The team meets at nine." in note.read_text()


# --- the commands --------------------------------------------------------------------------------


def test_the_commands(birds, workspace, capsys):
    common = ["-w", str(workspace), "--set", "provider=none"]
    birds.write_text("My car is red.\nThe carpet and scarf are blue.\n")
    assert run(["forget", "--match", "car", "--dry-run", *common]) == 0
    assert capsys.readouterr().out == "memory/birds.md  1 line\n  L1  My car is red.\n"
    assert run(["forget", "--match", "car", "--substring", "--dry-run", *common]) == 0
    assert "  L2  The carpet and scarf are blue.\n" in capsys.readouterr().out
    assert run(["forget", "memory/birds.md#L1", *common]) == 2
    assert "needs a confirmation" in capsys.readouterr().err
    assert run(["forget", "memory/birds.md#L1", "--yes", "--json", *common]) == 0
    undo = json.loads(capsys.readouterr().out)["undo"]
    assert run(["undo", "--list", *common]) == 0
    assert capsys.readouterr().out.startswith(f"{undo}  ")
    assert run(["undo", "--list", "--json", *common]) == 0
    (batch,) = json.loads(capsys.readouterr().out)["trash"]
    assert batch["forgotten"][0]["lines"] == [{"line": 1, "text": "My car is red."}]
    assert run(["undo", undo, *common]) == 0
    assert capsys.readouterr().out == "memory/birds.md  1 line restored\n"
    assert birds.read_text() == "My car is red.\nThe carpet and scarf are blue.\n"
    assert run(["undo", *common]) == 1
    assert "the trash is empty" in capsys.readouterr().err
    assert run(["undo", "--list", *common]) == 0
    assert capsys.readouterr().out == "the trash is empty\n"
    assert run(["get", "memory/birds.md#L1", *common]) == 0
    assert capsys.readouterr().out == "My car is red.\n"
    assert run(["forget", "--path", "memory/birds.md#L1", "--for-good", "--yes", *common]) == 0
    assert "wiped: " in capsys.readouterr().out
    assert birds.read_text() == "The carpet and scarf are blue.\n"
    assert run(["forget", "nosuchid", "--yes", *common]) == 1
    told = capsys.readouterr().err
    assert "no remembered entry: 'nosuchid'" in told
    assert "`notewell forget --match TEXT` takes the lines that contain a text" in told


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminals")
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param("y\n", 0, id="yes"),
        pytest.param("n\n", 1, id="no"),
        pytest.param("\x04", 130, id="Ctrl-D, which ends the question as Ctrl-C does"),
    ],
)
def test_each_line_is_shown_before_it_is_asked(birds, workspace, answer, code):
    import pty

    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "notewell", "forget", "--match", "line", "-w", str(workspace)]
    process = subprocess.Popen(
        [*words, "--set", "provider=none"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    os.write(ours, answer.encode())
    _, shown = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert shown.index("L3  First line.") < shown.index("L8  Last line.") < shown.index("Move this to the trash?")
    assert ("First line." not in birds.read_text()) is (code == 0)
    assert ("\nnote: nothing was forgotten\n" in shown) is (code == 130)
    assert ("nothing was forgotten" in shown) is (code != 0)
    assert "error" not in shown
    assert process.returncode == code
