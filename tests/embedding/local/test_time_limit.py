"""A local model that takes too long: the caller stops waiting, and the next call waits for the end of the last one."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from notewell import Memory
from notewell.embedding.local import models
from notewell.embedding.local.granite import DIMENSIONS, GraniteEmbedder
from notewell.embedding.local.models import SharedEmbedder, TimeLimit
from notewell.errors import EmbedderError


def test_a_caller_stops_waiting_and_the_next_call_waits_for_the_end():
    limit, go_on, running = TimeLimit(), threading.Event(), []

    def slow() -> int:
        running.append("slow begins")
        go_on.wait(10)
        running.append("slow ends")
        return 1

    with pytest.raises(EmbedderError, match=r"did not finish within 0\.1 seconds"):
        limit.run(slow, 0.1)
    with pytest.raises(EmbedderError, match="did not finish"):
        limit.run(lambda: running.append("too early"), 0.1)
    threading.Timer(0.1, go_on.set).start()
    assert limit.run(lambda: running.append("next"), 5.0) is None
    assert running == ["slow begins", "slow ends", "next"]


def test_results_and_errors_come_back_as_they_are():
    limit = TimeLimit()
    assert limit.run(lambda: 7, 1.0) == 7
    with pytest.raises(ZeroDivisionError):
        limit.run(lambda: 1 // 0, 1.0)


class StuckModel:
    """Stands in for the weights, which take milliseconds: a model that hangs cannot be made to order."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def vectors(self, texts):
        self.go_on.wait(10)
        return np.ones((len(texts), DIMENSIONS), np.float32)


def test_a_search_and_a_run_say_that_the_model_is_too_slow(workspace, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "QUERY_LIMIT_S", 0.1)
    monkeypatch.setattr(models, "BATCH_LIMIT_S", 0.2)
    stuck = StuckModel()
    embedder = GraniteEmbedder(tmp_path / "pack", sha256="0" * 64)  # no other test has a copy of this one
    embedder._model = stuck
    with Memory.open(workspace, embedder=SharedEmbedder(embedder)) as memory:
        begun = time.monotonic()
        report = memory.index()
        assert time.monotonic() - begun < 5
        assert not report.complete
        assert "did not finish within 0.2 seconds" in report.problems[0].reason
        stuck.go_on.set()
        assert memory.index().complete
        stuck.go_on.clear()
        answer = memory.search("guest network", sync=False)
        assert answer.mode == "keyword"
        assert any("did not finish within 0.1 seconds" in note for note in answer.notes)
        stuck.go_on.set()
        assert memory.search("guest network", sync=False).mode == "hybrid"
