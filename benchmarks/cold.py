"""A workspace in, the cost of a single search from a cold process out: the command itself for notewell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.contestant import Ground
from benchmarks.processes import medians, run_command, run_phase

if TYPE_CHECKING:
    from pathlib import Path

REPEATS = 5
SMALL = 50  # chunks; the real model embeds them in some seconds


def cold_searches(name: str, folder: Path) -> dict[str, Any]:
    """Return what one search costs from nothing: start, imports, opening, answer."""
    if name != "notewell":
        run_phase("one-search", name, folder)
        return medians([run_phase("one-search", name, folder)[1] for _ in range(REPEATS)], "cold_ready")
    numbers = _command_searches(folder, "keyword", "--keyword-only")
    return numbers | _command_searches(folder, "hybrid")


def small_workspace(folder: Path) -> dict[str, Any]:
    """Index a few notes with the real local model and return the cost of that and of searching them."""
    run_phase("prepare", str(SMALL), folder)
    report, cost = run_command(["index", "--workspace", str(Ground(folder).workspace)], folder)
    numbers: dict[str, Any] = {"index_report": report, **medians([cost], "cold_index")}
    numbers |= _command_searches(folder, "keyword", "--keyword-only")
    return numbers | _command_searches(folder, "hybrid")


def _command_searches(folder: Path, mode: str, *options: str) -> dict[str, Any]:
    ground = Ground(folder)
    questions = ground.questions()[:: max(1, 200 // (REPEATS + 1))]
    costs = []
    for question in questions[: REPEATS + 1]:
        answer, cost = run_command(["search", question.text, "--workspace", str(ground.workspace), *options], folder)
        if answer["mode"] != mode:
            return {f"cold_{mode}_missing": "; ".join(answer["notes"])}
        costs.append(cost)
    return medians(costs[1:], f"cold_{mode}")  # the first one found the disk's cache cold, or notes just written
