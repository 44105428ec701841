"""Every named step of indexing and rebuilding fails, once and for good, in three ways; it must recover by itself."""

from __future__ import annotations

import ast
import errno
import shutil
from pathlib import Path

import pytest

import notewell
from notewell import DiskFullError, IndexReadOnlyError, Memory, NotewellError, StoreError
from notewell.files.faults import POINTS, STEPS, failing, planted, reach

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("synced")]

ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EACCES": errno.EACCES}
EXPECTED = {"ENOSPC": DiskFullError, "EACCES": IndexReadOnlyError, "EIO": StoreError}
WAYS = {"once": (1, 1), "once, the third time": (3, 1), "for good": (1, None)}  # on_call, times
OF_DAMAGE = {"aside.rename"}  # reached only when an index is damaged
OWN = {"state", "pointer", "aside", "superseded", "database", "index", "embed", "rebuild"}
OF_OTHERS = {point for point in POINTS if point.split(".")[0] not in OWN}  # tested with their own parts
FEW_CALLS = {  # reached less than three times in the run below
    "aside.rename",
    "embed.known",
    "embed.remember",
    "embed.store",
    "index.list",
    "index.remove",
    "index.tidy",
    "pointer.fsync",
    "pointer.fsync_folder",
    "pointer.open",
    "pointer.rename",
    "pointer.write",
    "rebuild.begin",
    "rebuild.finish",
    "rebuild.verify",
    "database.create",
    "state.lock",
    "state.make",
    "index.touch",
}
CASES = [
    pytest.param(point, way, error, id=f"{point}, {way}, {error}")
    for point in sorted(set(POINTS) - OF_DAMAGE - OF_OTHERS)
    for way in WAYS
    for error in ERRORS
    if not (way == "once, the third time" and point in FEW_CALLS)
]


def run_everything(memory: Memory) -> list[NotewellError]:
    """Index, rebuild and search, going on after each failure; anything but an error of ours ends the test."""
    met = []
    for step in (
        memory.index,
        lambda: memory.index(force=True),
        lambda: memory.search("subject5"),
        lambda: memory.search("subject5", sync=False),
    ):
        try:
            step()
        except NotewellError as error:
            met.append(error)
    return met


@pytest.mark.parametrize(("point", "way", "error"), CASES)
def test_a_failing_step_costs_the_work_in_flight_only(stage, tmp_path, point, way, error):
    folder = stage.set_up(tmp_path / "workspace")
    on_call, times = WAYS[way]
    with Memory.open(folder, provider="hashing") as memory:
        with failing(point, ERRORS[error], on_call=on_call, times=times) as failures:
            met = run_everything(memory)
            assert failures(), "the step was never reached"
        for each in met:
            assert each.message
            assert each.hint
            # A note that cannot be read is no fault of the disk that holds the index.
            assert isinstance(each, StoreError if point == "index.read" else EXPECTED[error]), repr(each)
        answer = memory.search("subject5", sync=False)  # the same object goes on once the disk is well again
        assert answer.hits[0].path == "memory/note5.md"
    stage.check_recovered(folder)


def test_the_list_of_points_reached_often_enough_is_right(stage, tmp_path):
    """`FEW_CALLS` must name what it says, or a third call that never comes would test nothing."""
    folder = stage.set_up(tmp_path / "workspace")
    counts = dict.fromkeys(POINTS, 0)

    def count(point: str) -> None:
        counts[point] += 1

    with planted(count), Memory.open(folder, provider="hashing") as memory:
        assert run_everything(memory) == []
    reached = {point for point, calls in counts.items() if calls}
    assert reached == set(POINTS) - OF_DAMAGE - OF_OTHERS
    assert {point for point, calls in counts.items() if calls >= 3} >= reached - FEW_CALLS


