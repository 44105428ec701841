"""SQLite's own reads, writes, syncs, opens and deletions fail at the Nth call, once and for good."""

from __future__ import annotations

import errno
import random

import pytest

from notewell import Memory, NotewellError
from notewell.store.sqlite.connection import through_file_layer
from tests.end_to_end.faults.file_layer import OPERATIONS, Fault, FaultyLayer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("synced")]

CALLS_TRIED = 2  # of each operation, chosen by chance; `python -m tests.soak faults` tries them all


@pytest.fixture(scope="module")
def layer():
    made = FaultyLayer("notewell-faulty")
    yield made
    made.unregister()


def run_everything(folder) -> list[NotewellError]:
    """Index, rebuild and search; errors of ours are collected, any other ends the test."""
    met = []
    with Memory.open(folder, provider="hashing") as memory:
        for step in (memory.index, lambda: memory.index(force=True), lambda: memory.search("subject5", sync=False)):
            try:
                step()
            except NotewellError as error:
                met.append(error)
    return met


@pytest.fixture(scope="module")
def counted(stage, layer, tmp_path_factory):
    """How often each operation is called when nothing fails."""
    folder = stage.set_up(tmp_path_factory.mktemp("counted") / "workspace")
    layer.plant(None)
    with through_file_layer(layer.name):
        assert run_everything(folder) == []
    return dict(layer.calls)


@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EACCES"])
@pytest.mark.parametrize("times", [pytest.param(1, id="once"), pytest.param(None, id="for good")])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_failing_operation_costs_the_work_in_flight_only(stage, layer, counted, tmp_path, operation, times, error):
    chance = random.Random(f"{operation} {times} {error}")
    calls = {chance.randint(1, counted[operation]) for _ in range(CALLS_TRIED)}
    for call in sorted(calls):
        folder = stage.set_up(tmp_path / f"call{call}")
        fault = Fault(operation, getattr(errno, error), call, times)
        layer.plant(fault)
        try:
            with through_file_layer(layer.name):
                met = run_everything(folder)
        except NotewellError:  # also closing may fail, in words of ours
            met = []
        layer.plant(None)
        assert all(each.message and each.hint for each in met)
        stage.check_recovered(folder)
