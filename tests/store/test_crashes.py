"""Killed writers and failing disks: afterwards every document is whole, old or new, and nothing is out of step."""

from __future__ import annotations

import itertools
import multiprocessing
import random
import sys
import time

import apsw
import pytest

from notewell.errors import DiskFullError, StoreError
from notewell.store.sqlite import open_index
from notewell.store.sqlite.connection import through_file_layer
from notewell.testing.samples import IDENTITY, chunks_of, document, embed_pending, terms, vectors_of
from notewell.types import EVERYTHING

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("synced")]


def write_forever(path, first_round, ready):
    """Put, edit, embed, remove and tidy up, until killed."""
    store = open_index(path, create=True, read_only=False)
    store.set_embedder(IDENTITY, "bits")
    ready.set()
    for number in itertools.count(first_round):
        for name in "abc":
            chunks = chunks_of(f"{name} keeps this", *(f"{name} round{number} part{part}" for part in range(5)))
            store.put_document(document(f"{name}.md", size=number), chunks, vectors_of(chunks) if number % 2 else {})
        embed_pending(store)
        if number % 3 == 0:
            store.remove_documents("memory", ["b.md"])
        if number % 7 == 0:
            store.optimize()


def whole_documents(store) -> set[str]:
    """Check that each document shows the chunks of exactly one round; return the paths."""
    with store.reading() as snapshot:
        documents = snapshot.documents()
        matches = snapshot.keyword_matches(terms("a", "b", "c"), limit=1000, scope=EVERYTHING)
        chunks = snapshot.chunks([match.chunk_id for match in matches])
        assert len(chunks) == snapshot.counts().chunks
    for (_, path), stored in documents.items():
        texts = sorted(chunk.text for chunk in chunks.values() if chunk.path == path)
        name = path.removesuffix(".md")
        parts = [f"{name} round{stored.stamp.size} part{part}" for part in range(5)]
        assert texts == sorted([f"{name} keeps this", *parts])
    assert len(chunks) == 6 * len(documents)
    return {path for _, path in documents}


def test_killing_the_writer_at_any_point_leaves_whole_documents(tmp_path):
    path = tmp_path / "index.sqlite"
    chance = random.Random(3)
    quick = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if quick else "spawn")
    if quick:
        context.set_forkserver_preload([__name__])
    seen = set()
    for attempt in range(24):
        ready = context.Event()
        writer = context.Process(target=write_forever, args=(path, attempt * 1000, ready))
        writer.start()
        assert ready.wait(timeout=30)
        time.sleep(chance.uniform(0, 0.1))
        writer.kill()
        writer.join()
        store = open_index(path, create=False, read_only=False)
        assert store.verify() == []
        seen |= whole_documents(store)
        store.close()
    assert seen == {"a.md", "b.md", "c.md"}
    assert len(list(tmp_path.iterdir())) == 1


class FaultyDisk(apsw.VFS):
    """The real file system, except that the nth write fails, and every one after it, until it is mended."""

    def __init__(self, name: str) -> None:
        self.writes_left = sys.maxsize
        super().__init__(name, "")

    def xOpen(self, name, flags):
        return FaultyFile(self, name, flags)


class FaultyFile(apsw.VFSFile):
    def __init__(self, disk, name, flags) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data, offset):
        self._disk.writes_left -= 1
        if self._disk.writes_left < 0:
            raise apsw.FullError("no space left")
        super().xWrite(data, offset)


@pytest.fixture
def disk():
    faulty = FaultyDisk("faulty-disk")
    with through_file_layer("faulty-disk"):
        yield faulty
    faulty.unregister()


def test_a_disk_that_fills_up_at_any_write_costs_that_document_only(tmp_path, disk):
    """Fail the first write, then the second, ... until one change goes through whole."""
    store = open_index(tmp_path / "index.sqlite", create=True, read_only=False)
    store.set_embedder(IDENTITY, "bits")
    old = chunks_of("old one", "old two")
    store.put_document(document(size=1), old, vectors_of(old))
    new = chunks_of("new one", *(f"filler {number} " * 40 for number in range(6)))
    failures = 0
    for writes in range(500):
        disk.writes_left = writes
        try:
            store.put_document(document(size=2), new, vectors_of(new))
        except DiskFullError:
            failures += 1
        else:
            break
        finally:
            disk.writes_left = sys.maxsize
        assert store.verify() == []
        with store.reading() as snapshot:
            assert {chunk.text for chunk in snapshot.chunks(range(1, 1000)).values()} == {"old one", "old two"}
            assert snapshot.documents()["memory", "memory/a.md"].stamp.size == 1
    assert failures > 5
    with store.reading() as snapshot:
        assert len(snapshot.chunks(range(1, 1000))) == len(new)
    assert store.verify() == []
    store.close()


def test_a_disk_that_is_full_from_the_start_says_so(tmp_path, disk):
    disk.writes_left = 0
    with pytest.raises(DiskFullError):
        open_index(tmp_path / "index.sqlite", create=True, read_only=False)
    disk.writes_left = sys.maxsize
    store = open_index(tmp_path / "index.sqlite", create=True, read_only=False)
    assert store.verify() == []
    store.close()


def test_an_exception_inside_a_write_undoes_it(tmp_path):
    store = open_index(tmp_path / "index.sqlite", create=True, read_only=False)
    chunks = chunks_of("one")
    with pytest.raises(StoreError, match="embedder"):
        store.put_document(document(), chunks, vectors_of(chunks))  # no embedder was declared
    with store.reading() as snapshot:
        assert snapshot.documents() == {}
    store.put_document(document(), chunks_of("one"), {})
    assert store.verify() == []
    store.close()
