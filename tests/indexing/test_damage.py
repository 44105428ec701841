"""An index damaged in any way is replaced by `index --force`, whatever else it does until then."""

from __future__ import annotations

import random
import shutil

import pytest

from recollect import Memory

from .contents import contents_of, faults_of, fresh_contents

PAGE = 4096


def overwritten(raw: bytes, at: int, content: bytes) -> bytes:
    return raw[:at] + content + raw[at + len(content) :]


DAMAGES = {
    "some bytes": lambda raw, chance: bytes(
        chance.randrange(256) if chance.random() < 20 / len(raw) else byte for byte in raw
    ),
    "a block": lambda raw, chance: overwritten(
        raw, chance.randrange(len(raw) - PAGE), chance.randbytes(chance.randint(1, PAGE))
    ),
    "a page of zeros": lambda raw, chance: overwritten(raw, chance.randrange(len(raw) // PAGE) * PAGE, bytes(PAGE)),
    "the header": lambda raw, chance: chance.randbytes(100) + raw[100:],
    "cut short": lambda raw, chance: raw[: chance.randrange(len(raw))],
    "something behind": lambda raw, chance: raw + chance.randbytes(5_000),
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
            # Vectors are taken over from the old index, and nothing tells that a bit of one was flipped.
            assert contents_of(memory, check_vectors=False) == expected
