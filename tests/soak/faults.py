"""Every call of SQLite's file operations fails, once and for good: no other error than ours, and it recovers."""

from __future__ import annotations

import errno
import random
import shutil
from pathlib import Path

from notewell import NotewellError
from notewell.store.sqlite.connection import through_file_layer
from tests.end_to_end.faults.file_layer import OPERATIONS, Fault, FaultyLayer
from tests.end_to_end.faults.stages import Stage
from tests.end_to_end.faults.test_file_layer import run_everything


def run(folder: Path, *, count: int, seed: int) -> bool:
    """Try every call; with `count` so many of them, chosen by chance."""
    stage, layer = Stage(folder / "stage"), FaultyLayer("notewell-soak")
    with through_file_layer(layer.name):
        run_everything(stage.set_up(folder / "counted"))
    cases = [
        (operation, call, times, error)
        for operation in OPERATIONS
        for call in range(1, layer.calls[operation] + 1)
        for times in (1, None)
        for error in (errno.ENOSPC, errno.EIO)
    ]
    chosen = random.Random(seed).sample(cases, min(count, len(cases))) if count else cases
    failed = 0
    for operation, call, times, error in chosen:
        target = stage.set_up(folder / "case")
        layer.plant(Fault(operation, error, call, times))
        try:
            with through_file_layer(layer.name):
                failed += bool(run_everything(target))
        except NotewellError:
            failed += 1
        layer.plant(None)
        try:
            stage.check_recovered(target)
        except BaseException:
            print(f"{operation} {call} times={times} errno={error}", flush=True)
            raise
        shutil.rmtree(target)
    print(f"{len(chosen)} of {len(cases)} cases: {failed} told by an error of ours, all recovered")
    return True
