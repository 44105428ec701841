"""Forgetting leaves no trace: after it, no file of the workspace or its data folder holds the canary in any form."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import threading

import pytest

from notewell import (
    ConversationStore,
    Memory,
    NoteNotFoundError,
    PathRefusedError,
    QueryError,
    SessionNotFoundError,
)
from notewell.cli.main import run
from notewell.embedding.hashing import HashingEmbedder
from notewell.embedding.jobs import JobFailures, Ledger, new_record
from notewell.files.faults import planted
from notewell.text.lexicon import index_terms
from notewell.types import hash_text

CANARY = "flamingoquux"
SENTENCE = f"The {CANARY} sleeps in the blue shed."
SESSIONS = {"sources": ["memory", "sessions"], "experimental__session_memory": True}


def traces(folder, *texts) -> list[str]:
    """Return every file that holds the canary, or a hash or vector of a text that said it, and how."""
    forms = {"text": CANARY.encode(), "UTF-16": CANARY.encode("utf-16-le")}
    forms |= {f"term {term}": term.encode() for term in index_terms(CANARY).split()}
    embedder = HashingEmbedder()
    for text in texts:
        forms[f"hash of {text!r}"] = bytes.fromhex(hash_text(text))
        forms[f"hex hash of {text!r}"] = hash_text(text).encode()
        vector = embedder.embed_documents([text])[0]
        forms[f"vector of {text!r}"] = vector.astype("<f2").tobytes()
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            lowered = content.lower()
            shown = path.relative_to(folder).as_posix()
            found += [f"{shown}: {name}" for name, form in forms.items() if form in content or form in lowered]
            found += [f"{shown}: name"] if CANARY in path.name else []
    return found


def embedded_texts(memory) -> list[str]:
    """Return what was embedded of every chunk that says the canary."""
    with memory._components.index.use() as store, store.reading() as snapshot:
        ids = [row[0] for row in snapshot._db.rows("SELECT id FROM chunks")]
        chunks = snapshot.chunks(ids).values()
        return [
            f"{c.context}\n{c.text}" if c.context else c.text
            for c in chunks
            if CANARY in f"{c.context} {c.text}".lower()
        ]


@pytest.fixture
def notes(workspace):
    (workspace / "memory" / f"{CANARY}.md").write_text(f"# Birds\n\n{SENTENCE}\n")
    (workspace / "memory" / "network.md").write_bytes(
        f"# Network\r\n\r\nThe printer jams.\r\n- {SENTENCE.upper()}\r\nLast line".encode()
    )
    (workspace / "memory" / "2026-11-01.md").write_text(
        f"# Day\n\nStays.\n\n{SENTENCE}\n\n_Noted 2026-11-01 10:00 by main, from x._\n\nStays too.\n"
    )
    return workspace


@pytest.fixture
def memory(notes):
    with Memory.open(notes, embedder=HashingEmbedder(), **SESSIONS) as opened:
        sessions = ConversationStore(opened._components.folder.path / "sessions")
        sessions.create("chat-1", title=f"about the {CANARY}")
        sessions.append(
            "chat-1", {"role": "user", "content": SENTENCE}, {"role": "assistant", "content": "noted, thanks"}
        )
        sessions.create("team", kind="group")
        sessions.append("team", {"role": "user", "content": "nothing about birds"})
        opened.index()
        yield opened


def test_before_it_the_canary_is_everywhere(memory, notes):
    texts = embedded_texts(memory)
    assert len(texts) == 4
    places = {line.split(": ")[0].rsplit("/", 1)[-1] for line in traces(notes, *texts)}
    assert {"index-1.sqlite-wal", "cache.sqlite-wal", "network.md", "chat-1.json5"} <= places


def test_a_match_takes_lines_and_messages_and_leaves_no_trace(memory, notes):
    texts = embedded_texts(memory)
    report = memory.forget(match=f"{CANARY} sleeps  in", for_good=True)
    (notes / "memory" / f"{CANARY}.md").rename(notes / "memory" / "birds.md")
    memory.forget(match=CANARY, for_good=True)
    assert {(each.path, each.whole, each.count) for each in report.forgotten} == {
        (f"memory/{CANARY}.md", False, 1),
        ("memory/network.md", False, 1),
        ("memory/2026-11-01.md", False, 1),  # and the line that says who noted it
        ("sessions/chats/chat-1.json5", False, 1),
    }
    assert report.chunks == 6  # without the entry, the texts around it share a chunk
    assert report.vectors == 6
    memory.close()
    assert traces(notes, *texts) == []
    assert (notes / "memory" / "network.md").read_bytes() == b"# Network\r\n\r\nThe printer jams.\r\nLast line"
    assert (notes / "memory" / "2026-11-01.md").read_text() == "# Day\n\nStays.\n\n\n\nStays too.\n"
    assert memory.search(CANARY).hits == ()
    assert memory.search("printer jams").hits
    assert memory.verify().findings == ()
    kept = ConversationStore(memory._components.folder.path / "sessions").get("chat-1")
    assert [message.content for message in kept.messages] == ["noted, thanks"]
    assert kept.entry.title is None


def test_a_note_goes_with_its_file(memory, notes):
    memory.forget(match=CANARY, for_good=True)
    path = f"memory/{CANARY}.md"
    (notes / path).write_text(f"# Again\n\n{SENTENCE}\n")
    memory.index()
    texts = embedded_texts(memory)
    report = memory.forget(path=path, for_good=True)
    assert [(each.path, each.whole, each.count) for each in report.forgotten] == [(path, True, 3)]
    assert not (notes / path).exists()
    memory.close()
    assert traces(notes, *texts) == []


def test_a_session_goes_whole(memory, notes):
    sessions = ConversationStore(memory._components.folder.path / "sessions")
    sessions.compact("chat-1", f"they spoke of the {CANARY}", keep_last=1)
    memory.index()
    texts = embedded_texts(memory)
    report = memory.forget(session="chat-1", for_good=True)
    assert [(each.path, each.whole) for each in report.forgotten] == [("sessions/chats/chat-1.json5", True)]
    for path in (notes / "memory").rglob("*.md"):
        path.unlink()
    memory.forget(match=CANARY, for_good=True)
    memory.close()
    assert traces(notes, *texts) == []
    assert [entry.session_id for entry in sessions.list()] == ["team"]


def test_compacted_messages_and_summaries_go_by_match(memory, notes):
    sessions = ConversationStore(memory._components.folder.path / "sessions")
    sessions.append("chat-1", {"role": "user", "content": "harmless"})
    sessions.compact("chat-1", f"they spoke of the {CANARY}", keep_last=1)
    memory.forget(match=CANARY, for_good=True)
    assert traces(memory._components.folder.path / "sessions") == []
    assert [message.content for message in sessions.get("chat-1").messages] == ["harmless"]


def test_what_earlier_wordings_left_in_the_cache_goes(memory, notes):
    texts = embedded_texts(memory)
    for path in (notes / "memory").rglob("*.md"):
        path.write_text("# Other\n\nsomething else\n")
    (notes / "memory" / f"{CANARY}.md").unlink()
    memory.index()
    memory.forget(match=CANARY, for_good=True)
    memory.close()
    assert traces(notes, *texts) == []


def test_leftovers_of_broken_off_and_damaged_indexes_go(memory, notes):
    current = memory._components.folder.current()
    memory.close()
    for name in (
        "index-7.sqlite",
        "index-1.sqlite.corrupt-20260101T000000000000Z",
        "cache.sqlite.corrupt-20260101T000000000000Z",
    ):
        shutil.copy(current, current.with_name(name))
        current.with_name(f"{name}-wal").write_bytes(CANARY.encode())
    memory.forget(match=CANARY, for_good=True)
    (notes / "memory" / f"{CANARY}.md").unlink()
    memory.forget(match=CANARY, for_good=True)
    memory.close()
    assert traces(notes) == []


def test_chunks_that_wait_for_a_vector_go(notes):
    with Memory.open(notes, provider="none") as memory:
        memory.index()
        memory.forget(match=CANARY, for_good=True)
        memory.forget(path=f"memory/{CANARY}.md", for_good=True)
    assert traces(notes) == []


class SlowEmbedder(HashingEmbedder):
    """Stops in the middle of its work until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def embed_documents(self, texts):
        self.begun.set()
        assert self.go_on.wait(60)
        return super().embed_documents(texts)


