"""One copy of a local model per process, however many memories use it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from notewell import Memory
from notewell.embedding.hashing import HashingEmbedder
from notewell.embedding.local import models
from notewell.embedding.local.models import SharedEmbedder

ROOT = Path(__file__).parents[3]


class CountedModel(HashingEmbedder):
    """Counts how often a model is loaded and released, as an embedder does that loads it for the first text."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self.log = log
        self.is_loaded = False

    def embed_query(self, text):
        if not self.is_loaded:
            self.is_loaded = True
            self.log.append("loaded")
        return super().embed_query(text)

    def close(self) -> None:
        if self.is_loaded:
            self.is_loaded = False
            self.log.append("released")


@pytest.fixture
def log():
    return []


@pytest.fixture
def open_model(log):
    return lambda: SharedEmbedder(CountedModel(log))


def test_embedders_of_one_identity_use_one_copy_until_the_last_is_closed(open_model, log):
    embedders = [open_model() for _ in range(40)]
    vectors = [embedder.embed_query("a harbour") for embedder in embedders]
    assert log == ["loaded"]
    assert all(np.array_equal(vector, vectors[0]) for vector in vectors)
    for embedder in embedders[:-1]:
        embedder.close()
        embedder.close()  # twice counts once
    assert log == ["loaded"]
    embedders[-1].embed_query("still there")
    embedders[-1].close()
    assert log == ["loaded", "released"]


def test_a_closed_embedder_loads_again(open_model, log):
    embedder = open_model()
    for _ in range(2):
        embedder.embed_query("a")
        embedder.close()
    assert log == ["loaded", "released"] * 2


def test_an_embedder_that_is_dropped_without_closing_releases_its_copy(open_model, log):
    embedder = open_model()
    embedder.embed_query("a")
    del embedder
    gc.collect()
    assert log == ["loaded", "released"]


def test_an_embedder_that_never_embeds_keeps_no_copy(open_model, log):
    embedder = open_model()
    assert embedder.identity == CountedModel([]).identity
    assert not models._copies
    embedder.close()
    assert log == []


def test_another_identity_gets_another_copy(log):
    one, other = SharedEmbedder(HashingEmbedder(64)), SharedEmbedder(HashingEmbedder(128))
    assert len(one.embed_query("a")) == 64
    assert len(other.embed_query("a")) == 128
    one.close()
    other.close()


def test_closing_waits_for_no_call_and_ends_none():
    started, may_end = threading.Event(), threading.Event()
    log: list[str] = []

    class Slow(CountedModel):
        def embed_query(self, text):
            vector = super().embed_query(text)
            started.set()
            may_end.wait(10)
            log.append("embedded" if self.is_loaded else "cut off")
            return vector

    embedder = SharedEmbedder(Slow(log))
    thread = threading.Thread(target=embedder.embed_query, args=["a"])
    thread.start()
    assert started.wait(10)
    embedder.close()
    assert log == ["loaded"]
    may_end.set()
    thread.join()
    assert log == ["loaded", "embedded", "released"]


def test_many_threads_load_one_copy(open_model, log):
    embedders = [open_model() for _ in range(16)]
    threads = [threading.Thread(target=lambda each=each: each.knows("a")) for each in embedders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(models._copies) == 1
    for embedder in embedders:
        embedder.close()
    assert not models._copies


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_shares_nothing_with_its_parent(open_model):
    embedder = open_model()
    embedder.embed_query("a")
    with models._lock:  # as another thread of the parent may hold it
        pid = os.fork()
        if pid == 0:
            fresh = open_model()
            fresh.embed_query("a")
            os._exit(0 if len(models._copies) == 1 and fresh._copy is not embedder._copy else 1)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    embedder.close()


@pytest.mark.slow
def test_memories_share_the_packaged_model(tmp_path):
    pytest.importorskip("onnxruntime")
    memories = []
    for name in ("a", "b", "c"):
        (tmp_path / name / "memory").mkdir(parents=True)
        (tmp_path / name / "memory/x.md").write_text("The ferry leaves at four.", encoding="utf-8")
        memories.append(Memory.open(tmp_path / name, provider="local"))
        memories[-1].index()
    assert len(models._copies) == 1
    memories.pop(0).close()
    assert memories[0].search("when does the boat go", mode="semantic").hits
    for memory in memories:
        memory.close()
    assert not models._copies


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_closing_gives_back_memory_files_and_threads():
    """The short form of `python -m tests.soak closing`."""
    pytest.importorskip("onnxruntime")
    command = [sys.executable, "-m", "tests.soak", "closing", "--count", "8"]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
