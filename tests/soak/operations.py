"""Random operations on a workspace: the index kept up to date equals a fresh one."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from notewell import Memory
from tests.end_to_end.test_properties import NAMES, TEXTS, edit
from tests.indexing.contents import contents_of, faults_of, fresh_contents

COMPARED_EVERY = 50


def operation(chance: random.Random) -> tuple[str, str, str]:
    what = chance.choice(["write", "write", "append", "prepend", "rename", "copy", "delete", "touch", "index"])
    name = chance.choice(NAMES)
    argument = {
        "write": chance.choice(TEXTS),
        "append": chance.choice(["\nOne more line.\n", "x"]),
        "prepend": chance.choice(["# Top\n\n", "New first line.\n\n"]),
        "rename": chance.choice(NAMES),
        "copy": chance.choice(NAMES),
        "touch": chance.choice(["100", "2000000000"]),
        "index": chance.choice(["", "budget", "force"]),
    }
    return what, name, argument.get(what, "")


def run(folder: Path, *, count: int, seed: int) -> bool:
    """Do so many operations, comparing now and then."""
    chance = random.Random(seed)
    notes = folder / "notes"
    notes.mkdir()
    with Memory.open(notes, provider="hashing") as memory:
        for number in range(1, count + 1):
            edit(notes, memory, *operation(chance))
            if number % COMPARED_EVERY == 0 or number == count:
                memory.index()
                assert contents_of(memory) == fresh_contents(notes, folder / "fresh"), f"after {number} operations"
                assert faults_of(memory) == []
                assert memory.verify().equal
                shutil.rmtree(folder / "fresh")
    print(f"{count} operations: incremental equals fresh, compared every {COMPARED_EVERY}")
    return True
