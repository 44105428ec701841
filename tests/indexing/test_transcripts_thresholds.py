"""A conversation that is going on is indexed when enough has come together, or when someone asks; and by event."""

from __future__ import annotations

import threading

import pytest

from notewell import Memory
from notewell.errors import PathRefusedError, StoreError
from notewell.indexing.background_sync import MOST_DELAYS, Follower
from tests.indexing.transcripts import append, lines, open_memory

NEVER_QUIET = {"sync__sessions__debounce_ms": 600_000}
AT_ONCE = {"sync__sessions__debounce_ms": 0}
WAIT_S = 30  # for a thread to do its work; it takes milliseconds


@pytest.fixture
def talks(tmp_path):
    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines(0, 20))
    return folder


def has(memory: Memory, number: int, **options: object) -> bool:
    answer = memory.search(f"subject{number}", **options)
    return any(f"subject{number} " in hit.snippet for hit in answer.hits)


def test_a_search_waits_for_more_and_says_that_it_is_stale(tmp_path, talks):
    with open_memory(tmp_path / "workspace", talks) as memory:
        memory.index()
        assert memory.search("subject1").index.stale is False
        append(talks / "a.jsonl", lines(100, 101))
        answer = memory.search("subject100")
        assert answer.index.stale
        assert not has(memory, 100)
        assert memory.status().stale
        append(talks / "a.jsonl", lines(101, 149))
        assert not has(memory, 148)
        append(talks / "a.jsonl", lines(149, 150))
        assert has(memory, 149)
        assert memory.search("subject149").index.stale is False


def test_bytes_count_too(tmp_path, talks):
    with open_memory(tmp_path / "workspace", talks, sync__sessions__delta_bytes=3000) as memory:
        memory.index()
        append(talks / "a.jsonl", lines(100, 101))
        assert not has(memory, 100)
        append(talks / "a.jsonl", lines(101, 103, words=400))
        assert has(memory, 100)


@pytest.mark.parametrize("option", ["delta_bytes", "delta_messages"])
def test_zero_is_at_once(option, tmp_path, talks):
    with open_memory(tmp_path / "workspace", talks, **{f"sync__sessions__{option}": 0}) as memory:
        memory.index()
        append(talks / "a.jsonl", lines(100, 101))
        assert has(memory, 100)


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda memory: memory.index(), id="index"),
        pytest.param(lambda memory: memory.index(source="sessions"), id="index the source"),
        pytest.param(lambda memory: memory.index(paths=["sessions/@talks/a.jsonl"]), id="index the path"),
        pytest.param(lambda memory: (memory.begin_session(), memory.wait_until_synced(WAIT_S)), id="session start"),
    ],
)
def test_who_asks_gets_it_at_once(ask, tmp_path, talks):
    with open_memory(tmp_path / "workspace", talks) as memory:
        memory.index()
        append(talks / "a.jsonl", lines(100, 101))
        ask(memory)
        assert has(memory, 100, sync=False)


def test_new_and_shortened_conversations_do_not_wait(tmp_path, talks):
    with open_memory(tmp_path / "workspace", talks) as memory:
        memory.index()
        (talks / "b.jsonl").write_bytes(lines(200, 201))
        assert has(memory, 200)
        (talks / "a.jsonl").write_bytes(lines(300, 301))
        assert has(memory, 300)
        assert not has(memory, 7)


# --- by event ------------------------------------------------------------------------------------


def settle(memory: Memory) -> None:
    """Wait until the follower has nothing more to do."""
    thread = next((each for each in threading.enumerate() if each.name == "notewell-follower"), None)
    if thread is not None:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def test_an_announced_conversation_is_indexed_without_a_search(tmp_path, talks):
    with open_memory(tmp_path / "workspace", talks, sync__sessions__delta_messages=2, **AT_ONCE) as memory:
        memory.index()
        append(talks / "a.jsonl", lines(100, 101))
        assert memory.on_transcript_update(talks / "a.jsonl")
        settle(memory)
        assert not has(memory, 100, sync=False)
        append(talks / "a.jsonl", lines(101, 102))
        assert memory.on_transcript_update("sessions/@talks/a.jsonl")
        settle(memory)
        assert has(memory, 100, sync=False)
        (talks / "new.jsonl").write_bytes(lines(200, 201))
        memory.on_transcript_update(str(talks / "new.jsonl"))
        settle(memory)
        assert has(memory, 200, sync=False)
        (talks / "new.jsonl").unlink()
        memory.on_transcript_update(talks / "new.jsonl")
        settle(memory)
        assert memory.status().files == 1


def test_closing_does_not_wait_for_quiet(tmp_path, talks):
    memory = open_memory(tmp_path / "workspace", talks, **NEVER_QUIET)
    memory.on_transcript_update(talks / "a.jsonl")
    memory.close()
    assert not [each for each in threading.enumerate() if each.name == "notewell-follower"]
    memory.on_transcript_update(talks / "a.jsonl")
    memory.close()
    assert not [each for each in threading.enumerate() if each.name == "notewell-follower"]


def test_strangers_are_refused_and_without_conversations_nothing_is_done(tmp_path, talks):
    with open_memory(tmp_path / "workspace", talks) as memory, pytest.raises(PathRefusedError):
        memory.on_transcript_update(tmp_path / "elsewhere.jsonl")
    with Memory.open(tmp_path / "workspace", provider="none") as memory:
        assert memory.on_transcript_update(talks / "a.jsonl") is False


def test_what_keeps_it_from_indexing_is_told_by_the_next_search(tmp_path, talks):
    with open_memory(tmp_path / "workspace", talks, **AT_ONCE) as memory:
        memory.index()
        (talks / "b.jsonl").write_bytes(lines(200, 201))
        current = memory._components.folder.path / "CURRENT"
        named = current.read_text(encoding="utf-8")
        current.unlink()
        current.mkdir()  # whatever is wrong with the state folder
        memory.on_transcript_update(talks / "b.jsonl")
        settle(memory)
        current.rmdir()
        current.write_text(named, encoding="utf-8")
        assert any(
            "a conversation could not be indexed" in note for note in memory.search("subject1", sync=False).notes
        )


def test_paths_are_gathered_until_they_are_quiet():
    seen, done = [], threading.Event()

    def index(paths):
        seen.append(sorted(paths))
        done.set()

    follower = Follower(index, 0.05)
    for path in ("b", "a", "b"):
        follower.announce(path)
    assert done.wait(WAIT_S)
    follower.stop()
    assert seen == [["a", "b"]]


@pytest.mark.slow
def test_a_conversation_that_never_pauses_is_indexed_all_the_same():
    done = threading.Event()
    follower = Follower(lambda paths: done.set(), 0.2)
    for _ in range(MOST_DELAYS * 100):
        follower.announce("a")
        if done.wait(0.02):
            break
    assert done.is_set()
    follower.stop()


def test_a_failure_is_kept_until_it_goes_well():
    outcomes = [StoreError("no room", hint="make some"), None]
    follower = Follower(lambda paths: (_ for _ in ()).throw(outcome) if (outcome := outcomes.pop(0)) else None, 0)
    for trouble in ("a conversation could not be indexed: no room", ""):
        follower.announce("a")
        thread = next((each for each in threading.enumerate() if each.name == "notewell-follower"), None)
        if thread:
            thread.join(WAIT_S)
        assert follower.problem == trouble
    follower.stop()
