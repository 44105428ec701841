"""Conversations that grow are read from where they ended; those that were rewritten are done again."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from notewell import Memory
from notewell.errors import PathRefusedError, SettingsError
from notewell.indexing.plan import Deadline, SyncPolicy
from notewell.sources.transcripts import growing
from notewell.text.fences import fence
from tests.indexing.contents import contents_of, faults_of
from tests.indexing.transcripts import append, documents_of, lines, open_memory, position_of


@pytest.fixture
def talks(tmp_path):
    folder = tmp_path / "talks"
    folder.mkdir()
    return folder


@pytest.fixture
def memory(tmp_path, talks):
    with open_memory(tmp_path / "workspace", talks) as opened:
        yield opened


def fresh(tmp_path, talks):
    """Return what a new index of the same files holds."""
    with open_memory(tmp_path / "workspace", talks, store__path=str(tmp_path / "fresh")) as memory:
        memory.index()
        return contents_of(memory), documents_of(memory)


def test_conversations_are_found_with_their_true_lines(memory, talks):
    (talks / "a.jsonl").write_bytes(b'{"type":"session"}\n' + lines(0, 40))
    report = memory.index()
    assert (report.added, report.problems) == (1, ())
    hit = memory.search("subject17", source="sessions").hits[0]
    assert (hit.path, hit.source) == ("sessions/@talks/a.jsonl", "sessions")
    assert (hit.first_line, hit.last_line) == (17, 21)  # with two messages on either side
    assert hit.citation == "sessions/@talks/a.jsonl#L17-L21"
    shown = memory.get(hit.path, first_line=19, lines=1)
    assert shown.text.startswith("Assistant: subject17 ")
    assert (shown.line_count, shown.next_first_line, shown.truncated) == (1, 20, False)


@pytest.mark.slow
def test_only_the_tail_is_read_chunked_and_embedded(memory, talks, tmp_path):
    file = talks / "a.jsonl"
    file.write_bytes(lines(0, 2000))
    first = memory.index()
    assert first.bytes_read >= file.stat().st_size
    append(file, lines(2000, 2001))
    a_moment_ago = file.stat().st_mtime_ns - 1_500_000_000  # the stamp of a file just written is not trusted yet
    os.utime(file, ns=(a_moment_ago, a_moment_ago))
    second = memory.index()
    assert (second.changed, second.added, second.unchanged) == (1, 0, 0)
    assert second.embedded == 1
    assert second.bytes_read < 20_000
    assert "subject2000" in memory.search("subject2000").hits[0].snippet
    assert (contents_of(memory), documents_of(memory)) == fresh(tmp_path, talks)
    assert faults_of(memory) == []
    third = memory.index()
    assert (third.unchanged, third.bytes_read, third.embedded) == (1, 0, 0)


def stored_chunks(memory):
    """Return the chunks by their ids, without the date, which is that of the whole conversation."""
    with memory._components.index.use() as store, store.reading() as snapshot:
        return {chunk_id: replace(chunk, dated=None) for chunk_id, chunk in snapshot.chunks(range(1, 1000)).items()}


def test_a_message_more_is_a_chunk_more_and_no_other_changes(memory, talks):
    file = talks / "a.jsonl"
    file.write_bytes(lines(0, 30))
    assert memory.index().embedded == 30
    before = stored_chunks(memory)
    assert sorted((chunk.first_line, chunk.last_line, chunk.turn) for chunk in before.values()) == [
        (turn, turn, turn) for turn in range(1, 31)
    ]
    append(file, b'{"type":"session"}\n' + lines(30, 31))
    assert memory.index().embedded == 1
    after = stored_chunks(memory)
    assert before.items() <= after.items()
    (added,) = (after[chunk_id] for chunk_id in after.keys() - before.keys())
    assert (added.first_line, added.last_line, added.turn, added.parts) == (32, 32, 31, 1)
    assert added.text.startswith("User: subject30 ")


def test_a_long_message_is_several_chunks_of_one_turn(memory, talks, tmp_path):
    file = talks / "a.jsonl"
    file.write_bytes(lines(0, 1))
    memory.index()
    append(file, lines(1, 2, words=1000) + lines(2, 3))
    memory.index()
    by_turn = {}
    for chunk in stored_chunks(memory).values():
        by_turn.setdefault(chunk.turn, []).append(chunk)
    assert {turn: len(chunks) for turn, chunks in by_turn.items() if turn != 2} == {1: 1, 3: 1}
    assert len(by_turn[2]) > 2
    assert {chunk.parts for chunk in by_turn[2]} == {len(by_turn[2])}
    assert all(chunk.text.startswith("Assistant: ") and chunk.first_line == 2 for chunk in by_turn[2])
    assert (contents_of(memory), documents_of(memory)) == fresh(tmp_path, talks)


def test_one_message_more_in_a_hundred_megabytes(memory, talks):
    file = talks / "a.jsonl"
    noise = b'{"type":"message","message":{"role":"toolResult","content":"' + b"x" * 1_000_000 + b'"}}\n'
    with file.open("wb") as handle:
        for number in range(100):
            handle.write(lines(number * 5, number * 5 + 5) + noise)
    assert file.stat().st_size > 100_000_000
    assert memory.index().bytes_read > 100_000_000
    append(file, lines(600, 601))
    report = memory.index()
    assert report.changed == 1
    assert report.bytes_read < 1_000_000
    assert memory.search("subject600").hits


REWRITES = {
    "cut short": lambda file: file.write_bytes(file.read_bytes()[:5000]),
    "a message taken out": lambda file: file.write_bytes(lines(0, 50) + lines(51, 400)),
    "a message put on top": lambda file: file.write_bytes(lines(900, 901) + file.read_bytes()),
    "other words, same length": lambda file: file.write_bytes(file.read_bytes().replace(b"subject77", b"subject99")),
    "replaced by a longer one": lambda file: (file.unlink(), file.write_bytes(lines(300, 800))),
    "emptied": lambda file: file.write_bytes(b""),
}


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_rewritten_conversation_is_done_again(rewrite, memory, talks, tmp_path):
    file = talks / "a.jsonl"
    file.write_bytes(lines(0, 400))
    memory.index()
    REWRITES[rewrite](file)
    os.utime(file, ns=(10**18, 10**18))
    report = memory.index()
    assert report.changed == 1
    assert (contents_of(memory), documents_of(memory)) == fresh(tmp_path, talks)
    assert faults_of(memory) == []


def test_a_rewrite_keeps_the_vectors_of_what_stayed(tmp_path, talks):
    file = talks / "a.jsonl"
    file.write_bytes(lines(0, 400))
    with open_memory(tmp_path / "workspace", talks, cache__enabled=False) as memory:
        total = memory.index().embedded
        file.write_bytes(file.read_bytes()[: -len(lines(399, 400))])
        report = memory.index()
        assert report.changed == 1
        assert total == 400
        assert report.embedded == 0


def test_a_touched_conversation_is_unchanged(memory, talks):
    file = talks / "a.jsonl"
    file.write_bytes(lines(0, 100))
    memory.index()
    before = contents_of(memory)
    os.utime(file, ns=(10**18, 10**18))
    report = memory.index()
    assert (report.unchanged, report.changed, report.embedded) == (1, 0, 0)
    assert contents_of(memory) == before
    assert memory.index().bytes_read == 0


def test_renaming_and_removing(memory, talks):
    (talks / "a.jsonl").write_bytes(lines(0, 100))
    (talks / "b.jsonl").write_bytes(lines(200, 300))
    memory.index()
    (talks / "a.jsonl").rename(talks / "moved.jsonl")
    report = memory.index()
    assert (report.renamed, report.removed, report.embedded) == (1, 0, 0)
    assert {hit.path for hit in memory.search("subject17").hits} == {"sessions/@talks/moved.jsonl"}
    (talks / "b.jsonl").unlink()
    assert memory.index(source="sessions").removed == 1
    assert set(documents_of(memory)) == {"sessions/@talks/moved.jsonl"}
    assert faults_of(memory) == []


def test_a_rebuild_gives_the_same(memory, talks):
    (talks / "a.jsonl").write_bytes(lines(0, 100))
    memory.index()
    append(talks / "a.jsonl", lines(100, 150))
    memory.index()
    before = contents_of(memory)
    report = memory.index(force=True)
    assert (report.rebuilt, report.embedded) == (True, 0)
    assert contents_of(memory) == before


@pytest.mark.slow
def test_pieces_are_committed_one_by_one_and_gone_on_with(memory, talks, tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "PIECE_CHARS", 2000)
    monkeypatch.setattr(growing, "PIECE_BYTES", 5000)
    file = talks / "a.jsonl"
    file.write_bytes(lines(0, 1000))
    reached = []
    for _ in range(2000):  # the machine may be too busy for any piece in time; those runs get no further
        report = memory._components.sync.run(SyncPolicy(deadline=Deadline.after(0.02)))
        reached.append(position_of(memory, "sessions/@talks/a.jsonl"))
        assert faults_of(memory) == []
        if report.complete:
            break
    assert report.complete
    assert reached == sorted(reached)
    assert len(set(reached)) > 2
    assert reached[-1] == file.stat().st_size
    assert (contents_of(memory), documents_of(memory)) == fresh(tmp_path, talks)


def test_paths_of_both_sources_may_be_named(memory, talks, tmp_path):
    (tmp_path / "workspace/MEMORY.md").write_text("# Tea\n\nGreen.\n", encoding="utf-8")
    (talks / "a.jsonl").write_bytes(lines(0, 10))
    (talks / "b.jsonl").write_bytes(lines(10, 20))
    assert memory.index(paths=["MEMORY.md", "sessions/@talks/a.jsonl"]).added == 2
    assert memory.index(source="memory").unchanged == 1
    assert memory.index(source="sessions").added == 1
    for path in ("sessions/../a.jsonl", "x.txt", "sessions/a.md"):
        with pytest.raises(PathRefusedError):
            memory.index(paths=[path])


def test_sources_are_searched_apart_or_together(memory, talks, tmp_path):
    (tmp_path / "workspace/MEMORY.md").write_text("# Garden\n\nThe harbour garden is closed.\n", encoding="utf-8")
    (talks / "a.jsonl").write_bytes(lines(0, 10))
    memory.index()
    asked = {source: {hit.source for hit in memory.search("harbour", source=source).hits} for source in (None, "all")}
    assert asked == {None: {"memory", "sessions"}, "all": {"memory", "sessions"}}
    assert {hit.source for hit in memory.search("harbour", source="memory").hits} == {"memory"}
    assert {hit.source for hit in memory.search("harbour", source="sessions").hits} == {"sessions"}


def test_conversations_must_be_asked_for(tmp_path, talks):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("# Garden\n\nThe harbour garden is closed.\n", encoding="utf-8")
    (talks / "a.jsonl").write_bytes(lines(0, 10))
    with open_memory(workspace, talks) as memory:
        assert memory.index().added == 2
    for options in (
        {},
        {"sources": ["memory"], "sessions__paths": [str(talks)]},
        {"experimental__session_memory": True},
    ):
        with Memory.open(workspace, provider="hashing", **options) as memory:
            answer = memory.search("harbour")
            assert {hit.source for hit in answer.hits} == {"memory"}
            assert answer.index.stale is False
            with pytest.raises(PathRefusedError):
                memory.get("sessions/@talks/a.jsonl")
            with pytest.raises(SettingsError, match="not part of this memory"):
                memory.search("harbour", source="sessions")
            with pytest.raises(SettingsError, match="not part of this memory"):
                memory.index(source="sessions")


def test_a_conversation_is_dated_by_its_last_message(memory, talks):
    (talks / "a.jsonl").write_bytes(lines(0, 4))  # the last is of 4 March
    memory.index()
    assert memory.search("subject1", on="2026-03-04").hits
    assert not memory.search("subject1", on="2026-03-01").hits
    append(talks / "a.jsonl", lines(4, 10))
    memory.index()
    assert memory.search("subject1", on="2026-03-10").hits
    assert not memory.search("subject1", on="2026-03-04").hits


def test_a_hit_never_names_a_conversation_that_is_gone(memory, talks):
    (talks / "a.jsonl").write_bytes(lines(0, 4))
    memory.index()
    (talks / "a.jsonl").unlink()
    answer = memory.search("subject1", sync=False)
    assert answer.hits == ()
    assert answer.index.stale


def test_no_secret_reaches_the_disk(memory, talks):
    secret = "sk-ant-api03-" + "Zq8xW2vB" * 11 + "AA"
    file = talks / "a.jsonl"
    file.write_bytes(lines(0, 3).replace(b"subject1 ", f"subject1 key {secret} ".encode()))
    memory.index()
    append(file, lines(3, 4).replace(b"subject3 ", f"subject3 again {secret} ".encode()))
    memory.index()
    hit = memory.search("subject1", source="sessions").hits[0]
    assert "[secret:" in hit.snippet
    assert "[secret:" in memory.get(hit.path).text
    memory.close()
    for kept in memory._components.folder.path.rglob("*"):
        if kept.is_file():
            content = kept.read_bytes()
            assert secret.encode() not in content, kept
            assert secret[-40:].lower().encode() not in content.lower(), kept


def test_recalled_text_never_comes_back_as_new_memory(memory, talks, tmp_path):
    (tmp_path / "workspace/MEMORY.md").write_text("# Shed\n\nThe zeppelin shed is green.\n", encoding="utf-8")
    memory.index()
    recalled = memory.search("zeppelin shed").hits[0]
    said = f"What colour? {fence(recalled.snippet, recalled.citation)} It is green, I think."
    record = {"type": "message", "message": {"role": "assistant", "content": said}}
    (talks / "a.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    assert memory.index().added == 1
    assert {hit.source for hit in memory.search("zeppelin").hits} == {"memory"}
    assert memory.get("sessions/@talks/a.jsonl").text == "Assistant: What colour? It is green, I think."