def test_while_an_embedding_is_under_way(notes):
    embedder = SlowEmbedder()
    with Memory.open(notes, embedder=embedder) as indexing, Memory.open(notes, provider="none") as forgetting:
        work = threading.Thread(target=indexing.index)
        work.start()
        assert embedder.begun.wait(60)
        done = []
        forget = threading.Thread(target=lambda: done.append(forgetting.forget(match=CANARY, for_good=True)))
        forget.start()
        texts = embedded_texts(forgetting)
        assert texts
        embedder.go_on.set()
        work.join(60)
        forget.join(60)
        assert [len(report.forgotten) for report in done] == [3]
        forgetting.forget(path=f"memory/{CANARY}.md", for_good=True)
    assert traces(notes, *texts) == []


def test_batch_jobs_under_way_no_longer_want_it(memory):
    (text, *_) = embedded_texts(memory)
    ledger = Ledger(memory._components.folder.path)
    other = hash_text("something that is not in the memory any more")
    with memory._components.index.use() as store:
        stays = min(store.embedded_hashes() - {hash_text(each) for each in embedded_texts(memory)})
    ledger.write(new_record(HashingEmbedder().identity, [hash_text(text), other, stays]))
    memory.forget(match=CANARY, for_good=True)
    assert ledger.records()[0].wanted == {stays}


