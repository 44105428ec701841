"""Background sync: bounded for the caller, one run at a time, reported, ended cleanly."""

from __future__ import annotations

import os
import threading

import pytest

from notewell import EmbedderError, IndexReport, Memory
from notewell.indexing.background_sync import BackgroundSync

from .contents import contents_of, faults_of, fresh_contents
from .embedders import WatchedEmbedder

PATIENCE_S = 60  # for a busy machine; every wait below ends as soon as what it waits for happens


class Gate:
    """A run that begins when asked and ends when let go."""

    def __init__(self, outcome: IndexReport | Exception | None = None) -> None:
        self.began = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.outcome = outcome or IndexReport()
        self.asked: list[frozenset[str] | None] = []
        self.at_once = 0
        self.most_at_once = 0

    def work(self, deadline, files):
        self.asked.append(files)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.began.release()
        while not self.may_end.acquire(timeout=0.01):
            if deadline.passed:
                break
        self.at_once -= 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def gate():
    return Gate()


def test_requests_during_a_run_are_answered_by_one_more(gate):
    sync = BackgroundSync(gate.work)
    sync.request()
    assert gate.began.acquire(timeout=PATIENCE_S)
    for _ in range(10):
        sync.request()
    gate.may_end.release(2)
    assert sync.wait(PATIENCE_S)
    assert (sync.runs, gate.most_at_once) == (2, 1)


@pytest.mark.parametrize(
    ("requests", "second_run"),
    [
        pytest.param([{"a"}, {"b"}], {"a", "b"}, id="files add up"),
        pytest.param([{"a"}, None], None, id="everything holds the files"),
        pytest.param([None, {"a"}], None, id="also when it was asked for first"),
    ],
)
def test_what_is_asked_for_during_a_run_is_joined(gate, requests, second_run):
    sync = BackgroundSync(gate.work)
    sync.request(frozenset({"first"}))
    assert gate.began.acquire(timeout=PATIENCE_S)
    for files in requests:
        sync.request(None if files is None else frozenset(files))
    gate.may_end.release(2)
    assert sync.wait(PATIENCE_S)
    assert gate.asked == [{"first"}, second_run]


def test_after_a_failure_everything_is_looked_at():
    gate = Gate(EmbedderError("the provider hung up"))
    sync = BackgroundSync(gate.work)
    gate.may_end.release(2)
    sync.request(frozenset({"a"}))
    assert sync.wait(PATIENCE_S)
    sync.request(frozenset({"b"}))
    assert sync.wait(PATIENCE_S)
    assert gate.asked == [{"a"}, None]


def test_stopping_ends_the_current_run_and_a_request_starts_again(gate):
    sync = BackgroundSync(gate.work)
    sync.request()
    assert gate.began.acquire(timeout=PATIENCE_S)
    sync.stop()
    assert (sync.wait(0), sync.runs) == (True, 0)
    gate.may_end.release()
    sync.request()
    assert sync.wait(PATIENCE_S)
    assert sync.runs == 1


def test_one_who_asks_in_passing_does_not_begin_what_is_stopped_at_once(gate):
    sync = BackgroundSync(gate.work)
    sync.request(at_once=False)
    sync.stop()
    assert not gate.began.acquire(blocking=False)


