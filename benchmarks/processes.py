"""A command in, what the process cost as a whole out: CPU, wall time and peak memory, as the system counts them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took; None where the system does not tell (Windows)."""

    wall_s: float
    cpu_s: float | None  # user and system together
    peak_bytes: int | None


def run_measured(
    arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, from_folder: Path = ROOT
) -> tuple[str, Cost]:
    """Run a Python with these arguments to its end and return its output and cost; a failure is an error."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=output, stderr=complaints, cwd=from_folder, env=environment
        )
        if hasattr(os, "wait4"):
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            unit = 1 if sys.platform == "darwin" else 1024
            cost = Cost(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, round(usage.ru_maxrss * unit))
        else:
            process.wait()
            cost = Cost(time.perf_counter() - started, None, None)
        output.seek(0)
        complaints.seek(0)
        if process.returncode:
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{complaints.read().decode(errors='replace')}")
        return output.read().decode(), cost


def run_phase(phase: str, name: str, folder: Path) -> tuple[dict[str, Any], Cost]:
    """Run one phase of one contestant in a process of its own."""
    output, cost = run_measured(["-m", "benchmarks.worker", phase, name, str(folder)])
    numbers: dict[str, Any] = json.loads(output.splitlines()[-1])
    return numbers, cost


def run_command(arguments: Sequence[str], home: Path) -> tuple[Any, Cost]:
    """Run `notewell` with these arguments as a user without settings of their own; return its JSON and cost."""
    quiet = {key: value for key, value in os.environ.items() if not key.startswith("NOTEWELL_")}
    environment = quiet | {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "APPDATA": str(home)}
    output, cost = run_measured(["-m", "notewell", *arguments, "--json"], environment=environment, from_folder=home)
    return json.loads(output), cost


def medians(costs: Sequence[Cost], prefix: str) -> dict[str, float | None]:
    """Return the median of each cost, with `prefix` before its name."""
    return {
        f"{prefix}_{name}": None if None in values else statistics.median(values)
        for name in ("wall_s", "cpu_s", "peak_bytes")
        if (values := [getattr(cost, name) for cost in costs])
    }
