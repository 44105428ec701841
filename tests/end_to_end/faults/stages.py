"""Workspaces in the states where something can fail, and what must hold afterwards."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from notewell import Memory
from tests.indexing.contents import IndexedChunk, contents_of, faults_of, fresh_contents

NOTES = 6


def write_note(folder: Path, name: str, subject: str, sections: int = 3) -> None:
    """Write one note with a word of its own."""
    text = "".join(
        f"\n## Part {i}\n\nThe harbour keeps {subject} in shed {i}. " + f"Word {i} of {subject}. " * 8 + "\n"
        for i in range(sections)
    )
    (folder / "memory" / f"{name}.md").write_text(f"# {subject}\n{text}", encoding="utf-8")


def fingerprint(folder: Path) -> dict[str, str]:
    """Return every source file with the hash of its bytes."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.md"))
    }


class Stage:
    """An indexed workspace whose notes have changed since: edited, added, renamed, removed, touched."""

    def __init__(self, base: Path) -> None:
        self.template = base / "template"
        (self.template / "memory").mkdir(parents=True)
        for number in range(NOTES):
            write_note(self.template, f"note{number}", f"subject{number}")
        with Memory.open(self.template, provider="hashing") as memory:
            memory.index()
        write_note(self.template, "note1", "changed1")
        write_note(self.template, "new", "subjectnew", sections=8)
        (self.template / "memory/note2.md").rename(self.template / "memory/moved.md")
        (self.template / "memory/note3.md").unlink()
        os.utime(self.template / "memory/note4.md", (1_000_000_000, 1_000_000_000))
        self.sources = fingerprint(self.template)
        self.expected: set[IndexedChunk] = fresh_contents(self.template, base / "fresh")

    def set_up(self, target: Path) -> Path:
        return shutil.copytree(self.template, target)

    def check_recovered(self, folder: Path, *, damaged: bool = False) -> None:
        """The files are as they were; the index answers, is in step, and the next run makes it complete and clean."""
        assert fingerprint(folder) == self.sources
        with Memory.open(folder, provider="hashing") as memory:
            if not damaged:
                assert faults_of(memory) == []
                assert memory.search("subject5", sync=False).hits[0].path == "memory/note5.md"
            report = memory.index()
            assert (report.complete, report.pending, report.problems) == (True, 0, ())
            assert contents_of(memory) == self.expected
            assert faults_of(memory) == []
            assert memory.search("subjectnew", sync=False).hits[0].path == "memory/new.md"
            left = {path.name for path in memory._components.folder.path.iterdir()}
            assert len([name for name in left if name.startswith("index-") and name.endswith(".sqlite")]) == 1, left
            assert not [name for name in left if name.endswith(".tmp")], left
            assert damaged or not [name for name in left if "corrupt" in name], left
        assert fingerprint(folder) == self.sources


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("stage"))
