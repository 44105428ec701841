"""Databases with flipped bits, cut short, empty, or with the log of another day: every one is put right."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

from notewell import Memory
from tests.end_to_end.faults.stages import fingerprint
from tests.end_to_end.processes.conftest import write_note
from tests.indexing.contents import contents_of, faults_of, fresh_contents
from tests.indexing.test_corruption import DAMAGES

TOLD_EVERY = 100


def damaged(raw: bytes, kind: str, chance: random.Random) -> bytes:
    if kind == "bits":
        changed = bytearray(raw)
        for _ in range(chance.choice([1, 1, 5, 50, 500])):
            changed[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        return bytes(changed)
    return b"" if kind == "empty" else DAMAGES[kind](raw, chance)


def run(folder: Path, *, count: int, seed: int) -> bool:
    """Damage so many copies, one after the other."""
    notes = folder / "notes"
    (notes / "memory").mkdir(parents=True)
    for number in range(8):
        write_note(notes / "memory", number)
    with Memory.open(notes, provider="hashing") as memory:
        memory.index()
        current = memory._components.folder.current()
        assert current is not None
        earlier = current.read_bytes()
        write_note(notes / "memory", 8)
        memory.index()
        log = current.with_name(current.name + "-wal").read_bytes()
    expected, sources = fresh_contents(notes, folder / "fresh"), fingerprint(notes)
    shutil.copytree(notes / ".notewell", folder / "healthy")
    kinds = [*DAMAGES, "bits", "bits", "bits", "empty", "stale log", "log of an earlier day"]
    how: Counter[str] = Counter()
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        kind = chance.choice(kinds)
        shutil.rmtree(notes / ".notewell")
        shutil.copytree(folder / "healthy", notes / ".notewell")
        if kind == "stale log":
            current.with_name(current.name + "-wal").write_bytes(damaged(log, "bits", chance))
        elif kind == "log of an earlier day":
            current.write_bytes(earlier)
            current.with_name(current.name + "-wal").write_bytes(log)
        else:
            current.write_bytes(damaged(current.read_bytes(), kind, chance))
        try:
            with Memory.open(notes, provider="hashing") as memory:
                memory.search("subject5x2")
                memory.index()
                noticed = bool(list(memory._components.folder.path.glob("*corrupt*")))
                checks = memory.doctor(fix=True)
                assert all(check.ok for check in checks), checks
                assert contents_of(memory) == expected
                assert faults_of(memory) == []
                repaired = any(check.name == "repaired" for check in checks)
            how["by itself" if noticed else "by doctor --fix" if repaired else "no harm done"] += 1
        except BaseException:
            print(f"database {number}: {kind}", flush=True)
            raise
        if (number + 1) % TOLD_EVERY == 0:
            print(f"{number + 1}: {dict(how)}", flush=True)
    assert fingerprint(notes) == sources
    print(f"{count} damaged databases, every one right again: {dict(how)}")
    return True
