"""The session store's own files as transcripts: appended to in place, compacted, archived, deleted, broken."""

from __future__ import annotations

import threading

import pytest

from notewell import Memory
from tests.indexing.contents import contents_of, faults_of

pytest.importorskip("pyjson5", reason="the session store needs the extra `sessions`")

SETTINGS = {"provider": "hashing", "sources": ["memory", "sessions"], "experimental__session_memory": True}
WAIT_S = 30  # for a thread to do its work; it takes milliseconds


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path, sync__sessions__debounce_ms=0, sync__sessions__delta_messages=1, **SETTINGS) as opened:
        yield opened


def said(first: int, stop: int) -> list[dict[str, object]]:
    return [
        {
            "role": "assistant" if number % 2 else "user",
            "content": f"subject{number} about the harbour " + "and so on " * 9,
        }
        for number in range(first, stop)
    ]


def settle() -> None:
    """Wait until what was announced is indexed."""
    thread = next((each for each in threading.enumerate() if each.name == "notewell-follower"), None)
    if thread is not None:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def has(memory: Memory, number: int) -> bool:
    return any(f"subject{number} " in hit.snippet for hit in memory.search(f"subject{number}", sync=False).hits)


def check_against_fresh(memory: Memory, tmp_path) -> None:
    with Memory.open(tmp_path, **SETTINGS) as other:
        before = contents_of(memory)
        other.index(force=True)
    assert contents_of(memory) == before
    assert faults_of(memory) == []


def test_what_is_appended_is_found_without_anyone_asking(memory, tmp_path):
    session = memory.conversations.create().session_id
    memory.conversations.append(session, *said(0, 300))
    settle()
    assert has(memory, 299)
    memory.conversations.append(session, *said(300, 301))
    settle()
    assert has(memory, 300)
    hit = memory.search("subject300", sync=False).hits[0]
    assert hit.path == f"sessions/chats/{session}.json5"
    lines = (memory._components.folder.path / hit.path).read_text(encoding="utf-8").split("\n")
    assert "subject300 " in lines[hit.last_line - 1]
    assert memory.get(hit.path, first_line=hit.last_line, lines=1).text.startswith("User: subject300 ")
    check_against_fresh(memory, tmp_path)


@pytest.mark.slow
def test_an_append_reads_the_tail_alone(memory):
    session = memory.conversations.create().session_id
    memory.conversations.append(session, *said(0, 3000))
    settle()
    memory.index()
    size = (memory._components.folder.path / f"sessions/chats/{session}.json5").stat().st_size
    memory.conversations.append(session, *said(3000, 3001))
    settle()
    memory.close()
    memory.conversations.append(session, *said(3001, 3002))
    report = memory.index()
    assert report.bytes_read < size / 10
    assert has(memory, 3001)


def test_compacting_archiving_and_deleting(memory, tmp_path):
    session = memory.conversations.create().session_id
    memory.conversations.append(session, *said(0, 60))
    memory.index()
    memory.conversations.compact(session, "They talked about the harbour.", keep_last=10)
    memory.index()
    assert has(memory, 59)
    assert has(memory, 5)  # compacted messages are kept beside the session, and stay findable
    check_against_fresh(memory, tmp_path)
    memory.conversations.archive(session)
    memory.index()
    assert has(memory, 59)
    check_against_fresh(memory, tmp_path)
    memory.conversations.delete(session)
    memory.index()
    assert not has(memory, 59)
    assert not has(memory, 5)
    assert memory.status().files == 0
