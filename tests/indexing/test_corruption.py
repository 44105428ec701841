"""A corrupt index is replaced by `index --force`, from the notes alone."""

from __future__ import annotations

import random
import shutil

import apsw
import pytest

from notewell import Memory

from .contents import contents_of, faults_of, fresh_contents

pytestmark = pytest.mark.slow


def flipped(raw: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(raw)
    for _ in range(chance.randint(1, 50)):
        damaged[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(damaged)


def overwritten(raw: bytes, chance: random.Random, block: bytes) -> bytes:
    start = chance.randrange(len(raw))
    return (raw[:start] + block + raw[start + len(block) :])[: len(raw)]


DAMAGES = {
    "the header": lambda raw, chance: chance.randbytes(100) + raw[100:],
    "cut short": lambda raw, chance: raw[: chance.randrange(len(raw))],
    "some bytes": flipped,
    "a block": lambda raw, chance: overwritten(raw, chance, chance.randbytes(chance.randrange(1, 8_192))),
    "a page of zeros": lambda raw, chance: overwritten(raw, chance, bytes(4_096)),
    "something behind": lambda raw, chance: raw + chance.randbytes(5_000),
    "another file": lambda raw, chance: chance.randbytes(len(raw)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_force_replaces_a_damaged_index(workspace, tmp_path, damage):
    expected = fresh_contents(workspace, tmp_path / "fresh")
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        path = memory._components.folder.current()
    state = workspace / ".notewell"
    shutil.copytree(state, tmp_path / "healthy")
    raw = path.read_bytes()
    for seed in range(10):
        shutil.rmtree(state)
        shutil.copytree(tmp_path / "healthy", state)
        path.write_bytes(DAMAGES[damage](raw, random.Random(f"{damage} {seed}")))
        with Memory.open(workspace, provider="hashing") as memory:
            memory.index(force=True)
            assert faults_of(memory) == []
            assert contents_of(memory) == expected


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_search_and_an_index_run_replace_a_corrupt_index(workspace, tmp_path, damage):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        path = memory._components.folder.current()
    state = workspace / ".notewell"
    shutil.copytree(state, tmp_path / "healthy")
    raw = path.read_bytes()
    for seed in range(12):
        shutil.rmtree(state)
        shutil.copytree(tmp_path / "healthy", state)
        path.write_bytes(DAMAGES[damage](raw, random.Random(f"{damage} {seed}")))
        with Memory.open(workspace, provider="hashing") as memory:
            memory.search("guest network name")
            memory.doctor()
            memory.index()
            assert memory.search("guest network name").hits[0].path == "memory/network.md"


NEGATIVE = b"\xff" * 9  # -1, as SQLite writes large numbers


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        pytest.param(f"UPDATE terms_data SET block = x'07{2 * NEGATIVE.hex()}' WHERE id = 1", "the length of a text"),
        pytest.param("UPDATE chunks SET turn = -98", "the place of a chunk"),
        pytest.param("UPDATE chunks SET turn = 'first'", "the place of a chunk"),
        pytest.param("UPDATE chunks SET parts = 0", "the place of a chunk"),
        pytest.param("UPDATE chunks SET parts = 1.5", "the place of a chunk"),
        pytest.param("UPDATE chunks SET document_id = 'many'", "the place of a chunk"),
        pytest.param("UPDATE chunks SET first_line = 'one'", "the record of a chunk"),
        pytest.param("UPDATE chunk_texts SET text = x'00ff'", "the record of a chunk"),
        pytest.param("UPDATE documents SET path = CAST(path AS BLOB)", "the record of a document"),
        pytest.param("UPDATE documents SET mtime_ns = 'noon'", "the record of a document"),
        pytest.param(
            "UPDATE meta SET value = 'seglents' WHERE key = 'vector_driver'", "the record of its vector driver"
        ),
    ],
)
def test_values_that_cannot_have_been_stored_are_damage(workspace, damage, told):
    """SQLite gives out what it finds in a damaged page, and FTS5 believes the average length that it has stored."""
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        path = memory._components.folder.current()
    database = apsw.Connection(str(path))
    database.execute(damage)
    database.close()
    with Memory.open(workspace, provider="hashing") as memory:
        answer = memory.search("guest network name")
        assert answer.hits[0].path == "memory/network.md"
        assert any(f"{told} in it is corrupt" in note for note in answer.notes)
        assert faults_of(memory) == []


def test_a_table_that_is_declared_otherwise_is_damage(workspace):
    """One flipped bit in the text of the schema: the key of the vectors becomes an ordinary column, and is NULL."""
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        path = memory._components.folder.current()
    raw = path.read_bytes()
    declared = b"CREATE TABLE vectors (chunk_id INTEGER PRIMARY KEY"
    assert raw.count(declared) == 1
    path.write_bytes(raw.replace(declared, declared.replace(b"PRIMARY KEY", b"PRIMASY KEY")))
    with Memory.open(workspace, provider="hashing") as memory:
        assert any("the declaration of vectors has changed" in finding for finding in memory.verify().findings)
        answer = memory.search("guest network name")
        assert answer.hits[0].path == "memory/network.md"
        assert faults_of(memory) == []
