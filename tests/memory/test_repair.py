"""`verify` sees every difference between index and files; `doctor --fix` repairs the index, never touches the files."""

from __future__ import annotations

import os
import random

import apsw
import pytest

from notewell import Memory
from notewell.indexing.verification import self_check
from tests.end_to_end.faults.stages import fingerprint
from tests.indexing.contents import contents_of, faults_of, fresh_contents
from tests.indexing.embedders import WatchedEmbedder


@pytest.fixture
def indexed(workspace):
    for note in workspace.rglob("*.md"):  # the stamp of a file just written is not trusted: it would be read once more
        os.utime(note, (1_790_000_000, 1_790_000_000))
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
    return workspace


def change(folder, *statements: str) -> None:
    """Change rows behind the store's back."""
    with Memory.open(folder, provider="hashing") as memory:
        path = memory._components.folder.current()
    database = apsw.Connection(str(path))
    for statement in statements:
        database.execute(statement)
    database.close()


OUT_OF_STEP = {  # what `PRAGMA integrity_check` calls ok
    "a text that the note does not hold": "UPDATE chunk_texts SET text = 'something else' WHERE chunk_id = 2",
    "a chunk without its text": "DELETE FROM chunk_texts WHERE chunk_id = 2",
    "a chunk without its words": "DELETE FROM terms WHERE rowid = 2",
    "words of a chunk that is gone": "INSERT INTO terms (rowid, text, context) VALUES (999, 'ghost', '')",
    "other words than the text has": "DELETE FROM terms WHERE rowid = 2; "
    "INSERT INTO terms (rowid, text, context) VALUES (2, 'ghost ghost', '')",
    "a vector that is missing": "DELETE FROM vectors WHERE chunk_id = 2",
    "the vector of another chunk": "UPDATE vectors SET embedding = (SELECT embedding FROM vectors WHERE chunk_id = 3)"
    " WHERE chunk_id = 2",
    "totals that are wrong": "UPDATE totals SET chunks = chunks + 1",
    "lines that are not those of the note": "UPDATE chunks SET first_line = first_line + 7 WHERE id = 2",
    "a document under another name": "UPDATE documents SET path = 'memory/ghost.md' WHERE path = 'MEMORY.md'",
    "another date": "UPDATE documents SET dated = 1 WHERE path = 'memory/2026-11-01.md'",
}


def test_an_index_that_was_just_made_is_equal(indexed):
    with Memory.open(indexed, provider="hashing") as memory:
        found = memory.verify()
    assert (found.equal, found.findings, found.files) == (True, (), 7)


@pytest.mark.parametrize("damage", OUT_OF_STEP)
def test_inconsistent_tables_are_found_and_repaired_with_vectors_from_the_cache(indexed, tmp_path, damage):
    sources = fingerprint(indexed)
    change(indexed, OUT_OF_STEP[damage])
    embedder = WatchedEmbedder()
    with Memory.open(indexed, embedder=embedder) as memory:
        found = memory.verify()
        assert not found.equal
        checks = memory.doctor(fix=True)
        assert all(check.ok for check in checks), checks
        assert checks[0].name == "repaired"
        assert memory.verify().equal
        assert embedder.embedded <= 1  # the word with which doctor tries the embedder
        assert contents_of(memory) == fresh_contents(indexed, tmp_path / "fresh")
    assert fingerprint(indexed) == sources


def test_looking_at_the_cache_counts_as_no_use_of_it(indexed):
    with Memory.open(indexed, provider="hashing") as memory:
        before = memory.cache.stats()
        assert memory.verify().equal
        assert memory.cache.stats() == before


def test_changes_that_are_not_indexed_yet_are_told_by_path(indexed):
    (indexed / "memory/network.md").write_text("# Network\n\nAll new.\n", encoding="utf-8")
    (indexed / "memory/projects/queue.md").unlink()
    (indexed / "memory/new.md").write_text("# New\n", encoding="utf-8")
    with Memory.open(indexed, provider="hashing") as memory:
        findings = memory.verify().findings
        assert {
            "memory/network.md has changed since it was indexed",
            "memory/projects/queue.md is indexed and gone",
            "memory/new.md is not indexed",
        } <= set(findings)
        memory.index()
        assert memory.verify().equal


