"""kill -9 at hundreds of points of indexing and rebuilding: nothing is lost, doubled or out of step."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest

from notewell import Memory
from tests.indexing.contents import contents_of, faults_of, fresh_contents

from .conftest import write_note

pytestmark = pytest.mark.slow

POINTS = 20  # a scenario and way of killing: 5 x 2 x 20 = 200, as the reliability goals ask


def change_some(folder: Path) -> None:
    """Edit, add, rename and remove notes."""
    for number in range(0, 24, 2):
        write_note(folder / "memory", number, generation=1)
    for number in range(24, 30):
        write_note(folder / "memory", number)
    (folder / "memory/note1.md").rename(folder / "memory/moved.md")
    (folder / "memory/note3.md").unlink()


SCENARIOS = {  # name -> (indexed before, changed since, options of the run that is killed)
    "first index": (False, False, {}),
    "first index, no cache": (False, False, {"cache": False}),
    "changes": (True, True, {}),
    "rebuild": (True, False, {"force": True}),
    "rebuild with changes, no cache": (True, True, {"force": True, "cache": False}),
}


class Stage:
    """A workspace as it is before the run, to be set up again for each point."""

    def __init__(self, notes: Path, tmp_path: Path, *, indexed: bool, changed: bool) -> None:
        self.indexed = indexed
        if indexed:
            with Memory.open(notes, provider="hashing") as memory:
                memory.index()
        if changed:
            change_some(notes)
        self._template = notes
        self._tmp_path = tmp_path
        self.expected = fresh_contents(notes, tmp_path / "fresh")

    def set_up(self, number: int) -> Path:
        return shutil.copytree(self._template, self._tmp_path / f"point{number}")


def check_after_kill(folder: Path, stage: Stage) -> None:
    """The index that is there opens, is in step and answers; the next run makes it equal to a fresh one."""
    with Memory.open(folder, provider="hashing") as memory:
        assert faults_of(memory) == []
        if stage.indexed:
            assert memory.search("subject5x2", sync=False).hits[0].path == "memory/note5.md"
        report = memory.index()
        assert (report.pending, report.problems) == (0, ())
        assert contents_of(memory) == stage.expected
        assert faults_of(memory) == []
        assert memory.search("subject5x2", sync=False).hits[0].path == "memory/note5.md"
        leftover = {path.name for path in memory._components.folder.path.iterdir() if path.name.startswith("index-")}
        assert len([name for name in leftover if name.endswith(".sqlite")]) == 1
        assert not [name for name in leftover if "corrupt" in name]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("way", ["at a call", "at a moment"])
def test_kill_9(worker, notes, tmp_path, scenario, way):
    indexed, changed, options = SCENARIOS[scenario]
    stage = Stage(notes, tmp_path, indexed=indexed, changed=changed)
    started = time.monotonic()
    calls = worker.index(stage.set_up(0), profile=way == "at a call", **options)["calls"]
    seconds = time.monotonic() - started
    chance = random.Random(f"{scenario} {way}")
    killed = 0
    for number in range(1, POINTS + 1):
        folder = stage.set_up(number)
        if way == "at a call":
            point = {"profile": True, "kill_at_call": chance.randrange(1, calls)}
        else:
            point = {"kill_after_s": chance.random() * seconds}
        killed += worker.index(folder, **options, **point)["killed"]
        check_after_kill(folder, stage)
        shutil.rmtree(folder)
    assert killed == POINTS or way == "at a moment"  # on a busy machine a run may end before its moment comes


def test_killed_again_and_again_it_still_gets_there(worker, notes, tmp_path):
    """One workspace, killed in run after run while the notes go on changing: never empty, never out of step."""
    with Memory.open(notes, provider="hashing") as memory:
        memory.index()
    calls = worker.index(shutil.copytree(notes, tmp_path / "copy"), profile=True, force=True)["calls"]
    chance = random.Random(7)
    for round_ in range(20):
        write_note(notes / "memory", chance.randrange(24), generation=round_ + 1)
        worker.index(notes, profile=True, kill_at_call=chance.randrange(1, calls), force=round_ % 3 == 0)
        with Memory.open(notes, provider="hashing") as memory:
            assert faults_of(memory) == []
            assert memory.search("subject5x2", sync=False).hits
    with Memory.open(notes, provider="hashing") as memory:
        memory.index()
        assert contents_of(memory) == fresh_contents(notes, tmp_path / "fresh")
