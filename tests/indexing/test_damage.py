"""A damaged index is replaced by `index --force`, and the notes are all that is needed for it."""

from __future__ import annotations

import random
import shutil

import pytest

from recollect import Memory

from .contents import contents_of, faults_of, fresh_contents


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
        path = memory.state.current()
    state = workspace / ".recollect"
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
def test_a_search_and_an_index_run_mend_what_is_damaged(workspace, tmp_path, damage):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        path = memory.state.current()
    state = workspace / ".recollect"
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
