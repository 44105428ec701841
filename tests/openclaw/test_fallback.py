"""The fallback between two managers: who answers, when the first is tried again, and that no search is lost."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from notewell import Memory, MemoryDisabledError, NoteNotFoundError, QueryError
from notewell.openclaw import FallbackMemoryManager, MemoryIndexManager


class Unsteady:
    """A manager over a real one that fails while `broken` says so, like an external program."""

    backend = "qmd"

    def __init__(self, inner: MemoryIndexManager) -> None:
        self.inner = inner
        self.broken: str | None = None
        self.calls: list[str] = []
        self.lock = threading.Lock()
        self.chance, self.random = 0.0, random.Random(7)

    def _run(self, name, *args, **options):
        with self.lock:
            self.calls.append(name)
            unlucky = self.random.random() < self.chance
        if self.broken or unlucky:
            raise TimeoutError(self.broken or "qmd timed out after 4000 ms")
        return getattr(self.inner, name)(*args, **options)

    def search(self, query, **options):
        return self._run("search", query, **options)

    def read_file(self, rel_path, **options):
        return self._run("read_file", rel_path, **options)

    def status(self):
        return self._run("status") | {"backend": self.backend}

    def sync(self, **options):
        return self._run("sync", **options)

    def probe_embedding_availability(self):
        return self._run("probe_embedding_availability")

    def probe_vector_availability(self):
        return self._run("probe_vector_availability")

    def close(self):
        self._run("close")


@pytest.fixture
def builtin(workspace):
    manager = MemoryIndexManager(Memory.open(workspace, provider="none"))
    manager.sync()
    yield manager
    manager.close()


@pytest.fixture
def primary(builtin):
    return Unsteady(builtin)


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1000.0

    monkeypatch.setattr("notewell.openclaw.managers.time.monotonic", lambda: Clock.now)
    return Clock


def test_the_primary_answers_while_it_can(primary, builtin):
    both = FallbackMemoryManager(primary, builtin)
    assert both.search("printer")[0]["path"] == "memory/network.md"
    assert both.backend == both.status()["backend"] == "qmd"
    assert "fallback" not in both.status()
    assert primary.calls == ["search", "status", "status"]


def test_the_fallback_answers_the_call_that_failed_and_the_next(primary, builtin):
    both = FallbackMemoryManager(primary, builtin)
    primary.broken = "qmd: command not found"
    assert both.search("printer")[0]["path"] == "memory/network.md"
    assert both.search("printer", max_results=1)[0]["path"] == "memory/network.md"
    assert primary.calls == ["search"]
    status = both.status()
    assert (both.backend, status["backend"]) == ("builtin", "builtin")
    assert status["fallback"] == {"from": "qmd", "reason": "qmd: command not found"}
    assert status["files"] == 7


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(lambda m: m.search("printer")[0]["source"], "memory", id="search"),
        pytest.param(lambda m: m.read_file("MEMORY.md", lines=1)["text"], "# Memory", id="read_file"),
        pytest.param(lambda m: m.sync(reason="test").complete, True, id="sync"),
        pytest.param(lambda m: m.probe_embedding_availability()["ok"], False, id="probe_embedding"),
        pytest.param(lambda m: m.probe_vector_availability(), True, id="probe_vector"),
        pytest.param(lambda m: m.status()["fallback"]["from"], "qmd", id="status"),
    ],
)
def test_every_call_falls_back(primary, builtin, call, expected):
    primary.broken = "gone"
    assert call(FallbackMemoryManager(primary, builtin)) == expected


def test_the_primary_is_tried_again_after_a_pause_that_grows(primary, builtin, clock):
    both = FallbackMemoryManager(primary, builtin, pause_s=10, longest_pause_s=25)
    primary.broken = "gone"
    for pause in (10, 20, 25, 25):
        tried = len(primary.calls)
        both.search("printer")  # fails, the pause begins
        assert len(primary.calls) == tried + 1
        clock.now += pause - 1
        both.search("printer")
        assert len(primary.calls) == tried + 1
        clock.now += 1
    primary.broken = None
    both.search("printer")
    assert both.backend == "qmd"
    assert "fallback" not in both.status()
    primary.broken = "gone again"
    both.search("printer")
    clock.now += 10  # after a success the pause is short again
    primary.broken = None
    both.search("printer")
    assert both.backend == "qmd"


def test_calls_that_fail_side_by_side_are_one_failure(primary, builtin, clock):
    both = FallbackMemoryManager(primary, builtin, pause_s=10)
    together = threading.Barrier(4)

    class Crowded(Unsteady):
        def search(self, query, **options):
            if self.broken:
                together.wait(30)
            return super().search(query, **options)

    both.primary = crowded = Crowded(builtin)
    crowded.broken = "gone"
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: both.search("printer"), range(4)))
    crowded.broken = None
    clock.now += 10
    both.search("printer")
    assert both.backend == "qmd"


def test_a_call_that_both_refuse_is_the_callers_mistake(primary, builtin):
    both = FallbackMemoryManager(primary, builtin)
    with pytest.raises(NoteNotFoundError):
        both.read_file("memory/no.md")
    with pytest.raises(QueryError):
        both.search("printer", max_results=0)
    assert both.backend == "qmd"
    assert "fallback" not in both.status()


def test_when_both_fail_the_error_of_both_is_told(primary, workspace):
    gone = MemoryIndexManager(Memory.open(workspace, enabled=False))
    primary.broken = "qmd crashed"
    with pytest.raises(MemoryDisabledError) as raised:
        FallbackMemoryManager(primary, gone).search("printer")
    assert str(raised.value.__context__) == "qmd crashed"


def test_closing_closes_both_even_when_one_fails(primary, builtin):
    primary.broken = "gone"
    closed = []
    other = MemoryIndexManager(builtin.memory, on_close=lambda: closed.append(True))
    with pytest.raises(TimeoutError):
        FallbackMemoryManager(primary, other).close()
    assert closed == [True]


@pytest.mark.slow
def test_no_search_is_lost_in_a_thousand_with_a_primary_that_fails_at_random(primary, builtin):
    primary.chance = 0.3
    both = FallbackMemoryManager(primary, builtin, pause_s=0.001, longest_pause_s=0.004)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: both.search("printer")[0]["path"], range(1000)))
    assert answers == ["memory/network.md"] * 1000
    assert 50 < primary.calls.count("search") < 1000  # it failed, rested, and was tried again
