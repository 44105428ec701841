"""kill -9 at random points: after each the index is old or new, whole, in step, and the next run completes it."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

from tests.end_to_end.processes.conftest import Worker, write_note
from tests.end_to_end.processes.test_kill import SCENARIOS, Stage, check_after_kill

TOLD_EVERY = 250


def run(folder: Path, *, count: int, seed: int) -> bool:
    """Kill so many times, half of them at a call and half at a moment, in every scenario."""
    chance = random.Random(seed)
    worker = Worker()
    stages = {}
    for name, (indexed, changed, options) in SCENARIOS.items():
        base = folder / name.replace(" ", "-").replace(",", "")
        notes = base / "notes"
        (notes / "memory").mkdir(parents=True)
        for number in range(24):
            write_note(notes / "memory", number)
        stage = Stage(notes, base, indexed=indexed, changed=changed)
        calls = worker.index(stage.set_up(0), profile=True, **options)["calls"]
        assert isinstance(calls, int)
        started = time.monotonic()
        worker.index(stage.set_up(1), **options)
        stages[name] = (stage, options, calls, time.monotonic() - started)
    killed = 0
    for number in range(2, count + 2):
        name = chance.choice(list(stages))
        stage, options, calls, seconds = stages[name]
        if chance.random() < 0.5:
            point: dict[str, Any] = {"profile": True, "kill_at_call": chance.randrange(1, calls)}
        else:
            point = {"kill_after_s": chance.random() * seconds}
        target = stage.set_up(number)
        killed += bool(worker.index(target, **options, **point)["killed"])
        try:
            check_after_kill(target, stage)
        except BaseException:
            print(f"point {number} of {name!r}: {point}", flush=True)
            raise
        shutil.rmtree(target)
        if number % TOLD_EVERY == 0:
            print(f"{number} points, {killed} killed", flush=True)
    worker.close()
    print(f"{count} points, {killed} killed in time: nothing lost, doubled or out of step")
    return True