def test_nothing_indexed_and_missing_vectors_are_not_equal(workspace):
    with Memory.open(workspace, provider="hashing") as memory:
        assert memory.verify().findings == ("nothing is indexed yet: run `notewell index`",)
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
        assert memory.verify().equal
    with Memory.open(workspace, provider="hashing") as memory:
        assert any("have no vector yet" in finding for finding in memory.verify().findings)


def test_a_healthy_index_is_left_alone(indexed):
    with Memory.open(indexed, provider="hashing") as memory:
        path = memory._components.folder.current()
        checks = memory.doctor(fix=True)
        assert [check.name for check in checks if check.name == "repaired"] == []
        assert memory._components.folder.current() == path


def test_a_rebuild_that_went_wrong_is_never_switched_to(indexed):
    """The check before the switch finds an index that does not hold what it should."""
    with Memory.open(indexed, provider="hashing") as memory:
        with memory._components.index.use() as store:
            assert self_check(store) == []
        path = memory._components.folder.current()
    database = apsw.Connection(str(path))
    database.execute("INSERT INTO terms (terms) VALUES ('delete-all')")
    for row in range(1, 40):
        database.execute(
            "INSERT INTO terms (rowid, text, context) SELECT id, 'x', 'x' FROM chunks WHERE id = ?", (row,)
        )
    database.close()
    with Memory.open(indexed, provider="hashing") as memory, memory._components.index.use() as store:
        assert any("is not found by its word" in finding for finding in self_check(store))


DAMAGED = 8  # of each kind; `python -m tests.soak damage` does a thousand


def truncated(raw, chance):
    return raw[: chance.randrange(len(raw))]


def flipped(raw, chance):
    damaged = bytearray(raw)
    for _ in range(chance.choice([1, 1, 10, 200])):
        damaged[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(flipped, id="bits"),
        pytest.param(truncated, id="cut short"),
        pytest.param(lambda raw, chance: b"", id="empty"),
    ],
)
def test_a_damaged_database_is_put_right(indexed, tmp_path, damage):
    sources, expected = fingerprint(indexed), fresh_contents(indexed, tmp_path / "fresh")
    for seed in range(DAMAGED):
        with Memory.open(indexed, provider="hashing") as memory:
            path = memory._components.folder.current()
        path.write_bytes(damage(path.read_bytes(), random.Random(seed)))
        with Memory.open(indexed, provider="hashing") as memory:
            memory.search("guest network name")
            memory.doctor(fix=True)
            assert faults_of(memory) == []
            assert contents_of(memory) == expected
            assert memory.verify().equal
    assert fingerprint(indexed) == sources


def test_a_log_of_another_time_is_put_right(indexed, tmp_path):
    """A restored backup may bring the database of one day and the log of another."""
    expected = fresh_contents(indexed, tmp_path / "fresh")
    with Memory.open(indexed, provider="hashing") as memory:
        path = memory._components.folder.current()
        log = path.with_name(path.name + "-wal")
        old = path.read_bytes()
        (indexed / "memory/new.md").write_text("# New\n\n" + "Much that is new. " * 500, encoding="utf-8")
        memory.index()
        stale = log.read_bytes()
    (indexed / "memory/new.md").unlink()
    path.write_bytes(old)
    log.write_bytes(stale)
    with Memory.open(indexed, provider="hashing") as memory:
        memory.search("guest network name")
        memory.doctor(fix=True)
        assert contents_of(memory) == expected
        assert memory.verify().equal


def test_only_the_newest_damaged_files_are_kept(indexed):
    for _ in range(6):
        with Memory.open(indexed, provider="hashing") as memory:
            memory._components.folder.current().write_bytes(b"nothing")
        with Memory.open(indexed, provider="hashing") as memory:
            memory.index()
            kept = [path for path in memory._components.folder.path.iterdir() if "corrupt" in path.name]
    assert len(kept) == 3
