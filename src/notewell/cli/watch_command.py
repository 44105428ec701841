"""`notewell watch`: keep the index fresh until stopped."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from notewell import NotewellError
from notewell.agents.rendering import report_lines
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines, print_notes

if TYPE_CHECKING:
    from notewell import IndexReport

WAKE_S = 0.2  # Windows delivers Ctrl-C only between two waits


@click.command("watch", epilog="Example: notewell watch --for 2 --json")
@click.option("--for", "seconds", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop after so long.")
@common_options
def command(*, seconds: float | None, chosen: Chosen) -> int:
    """Index what changes, as it changes, until Ctrl-C; one line for each run that did something."""
    with chosen.memory() as memory:
        told = _Told(quiet=chosen.as_json)
        stopped = threading.Event()
        with suppress(ValueError):  # signals can be set in the main thread only
            signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        watching = memory.watch(on_sync=told.run)
        if watching.mode == "polling":
            print_notes([f"looking for changes every few seconds: {watching.reason}"])
        click.echo(f"watching {memory.workspace}; stop with Ctrl-C", err=True)
        with suppress(KeyboardInterrupt):
            _wait(stopped, seconds)
        watching.stop()
        memory.wait_until_synced()
    if chosen.as_json:
        print_json({"mode": watching.mode, "runs": told.runs, "failures": told.failures, **told.totals})
    return 1 if told.failures and told.failures == told.runs else 0


def _wait(stopped: threading.Event, seconds: float | None) -> None:
    left = seconds
    while not stopped.wait(WAKE_S if left is None else min(WAKE_S, left)):
        if left is not None:
            left -= WAKE_S
            if left <= 0:
                return


class _Told:
    """Shows the outcome of each run, and counts."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self.runs = 0
        self.failures = 0
        self.totals = dict.fromkeys(("added", "changed", "renamed", "removed", "embedded"), 0)

    def run(self, outcome: IndexReport | Exception) -> None:
        self.runs += 1
        if isinstance(outcome, Exception):
            self.failures += 1
            hint = f"; {outcome.hint}" if isinstance(outcome, NotewellError) and outcome.hint else ""
            print_notes([f"{outcome}{hint}"])
            return
        did = {key: getattr(outcome, key) for key in self.totals}
        self.totals = {key: self.totals[key] + did[key] for key in did}
        if any(did.values()) and not self._quiet:
            print_lines(report_lines(outcome))
        print_notes(f"{problem.path or 'a chunk'}: {problem.reason}" for problem in outcome.problems)
