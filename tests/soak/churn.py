"""Rounds in which a tenth of the notes change, are added, renamed or removed: how large the index is afterwards."""

from __future__ import annotations

import random
from pathlib import Path

from notewell import Memory
from tests.indexing.contents import faults_of

NOTES = 300
MOST = 2.5  # times a fresh index, as the reliability goals ask


def text(chance: random.Random, name: str) -> str:
    words = [f"word{chance.randrange(5_000)}" for _ in range(chance.randint(80, 400))]
    parts = [" ".join(words[i : i + 40]) for i in range(0, len(words), 40)]
    return f"# {name}\n" + "".join(f"\n## Part {i}\n\n{part}.\n" for i, part in enumerate(parts))


def size_of(memory: Memory) -> int:
    memory.close()
    return size_on_disk(memory)


def size_on_disk(memory: Memory) -> int:
    path = memory._components.folder.current()
    assert path is not None
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def run(folder: Path, *, count: int, seed: int) -> bool:
    """Churn for so many rounds and compare."""
    chance = random.Random(seed)
    notes = folder / "notes"
    (notes / "memory").mkdir(parents=True)
    for i in range(NOTES):
        (notes / f"memory/n{i}.md").write_text(text(chance, f"n{i}"), encoding="utf-8")
    fresh_number = NOTES
    with Memory.open(notes, provider="hashing") as memory:
        memory.index()
        largest = 0
        for number in range(count):
            files = sorted((notes / "memory").iterdir())
            for path in chance.sample(files, NOTES // 10):
                what = chance.choice(["edit", "edit", "replace", "rename", "remove and add"])
                if what == "edit":
                    path.write_text(
                        path.read_text(encoding="utf-8") + f"\nAdded in round {number}.\n", encoding="utf-8"
                    )
                elif what == "replace":
                    path.write_text(text(chance, path.stem), encoding="utf-8")
                elif what == "rename":
                    path.rename(path.with_name(f"n{fresh_number}.md"))
                else:
                    path.unlink()
                    path.with_name(f"n{fresh_number}.md").write_text(text(chance, "new"), encoding="utf-8")
                fresh_number += 1
            if chance.random() < 0.5:
                memory.index()
            else:
                memory.search("word1 word2")
            largest = max(largest, size_on_disk(memory))
        memory.index()
        assert faults_of(memory) == []
        assert memory.verify().equal
        after = size_of(memory)
        left = [path.name for path in memory._components.folder.path.iterdir()]
    with Memory.open(notes, provider="hashing", store__path=str(folder / "fresh")) as memory:
        memory.index()
        fresh = size_of(memory)
    print(f"after {count} rounds {after:,} bytes, fresh {fresh:,}: {after / fresh:.2f} times ({MOST} allowed)")
    print(f"largest at any time, log included: {largest / fresh:.2f} times; files left: {sorted(left)}")
    return after <= MOST * fresh