def test_what_a_provider_said_about_it_goes(memory):
    folder = memory._components.folder.path
    Ledger(folder).record_failures(JobFailures(1, f"a batch job failed: bad input {SENTENCE!r}", "openai"))
    memory.forget(match=CANARY, for_good=True)
    assert CANARY not in "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.json"))
    assert Ledger(folder).failures() == JobFailures()


def test_other_agents_of_the_workspace_forget_the_note_too(memory, notes):
    with Memory.open(notes, agent="second", embedder=HashingEmbedder()) as second:
        second.index()
    memory.forget(match=CANARY, for_good=True)
    memory.forget(path=f"memory/{CANARY}.md", for_good=True)
    memory.close()
    assert traces(notes) == []


def test_a_command_that_was_killed_is_done_to_its_end_by_the_next(memory, notes):
    texts = embedded_texts(memory)
    memory.forget(match=CANARY, for_good=True)
    (notes / "memory" / f"{CANARY}.md").write_text(SENTENCE)
    memory.index()
    (notes / "memory" / f"{CANARY}.md").unlink()  # as far as the killed process came
    with pytest.raises(NoteNotFoundError):
        memory.forget(path=f"memory/{CANARY}.md", for_good=True)
    memory.close()
    assert traces(notes, *texts) == []


def everything(folder) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".lock" and not path.name.endswith("-shm")
    }


@pytest.mark.parametrize(
    "wish",
    [{"match": CANARY}, {"path": "memory/network.md"}, {"session": "chat-1"}],
    ids=["match", "path", "session"],
)
def test_a_dry_run_tells_the_same_and_changes_nothing(memory, notes, wish):
    before = everything(notes)
    planned = memory.forget(**wish, dry_run=True, for_good=True)
    assert everything(notes) == before
    assert planned.dry_run
    done = memory.forget(**wish, for_good=True)
    assert {(each.path, each.whole) for each in done.forgotten} == {
        (each.path, each.whole) for each in planned.forgotten
    }


def test_since_spares_what_is_older_or_has_no_day(memory, notes):
    (notes / "memory" / "2026-10-01.md").write_text(f"# Old\n\n{SENTENCE}\n")
    report = memory.forget(match=CANARY, since="2026-10-15", for_good=True)
    assert {each.path for each in report.forgotten} == {"memory/2026-11-01.md", "sessions/chats/chat-1.json5"}
    assert CANARY in (notes / "memory" / "2026-10-01.md").read_text()
    assert CANARY.upper() in (notes / "memory" / "network.md").read_text()
    assert memory.forget(match=CANARY, since="2099-01-01", for_good=True).forgotten == ()


def test_since_takes_the_newer_messages_of_a_session(memory):
    sessions = ConversationStore(memory._components.folder.path / "sessions")
    sessions.create("long")
    sessions.append(
        "long", {"role": "user", "content": "old", "timestamp": 1_700_000_000_000}, {"role": "user", "content": "new"}
    )
    report = memory.forget(session="long", since="2026-01-01", for_good=True)
    assert [(each.path, each.whole, each.count) for each in report.forgotten] == [
        ("sessions/chats/long.json5", False, 1)
    ]
    assert [message.content for message in sessions.get("long").messages] == ["old"]


