"""What a preview says is what the run after it does, for notes and for conversations that grow."""

from __future__ import annotations

import pytest

from notewell import Memory, PathRefusedError
from tests.sources.transcripts.records import jsonl, openclaw


def talk(first: int, count: int) -> bytes:
    return jsonl(
        *(
            openclaw("user" if number % 2 else "assistant", f"Message {number}: the harbour pump number {number} hums.")
            for number in range(first, first + count)
        )
    )


@pytest.fixture
def transcript(tmp_path):
    path = tmp_path / "talks" / "s1.jsonl"
    path.parent.mkdir()
    path.write_bytes(talk(1, 60))
    return path


@pytest.fixture
def memory(workspace, transcript):
    with Memory.open(
        workspace,
        provider="hashing",
        sources=["memory", "sessions"],
        experimental__session_memory=True,
        sessions__paths=[transcript.parent],
    ) as opened:
        yield opened


def assert_kept(memory, **arguments):
    """Preview, index, and compare."""
    said = memory.preview(**arguments)
    done = memory.index(**arguments)
    assert (len(said.added), len(said.changed), len(said.removed)) == (
        done.added + done.renamed,
        done.changed,
        done.removed,
    )
    assert said.to_embed == done.embedded
    assert memory.preview(**arguments).to_embed == 0
    return said, done


def test_the_first_run(memory):
    said, _ = assert_kept(memory)
    assert len(said.added) == 8
    assert said.to_embed == said.chunks


def test_notes_and_conversations_that_changed(memory, workspace, transcript):
    memory.index()
    with transcript.open("ab") as file:
        file.write(talk(61, 60))
    (workspace / "MEMORY.md").write_text("# Memory\n\nOwner: Dana, now in Porto.\n", encoding="utf-8")
    (workspace / "memory" / "network.md").unlink()
    said, _ = assert_kept(memory)
    assert len(said.changed) == 2
    assert said.to_embed > 0


def test_a_conversation_that_was_rewritten(memory, transcript):
    memory.index()
    transcript.write_bytes(talk(1000, 40))
    said, _ = assert_kept(memory)
    assert len(said.changed) == 1


def test_some_paths(memory):
    said, _ = assert_kept(memory, paths=["memory/network.md"])
    assert said.added == ("memory/network.md",)


def test_everything_anew(memory):
    memory.index()
    said = memory.preview(force=True)
    assert (said.rebuild_reason, said.to_embed, said.known) == ("requested", 0, said.chunks)


def test_texts_that_occur_twice_are_sent_once(memory, workspace):
    for name in ("one", "two"):
        (workspace / "memory" / f"{name}.md").write_text("The same text in two notes.\n", encoding="utf-8")
    said, _ = assert_kept(memory)
    assert said.to_embed == said.chunks - 1


def test_a_path_that_is_no_memory(memory):
    with pytest.raises(PathRefusedError):
        memory.preview(paths=["../secret.md"])