def test_a_failure_is_kept_and_told_to_listeners_and_not_tried_again_in_passing():
    sync = BackgroundSync(Gate(EmbedderError("the provider hung up")).work)
    sync._work.__self__.may_end.release(5)
    heard = []
    unlisten = sync.listen(heard.append)
    sync.request()
    assert sync.wait(PATIENCE_S)
    assert str(sync.failure) == "the provider hung up"
    sync.request(at_once=False)
    assert sync.wait(PATIENCE_S)
    assert (sync.runs, [str(outcome) for outcome in heard]) == (1, ["the provider hung up"])
    unlisten()
    sync.request()
    assert sync.wait(PATIENCE_S)
    assert (sync.runs, len(heard)) == (2, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_a_background_of_its_own(gate):
    sync = BackgroundSync(gate.work)
    sync.request()
    assert gate.began.acquire(timeout=PATIENCE_S)
    child = os.fork()
    if child == 0:
        gate.may_end.release()
        sync.request()
        os._exit(0 if sync.wait(PATIENCE_S) and sync.runs == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    sync.stop()


# --- after a search -----------------------------------------------------------------------------


@pytest.fixture
def many(tmp_path):
    folder = tmp_path / "many"
    (folder / "memory").mkdir(parents=True)
    for i in range(60):
        (folder / f"memory/n{i:02}.md").write_text(f"# Note {i}\n\nThe harbour keeps subject{i}.\n", encoding="utf-8")
    return folder


def test_a_search_answers_within_its_budget_and_the_rest_is_indexed_in_the_background(many, tmp_path):
    with Memory.open(many, provider="hashing", sync__search_budget_ms=0) as memory:
        answer = memory.search("subject59")
        assert answer.index.stale
        assert memory.wait_until_synced(PATIENCE_S)
        answer = memory.search("subject59")
        assert (answer.hits[0].path, answer.index.stale, answer.index.pending) == ("memory/n59.md", False, 0)
        assert contents_of(memory) == fresh_contents(many, tmp_path / "fresh")


def test_a_search_never_waits_for_a_long_run(many):
    may_embed = threading.Event()
    embedder = WatchedEmbedder(lambda texts: may_embed.wait(PATIENCE_S))
    with Memory.open(many, embedder=embedder, sync__search_budget_ms=50) as memory:
        memory.begin_session()
        while not embedder.calls:
            assert not memory.wait_until_synced(0.01)
        (many / "memory/late.md").write_text("# Late\n\nWritten while it embeds.\n", encoding="utf-8")
        answer = memory.search("subject5", keyword_only=True)  # comes back although the run cannot end
        assert answer.hits[0].path == "memory/n05.md"
        assert answer.index.stale
        assert any("continues in the background" in note for note in answer.notes)
        may_embed.set()
        assert memory.wait_until_synced(PATIENCE_S)
        assert memory.search("written while it embeds").hits[0].path == "memory/late.md"


def test_an_index_by_other_rules_is_rebuilt_in_the_background_while_the_old_one_answers(many):
    with Memory.open(many, provider="hashing") as memory:
        memory.index()
    with Memory.open(many, provider="hashing", chunking__tokens=100, chunking__overlap=10) as memory:
        answer = memory.search("subject7")
        assert answer.hits[0].path == "memory/n07.md"
        assert answer.index.stale
        assert memory.wait_until_synced(PATIENCE_S)
        assert not memory.search("subject7").index.stale
        assert faults_of(memory) == []


def test_closing_stops_the_background_sync_and_the_next_one_finishes_it(many, tmp_path):
    closing = threading.Event()
    embedder = WatchedEmbedder(lambda texts: closing.set())
    with Memory.open(many, embedder=embedder) as memory:
        memory.begin_session()
        assert closing.wait(PATIENCE_S)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("notewell")]
    with Memory.open(many, provider="hashing") as memory:
        assert faults_of(memory) == []
        memory.index()
        assert contents_of(memory) == fresh_contents(many, tmp_path / "fresh")


def test_a_session_begins_with_fresh_notes_if_the_settings_say_so(many):
    with Memory.open(many, provider="hashing") as memory:
        memory.begin_session()
        assert memory.wait_until_synced(PATIENCE_S)
        assert memory.status().files == 60
    (many / "memory/new.md").write_text("# New\n", encoding="utf-8")
    with Memory.open(many, provider="hashing", sync__on_session_start=False) as memory:
        memory.begin_session()
        assert memory.wait_until_synced(PATIENCE_S)
        assert memory.status().files == 60


def test_the_next_search_reports_a_failure_in_the_background(many):
    with Memory.open(many, provider="hashing", sync__search_budget_ms=0) as memory:
        memory.search("subject1")
        memory.wait_until_synced(PATIENCE_S)
        lock = memory._components.folder.path / "write.lock"
        lock.unlink(missing_ok=True)
        lock.mkdir()
        (many / "memory/new.md").write_text("# New\n", encoding="utf-8")
        memory.begin_session()
        assert memory.wait_until_synced(PATIENCE_S)
        answer = memory.search("subject1")
        assert answer.hits
        assert any("indexing in the background failed" in note for note in answer.notes)
        lock.rmdir()
        memory.begin_session()
        assert memory.wait_until_synced(PATIENCE_S)
        assert memory.search("subject1").notes == ()