def test_a_transcript_of_another_program_is_not_edited_but_may_be_deleted(notes, tmp_path):
    transcripts = tmp_path / "other" / "projects"
    transcripts.mkdir(parents=True)
    file = transcripts / "a.jsonl"
    file.write_text(json.dumps({"type": "message", "message": {"role": "user", "content": SENTENCE}}) + "\n")
    with Memory.open(notes, provider="none", **SESSIONS, sessions__paths=[str(transcripts)]) as memory:
        memory.index()
        report = memory.forget(match=CANARY, for_good=True)
        (name, problem) = report.problems
        assert name.path == f"memory/{CANARY}.md"
        assert "its name contains the text" in name.reason
        assert problem.path.startswith("sessions/@")
        assert CANARY in file.read_text()
        report = memory.forget(path=problem.path, for_good=True)
        assert [(each.path, each.whole) for each in report.forgotten] == [(problem.path, True)]
        memory.forget(path=f"memory/{CANARY}.md", for_good=True)
    assert not file.exists()
    assert traces(notes) == []


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        pytest.param({}, QueryError, id="nothing named"),
        pytest.param({"match": "abc", "path": "MEMORY.md"}, QueryError, id="two things named"),
        pytest.param({"match": " a "}, QueryError, id="too short a text"),
        pytest.param({"match": "a " * 1_001}, QueryError, id="too long a text"),
        pytest.param({"match": "abcd", "since": "no day"}, QueryError, id="no day"),
        pytest.param({"path": "../x.md"}, PathRefusedError, id="a path outside"),
        pytest.param({"path": "memory/none.md"}, NoteNotFoundError, id="no such note"),
        pytest.param({"session": "none"}, SessionNotFoundError, id="no such session"),
    ],
)
def test_what_cannot_be_forgotten(memory, notes, wish, error):
    before = {path: path.read_bytes() for path in notes.rglob("*.md")}
    with pytest.raises(error):
        memory.forget(**wish, for_good=True)
    assert {path: path.read_bytes() for path in notes.rglob("*.md")} == before


@pytest.mark.parametrize("point", ["note.open", "note.rename", "note.remove"])
def test_what_the_disk_refuses_is_told_and_the_rest_is_done(memory, notes, point):
    def fail(reached):
        if reached == point:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    wish = {"path": "memory/network.md"} if point == "note.remove" else {"match": CANARY}
    with planted(fail):
        report = memory.forget(**wish, for_good=True)
    assert report.problems
    assert all("memory/" in problem.path for problem in report.problems)
    assert (notes / "memory" / "network.md").exists()
    memory.forget(match=CANARY, for_good=True)
    assert CANARY not in (notes / "memory" / "network.md").read_text().lower()


# --- the command ---------------------------------------------------------------------------------


def test_the_command_asks_before_it_deletes(notes, capsys):
    words = ["forget", "--match", CANARY, "-w", str(notes), "--set", "provider=none"]
    assert run(words) == 2
    assert "needs a confirmation" in capsys.readouterr().err
    assert CANARY in (notes / "memory" / f"{CANARY}.md").read_text()
    assert run([*words, "--dry-run"]) == 1
    assert "memory/network.md  1 line" in capsys.readouterr().out
    assert run([*words, "--yes", "--json"]) == 1  # a file of that name is still there
    report = json.loads(capsys.readouterr().out)
    assert {each["path"] for each in report["forgotten"]} == {
        f"memory/{CANARY}.md", "memory/network.md", "memory/2026-11-01.md",
    }  # fmt: skip
    assert run(["forget", "--path", f"memory/{CANARY}.md", "-w", str(notes), "--yes"]) == 0
    assert run([*words, "--yes", "--for-good"]) == 0
    assert "the whole file, 2 lines, in the trash" in capsys.readouterr().out
    assert run([*words, "--yes", "--for-good"]) == 0
    assert "no note or conversation contains this" in capsys.readouterr().err
    assert traces(notes) == []