@pytest.mark.parametrize("way", ["once", "for good"])
@pytest.mark.parametrize("error", ERRORS)
def test_a_damaged_index_that_cannot_be_set_aside(stage, tmp_path, way, error):
    folder = stage.set_up(tmp_path / "workspace")
    with Memory.open(folder, provider="hashing") as memory:
        path = memory._components.folder.current()
    path.write_bytes(b"not a database " * 500)
    with Memory.open(folder, provider="hashing") as memory:
        with failing("aside.rename", ERRORS[error], times=WAYS[way][1]) as failures:
            with pytest.raises(StoreError):
                memory.index()
            assert failures()
        memory.index()
    stage.check_recovered(folder, damaged=True)


def test_an_unreadable_note_is_reported_and_its_last_state_stays_found(stage, tmp_path):
    folder = stage.set_up(tmp_path / "workspace")
    with Memory.open(folder, provider="hashing") as memory:
        with failing("index.read", errno.EIO):
            report = memory.index()
            assert {problem.reason for problem in report.problems} == {"Input/output error"}
            assert memory.search("subject1", sync=False).hits[0].path == "memory/note1.md"
        assert memory.index().problems == ()
    stage.check_recovered(folder)


def test_a_search_answers_from_the_old_index_and_says_what_is_wrong(stage, tmp_path):
    folder = stage.set_up(tmp_path / "workspace")
    with Memory.open(folder, provider="hashing") as memory, failing("database.commit", errno.EIO):
        answer = memory.search("subject5")
        assert answer.hits[0].path == "memory/note5.md"
        assert answer.index.stale
        assert any("new notes are not indexed" in note for note in answer.notes)


# --- the seam itself ----------------------------------------------------------------------------


def test_every_point_of_indexing_is_reached_somewhere_and_no_other():
    source = Path(notewell.__file__).parent
    named, by_their_caller = set(), set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "reach":
                match node.args:
                    case [ast.Constant(value=str(point))]:
                        named.add(point)
                    case _:
                        by_their_caller.add(path.relative_to(source).as_posix())
            elif isinstance(node, ast.keyword) and node.arg == "faults" and isinstance(node.value, ast.Constant):
                named |= {f"{node.value.value}.{step}" for step in STEPS}
    assert by_their_caller == {"files/atomic.py"}  # whoever writes a file names its points with `faults=`
    assert {point for point in named if point.split(".")[0] in OWN} == set(POINTS) - OF_OTHERS
    assert set(POINTS) <= named


@pytest.mark.parametrize(
    ("on_call", "times", "failed"),
    [
        pytest.param(1, 1, [1], id="once"),
        pytest.param(3, 1, [3], id="once, later"),
        pytest.param(2, 2, [2, 3], id="twice"),
        pytest.param(2, None, [2, 3, 4, 5], id="for good"),
    ],
)
def test_failures_come_when_they_were_planted(on_call, times, failed):
    met = []
    with failing("index.put", errno.EIO, on_call=on_call, times=times) as failures:
        for call in range(1, 6):
            reach("index.read")
            try:
                reach("index.put")
            except OSError as error:
                met.append((call, error.errno))
        assert failures() == len(failed)
    reach("index.put")
    assert met == [(call, errno.EIO) for call in failed]


def test_a_point_that_does_not_exist_cannot_be_planted():
    with pytest.raises(ValueError, match="no fault point"), failing("index.dance", errno.EIO):
        pass


def test_room_is_checked_before_a_rebuild_and_both_figures_are_named(stage, tmp_path, monkeypatch):
    folder = stage.set_up(tmp_path / "workspace")
    full = shutil._ntuple_diskusage(10**9, 10**9 - 50_000, 50_000)
    with Memory.open(folder, provider="hashing") as memory:
        monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
        with pytest.raises(DiskFullError, match=r"a rebuild needs about [\d.]+ MB and 0.1 MB are free"):
            memory.index(force=True)
        monkeypatch.undo()
    stage.check_recovered(folder)
